"""A CUDA program that needs no compiler and no CUDA but the driver: allocates, writes, reads back and frees, 64 blocks of many sizes.
Prints one line, which depends on what it read alone. LOCAL_RANK chooses the card."""
import ctypes
import os
import sys

driver = ctypes.CDLL("libcuda.so.1")


def must(status, what):
    if status:
        sys.exit(f"program: {what} answered {status}")


device, context, cards = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
must(driver.cuInit(0), "cuInit")
must(driver.cuDeviceGetCount(ctypes.byref(cards)), "cuDeviceGetCount")
must(driver.cuDeviceGet(ctypes.byref(device), int(os.environ.get("LOCAL_RANK", "0")) % cards.value), "cuDeviceGet")
must(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
must(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent")

blocks = []
for number in range(64):
    size = (number % 7 + 1) * 30_001
    sent = bytes([number + 1]) * size
    address = ctypes.c_uint64()
    must(driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)), "cuMemAlloc_v2")
    must(driver.cuMemcpyHtoD_v2(address, sent, ctypes.c_size_t(size)), "cuMemcpyHtoD_v2")
    blocks.append((address, sent))
    if number % 3 == 2:
        must(driver.cuMemFree_v2(blocks.pop(number % len(blocks))[0]), "cuMemFree_v2")

right = True
for address, sent in blocks:
    got = ctypes.create_string_buffer(len(sent))
    must(driver.cuMemcpyDtoH_v2(got, address, ctypes.c_size_t(len(sent))), "cuMemcpyDtoH_v2")
    right &= got.raw == sent
    must(driver.cuMemFree_v2(address), "cuMemFree_v2")
print("program: right" if right else "program: wrong")
sys.exit(0 if right else 1)
