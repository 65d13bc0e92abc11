"""Two streams that have nothing to do with each other: does the allocator let them run at once?

    overlap.py copies|kernel

One stream trains a layer with temporaries; beside it copies to the card, each into memory of its own, or one long kernel. Prints one JSON
object: seconds of each alone and of both at once (medians of 5), and how much of the shorter one was hidden (1: all of it).
"""
import json
import statistics
import sys
import time

import torch

ROUNDS = 60


def compute(stream, size=3000):
    weight = compute.weight
    with torch.cuda.stream(stream):
        for i in range(ROUNDS):
            rows = size + 64 * (i % 7)
            x = torch.ones(rows, size, device="cuda", dtype=torch.bfloat16)
            torch.relu(x @ weight).sum()


def copies(stream):
    with torch.cuda.stream(stream):
        for i in range(ROUNDS // 2):
            copies.source[: 20_000_000 + 100_000 * (i % 5)].to("cuda", non_blocking=True)


def kernel(stream):
    with torch.cuda.stream(stream):
        torch.cuda._sleep(kernel.cycles)


def seconds(*jobs):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for job, stream in jobs:
        job(stream)
    torch.cuda.synchronize()
    return time.perf_counter() - start


def main():
    other = {"copies": copies, "kernel": kernel}[sys.argv[1]]
    streams = torch.cuda.Stream(), torch.cuda.Stream()
    compute.weight = torch.ones(3000, 3000, device="cuda", dtype=torch.bfloat16)
    copies.source = torch.ones(21_000_000, dtype=torch.uint8).pin_memory()
    kernel.cycles = 20_000_000
    alone = [(compute, streams[0])], [(other, streams[1])]
    # The long kernel first: what comes after it in the program may not wait for it.
    both = [(other, streams[1]), (compute, streams[0])]
    for _ in range(2):
        for jobs in (*alone, both):
            seconds(*jobs)
    a, b, together = (statistics.median(seconds(*jobs) for _ in range(5)) for jobs in (*alone, both))
    print(json.dumps({"compute_s": a, "other_s": b, "both_s": together, "hidden": (a + b - together) / min(a, b)}))


main()
