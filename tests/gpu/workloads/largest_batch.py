"""The largest batch that a training step survives on what is left of the card.

Sentences of random length, so that sizes vary, the same lengths for every batch. Each batch is tried for 12 steps from an emptied cache;
doubling, then halving the step. Prints one JSON object: the batch, and the peak of live tensors there in MiB (0 where PyTorch does not count).
"""
import gc
import json

import torch

STEPS = 12
WIDTH = 1024


def survives(batch):
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(WIDTH, 8, 2 * WIDTH, batch_first=True, dropout=0.1), 4).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(STEPS):
        length = int(torch.randint(48, 400, (1,), generator=generator))
        x = torch.ones(batch, length, WIDTH, device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    return True


def attempt(batch):
    try:
        torch.cuda.reset_peak_memory_stats()
        return survives(batch)
    except RuntimeError as error:
        # torch.OutOfMemoryError is one; a library that finds no memory for itself says so in words of its own.
        if not any(words in str(error) for words in ("out of memory", "ALLOC_FAILED", "NOT_INITIALIZED", "graph.execute")) and not isinstance(error, torch.OutOfMemoryError):
            raise
        return False
    finally:
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


def main():
    largest, live, step = 0, 0, 16
    while attempt(largest + step):
        largest, live, step = largest + step, torch.cuda.max_memory_allocated(), step * 2
    while step > 1:
        step //= 2
        if attempt(largest + step):
            largest, live = largest + step, torch.cuda.max_memory_allocated()
    print(json.dumps({"batch": largest, "live_mib": live >> 20}))


main()
