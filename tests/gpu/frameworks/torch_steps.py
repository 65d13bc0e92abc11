"""For the check smi: says where it is and waits for a line. The first kernel comes early, so that code that is loaded for it
is not taken for memory of the pool."""
import sys

import torch


def pause(moment):
    torch.cuda.synchronize()
    print("at", moment, flush=True)
    sys.stdin.readline()


torch.cuda.init()
torch.cuda.current_stream().synchronize()
pause("context made")
kept = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
pause("first allocation")
kept.fill_(1)
kept.sum().item()
pause("first kernels")
for step in range(30):
    parts = [torch.full((size << 20,), step, dtype=torch.uint8, device="cuda") for size in (3, 700, 41, 1300)]
    del parts
    torch.cuda.empty_cache()
    if step % 10 == 9:
        pause(f"step {step + 1}")
