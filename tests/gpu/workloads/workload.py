"""Training with changing shapes, as real jobs do it: random weights, random data, no downloads.

    python3 workload.py ernie|gpt_varlen|resnet_multires [LABEL] [--steps N] [--cap MIB] [--after FILE]

prints one line: seconds of the steps (without the first four), the last loss, peaks as PyTorch counts them, and when the first step
was done, from the beginning of main. With --after it loads its modules and then waits until FILE is there. A program that knows
nothing of gpupool, so that running it under the preload measures what any other program would see.
"""
import argparse
import importlib
import os
import random
import time

os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

MIB = 2**20
WARM_UP = 4
LOADS = {"ernie": ("transformers", "ErnieForMaskedLM"), "resnet_multires": ("torchvision", "models")}  # beside PyTorch
SEED = 1


def mixed_precision():
    return torch.autocast("cuda", dtype=torch.bfloat16)


def descend(loss, optimizer):
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.item()


def ernie():
    """A masked language model of 12 layers; batch and length change with every step."""
    import transformers

    transformers.logging.set_verbosity_error()
    vocabulary = 40_000
    model = transformers.ErnieForMaskedLM(transformers.ErnieConfig(
        vocab_size=vocabulary, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072,
        max_position_embeddings=1024)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)

    def step(_):
        shape = random.choice([8, 16, 32]), random.randrange(32, 512)
        tokens = torch.randint(5, vocabulary, shape, device="cuda")
        with mixed_precision():
            loss = model(input_ids=tokens, labels=tokens).loss
        return descend(loss, optimizer)

    return step, 40


class Block(nn.Module):
    """One layer of a decoder."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        split = self.qkv(self.before_attention(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.before_mlp(x))


class Decoder(nn.Module):
    def __init__(self, vocabulary, width, layers, heads):
        super().__init__()
        self.embed, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary, bias=False)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))

    def forward(self, tokens):
        return self.head(self.blocks(self.embed(tokens)))


def gpt_varlen():
    """A decoder of 8 layers on texts of 64 to 1500 tokens."""
    vocabulary = 32_000
    model = Decoder(vocabulary, width=1024, layers=8, heads=16).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)

    def step(_):
        shape = random.choice([2, 4, 8, 12]), random.randrange(64, 1500)
        tokens = torch.randint(0, vocabulary, shape, device="cuda")
        with mixed_precision():
            logits = model(tokens[:, :-1]).reshape(-1, vocabulary).float()
            loss = F.cross_entropy(logits, tokens[:, 1:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)  # as late as can be: the old gradients live through the forward pass
        loss.backward()
        optimizer.step()
        return loss.item()

    return step, 60


def resnet_multires():
    """ResNet-50 on pictures of changing size, with an evaluation every sixth step."""
    import torchvision

    model = torchvision.models.resnet50().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

    def evaluate():
        pictures = random.choice([1, 64, 200]), 3, random.choice([224, 256, 320]), random.choice([224, 288, 384])
        model.eval()
        with torch.no_grad():
            model(torch.randn(*pictures, device="cuda"))
        model.train()

    def step(number):
        if number % 6 == 5:
            evaluate()
            return None
        batch, height, width = random.choice([16, 32, 48]), random.randrange(128, 449, 16), random.randrange(128, 449, 16)
        with mixed_precision():
            scores = model(torch.randn(batch, 3, height, width, device="cuda"))
            loss = F.cross_entropy(scores, torch.randint(0, 1000, (batch,), device="cuda"))
        return descend(loss, optimizer)

    return step, 60


def capped(mib):
    """PyTorch's own cache may take no more than this from the card."""
    torch.cuda.set_per_process_memory_fraction(mib * MIB / torch.cuda.get_device_properties(0).total_memory)


def wait_for(file, workload):
    """With everything loaded that the workload is going to import."""
    if workload in LOADS:
        module, name = LOADS[workload]
        getattr(importlib.import_module(module), name)
    while not os.path.exists(file):
        time.sleep(0.01)


def main(workloads):
    """`workloads`: functions without arguments that return the function of one step, and how many steps there are."""
    named = {function.__name__: function for function in workloads}
    parser = argparse.ArgumentParser()
    parser.add_argument("workload", choices=named)
    parser.add_argument("label", nargs="?", default="plain")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--cap", type=int, help="the most that PyTorch's own cache may take, in MiB")
    parser.add_argument("--after", metavar="FILE", help="begin when this file is there")
    arguments = parser.parse_args()
    if arguments.after:
        wait_for(arguments.after, arguments.workload)
    began = time.time()
    torch.manual_seed(SEED)
    random.seed(SEED)
    if arguments.cap:
        capped(arguments.cap)
    step, steps = named[arguments.workload]()
    seconds, loss, first_step = 0.0, 0.0, 0.0
    for number in range(arguments.steps or steps):
        torch.cuda.synchronize()
        start = time.time()
        result = step(number)
        loss = loss if result is None else result
        torch.cuda.synchronize()
        if number == 0:
            first_step = time.time() - began
        if number >= WARM_UP:
            seconds += time.time() - start
    stats = torch.cuda.memory_stats()
    free, total = torch.cuda.mem_get_info()
    live, reserved = (stats.get(f"{key}.all.peak", 0) / MIB for key in ("allocated_bytes", "reserved_bytes"))
    print(f"{arguments.workload} {arguments.label}: {seconds:.2f} s, last loss {loss:.4f}, live peak {live:.0f} MiB, "
          f"reserved peak {reserved:.0f} MiB, card used {(total - free) / MIB:.0f} MiB, first step after {first_step:.2f} s")


if __name__ == "__main__":
    main((ernie, gpt_varlen, resnet_multires))
