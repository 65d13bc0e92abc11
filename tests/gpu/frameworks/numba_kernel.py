"""Numba: arrays on the device, a kernel, results back."""
import numpy

if not hasattr(numpy, "row_stack"):  # gone from newer NumPy; released versions of Numba still name it at import
    numpy.row_stack = numpy.vstack

from numba import cuda  # noqa: E402


@cuda.jit
def add(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = 3 * a[i] + b[i]


total = 0
for size in (1000, 70_000, 1_000_001):
    a = cuda.to_device(numpy.arange(size, dtype=numpy.int64))
    b = cuda.to_device(numpy.ones(size, dtype=numpy.int64))
    out = cuda.device_array(size, dtype=numpy.int64)
    add[(size + 255) // 256, 256](a, b, out)
    total += int(out.copy_to_host().sum())
print("numba_kernel:", total)
