"""For the check overflow: a training loop whose activations are most of its memory, with a result that does not depend on where they lie.
Prints the losses; on standard error the peak of live tensors in MiB, and the seconds of the steps."""
import sys
import time

import torch

torch.manual_seed(0)
WIDTH, LAYERS, BATCH, STEPS = 2048, 24, 16_384, 4

layers = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU()) for _ in range(LAYERS))).cuda()
optimizer = torch.optim.SGD(layers.parameters(), 0.1)
losses = []
start = time.perf_counter()
for step in range(STEPS):
    batch = torch.randn(BATCH, WIDTH, generator=torch.Generator().manual_seed(step)).cuda()
    loss = (layers(batch) - batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    losses.append(loss.item())
print("losses", " ".join(f"{loss:.6f}" for loss in losses))
print(f"peak {torch.cuda.max_memory_allocated() >> 20} MiB, {time.perf_counter() - start:.2f} s", file=sys.stderr)
