"""Programs of other kinds, in PyTorch: serving, a mixture of experts, checkpointed training, two streams.

    python3 others.py serving|experts|checkpointed|two_streams [LABEL] [--steps N] [--cap MIB]

Random weights, random data, seeded, no downloads; each takes some seconds and several GB, with some ten thousand requests.
The line they print is that of workload.py.
"""
import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from workload import Decoder, descend, main, mixed_precision

VOCABULARY = 32_000


class Caches:
    """Keys and values of one conversation, a pair of tensors for each layer, which grow by steps of tokens as a server's do."""

    STEP = 32

    def __init__(self, layers):
        self.length = 0
        self.pairs = [None] * layers

    def extend(self, layer, keys, values):
        """Appends tokens ([heads, tokens, width]) and returns all that are there."""
        end = self.length + keys.shape[1]
        pair = self.pairs[layer]
        if pair is None or end > pair[0].shape[1]:
            room = -(-end // self.STEP) * self.STEP
            grown = tuple(torch.empty(keys.shape[0], room, keys.shape[2], device="cuda", dtype=keys.dtype) for _ in range(2))
            if pair is not None:
                for new, old in zip(grown, pair):
                    new[:, :self.length] = old[:, :self.length]
            self.pairs[layer] = pair = grown
        pair[0][:, self.length:end] = keys
        pair[1][:, self.length:end] = values
        return pair[0][:, :end], pair[1][:, :end]


def serving():
    """An inference server: conversations of 100 to 3000 tokens come and go, their caches grow with every word."""
    model = Decoder(VOCABULARY, width=2048, layers=16, heads=16).cuda().to(torch.bfloat16)
    most = 14
    open_now = []

    def attend(block, x, rows):
        """`rows`: (conversation, first token, tokens) for each part of x, whose tokens are [1, all, width]."""
        width = x.shape[2]
        query, key, value = block.qkv(block.before_attention(x)).view(x.shape[1], 3, block.heads, width // block.heads).permute(1, 2, 0, 3)
        parts = []
        for caches, layer, begin, count in rows:
            keys, values = caches.extend(layer, key[:, begin:begin + count], value[:, begin:begin + count])
            parts.append(F.scaled_dot_product_attention(query[None, :, begin:begin + count], keys[None], values[None], is_causal=count > 1))
        x = x + block.out(torch.cat(parts, 2).transpose(1, 2).reshape(x.shape))
        return x + block.mlp(block.before_mlp(x))

    def forward(tokens, conversations):
        x = model.embed(tokens)[None]
        for layer, block in enumerate(model.blocks):
            rows, begin = [], 0
            for caches, count in conversations:
                rows.append((caches, layer, begin, count))
                begin += count
            x = attend(block, x, rows)
        for caches, count in conversations:
            caches.length += count
        return model.head(x[0]).float()

    def step(_):
        with torch.no_grad():
            while len(open_now) < most and (len(open_now) < 4 or random.random() < 0.7):
                caches, prompt = Caches(len(model.blocks)), random.randrange(100, 3000)
                forward(torch.randint(0, VOCABULARY, (prompt,), device="cuda"), [(caches, prompt)])
                open_now.append([caches, random.randrange(4, 48)])
            scores = forward(torch.randint(0, VOCABULARY, (len(open_now),), device="cuda"), [(caches, 1) for caches, _ in open_now])
            for conversation in open_now:
                conversation[1] -= 1
            open_now[:] = [conversation for conversation in open_now if conversation[1] > 0]
            return scores.logsumexp(1).mean().item()

    return step, 60


class Experts(nn.Module):
    """A layer that sends each token to two of eight experts: what each of them gets changes with every step."""

    def __init__(self, width, experts):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.before = nn.LayerNorm(width)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(experts))

    def forward(self, x):
        flat = self.before(x)
        weights, chosen = self.gate(flat).softmax(1).topk(2, 1)
        out = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            token, rank = torch.where(chosen == number)
            if len(token):
                out.index_add_(0, token, (expert(flat[token]) * weights[token, rank, None]).to(out.dtype))
        return x + out


def experts():
    """A mixture of experts on batches of changing size."""
    width = 1024
    model = nn.Sequential(nn.Embedding(VOCABULARY, width), *(Experts(width, 8) for _ in range(4)), nn.Linear(width, VOCABULARY)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)

    def step(_):
        tokens = torch.randint(0, VOCABULARY, (random.randrange(2000, 12_000),), device="cuda")
        with mixed_precision():
            loss = F.cross_entropy(model(tokens).float(), tokens)
        return descend(loss, optimizer)

    return step, 30


def checkpointed():
    """A decoder of 16 layers that keeps only the inputs of its layers and computes the rest again, on texts of 128 to 4000 tokens."""
    model = Decoder(VOCABULARY, width=1024, layers=16, heads=16).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)

    def step(_):
        tokens = torch.randint(0, VOCABULARY, (random.choice([1, 2, 4, 6]), random.randrange(128, 4000)), device="cuda")
        with mixed_precision():
            x = model.embed(tokens)
            for block in model.blocks:
                x = checkpoint(block, x, use_reentrant=False)
            loss = F.cross_entropy(model.head(x).reshape(-1, VOCABULARY).float(), tokens.reshape(-1))
        return descend(loss, optimizer)

    return step, 30


def two_streams():
    """Training on one stream, while another prepares pictures and evaluates an older copy of the model on them."""
    def network():
        channels = (3, 64, 128, 256, 512)
        layers = [layer for a, b in zip(channels, channels[1:]) for layer in (nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.ReLU())]
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels[-1], 1000)).cuda()

    model, judge = network(), network().eval()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    side = torch.cuda.Stream()

    def prepared(batch):
        edge = random.randrange(96, 385, 32)
        pictures = torch.rand(batch, 3, edge + 32, edge + 32, device="cuda")
        pictures = pictures.flip(3)[:, :, 16:-16, 16:-16]
        return ((pictures - pictures.mean((2, 3), keepdim=True)) / pictures.std((2, 3), keepdim=True)).contiguous()

    def on_the_side():
        with torch.cuda.stream(side), torch.no_grad():
            pictures = prepared(random.choice([32, 64, 128]))
            for part in pictures.split(32):
                judge(part)
            return pictures

    state = {"next": on_the_side()}

    def step(_):
        here = torch.cuda.current_stream()
        here.wait_stream(side)
        pictures = state["next"]
        pictures.record_stream(here)
        state["next"] = on_the_side()
        loss = F.cross_entropy(model(pictures), torch.randint(0, 1000, (len(pictures),), device="cuda"))
        return descend(loss, optimizer)

    return step, 120


if __name__ == "__main__":
    main((serving, experts, checkpointed, two_streams))
