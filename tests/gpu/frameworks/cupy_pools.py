"""CuPy with its own pool or with the driver's (argument: default or malloc_async), on two streams."""
import sys

import cupy

if sys.argv[1] == "malloc_async":
    cupy.cuda.set_allocator(cupy.cuda.malloc_async)
total = 0
streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
for step in range(40):
    with streams[step % 2]:
        size = 1 + step * 48_271 % 2_000_000
        numbers = cupy.arange(size, dtype=cupy.int64) * (step + 1)
        total += int((numbers % 1009).sum())
        del numbers
    if step % 10 == 9:
        cupy.get_default_memory_pool().free_all_blocks()
print("cupy_pools:", total)
