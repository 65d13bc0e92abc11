"""A kernel of the program's own that writes one number more than its array has, which pool.guard=on has to find."""
import sys

import cupy

cupy.cuda.set_allocator(cupy.cuda.malloc_async)
count = cupy.RawKernel("""extern "C" __global__ void count(int* to, int numbers) {
  for (int i = threadIdx.x; i <= numbers; i += blockDim.x) to[i] = i;
}""", "count")
numbers = cupy.zeros(1000, dtype=cupy.int32)
print(f"overruns {numbers.data.ptr:#x}", file=sys.stderr)
count((1,), (256,), (numbers, numbers.size))
total = int(numbers.sum())
del numbers
cupy.cuda.get_current_stream().synchronize()
print("cupy_overrun:", total)
