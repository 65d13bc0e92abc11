"""Array arithmetic in CuPy as scientists write it: temporaries of every size, sorting, transforms, a grid that is refined.

    python3 cupy_arrays.py [--own-pool] [--steps N]

Requests go to the driver's stream-ordered allocation, for that is how CuPy is told to leave caching to others; --own-pool keeps
CuPy's own cache. Prints one line with a sum.
"""
import argparse
import random
import time

import cupy

MIB = 2**20


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--own-pool", action="store_true")
    parser.add_argument("--steps", type=int, default=300)
    arguments = parser.parse_args()
    if not arguments.own_pool:
        cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
    random.seed(1)
    cupy.random.seed(1)
    kept, total = [], 0.0
    grid = cupy.zeros((512, 512), cupy.float32)
    start = time.time()
    for number in range(arguments.steps):
        count = int(2 ** random.uniform(8, 26))
        values = cupy.random.random(count, dtype=cupy.float32)
        scaled = cupy.sqrt(values * 3 + 1) - cupy.sin(values) / (values + 2)
        order = cupy.argsort(scaled[: min(count, 2**23)])
        spectrum = cupy.fft.rfft(scaled[: min(count, 2**22)])
        total += float(abs(spectrum[:16]).sum()) + int(order[0])
        if number % 60 == 59:
            grid = cupy.repeat(cupy.repeat(grid, 2, 0), 2, 1)
        for _ in range(6):
            inner = (grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]) / 4
            grid[1:-1, 1:-1] = inner + 0.01
        if random.random() < 0.4:
            kept.append(scaled)
        while sum(each.nbytes for each in kept) > 3000 * MIB or len(kept) > 60:
            kept.pop(random.randrange(len(kept)))
    cupy.cuda.Device().synchronize()
    pool = cupy.get_default_memory_pool()
    held = f", its own cache holds {pool.total_bytes() // MIB} MiB" if arguments.own_pool else ""
    print(f"cupy_arrays: {time.time() - start:.2f} s, sum {total:.4f}, grid {float(grid.sum()):.1f}{held}")


main()
