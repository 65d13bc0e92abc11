"""Two cards in one process: copies, kernels that read the other card's memory, a model on both, tensors shared with a process.

    torch_peers.py copies|kernels|parallel|shared

Prints exact results.
"""
import sys

import torch


def sizes(seed, count=40):
    generator = torch.Generator().manual_seed(seed)
    return [int(n) for n in torch.randint(1_000, 4_000_000, (count,), generator=generator)]


def copies():
    total = 0
    for i, size in enumerate(sizes(1)):
        x = torch.arange(size, device=f"cuda:{i % 2}", dtype=torch.int64)
        y = x.to(f"cuda:{1 - i % 2}", non_blocking=True)
        del x
        z = torch.zeros(size, device=f"cuda:{i % 2}", dtype=torch.int64)  # perhaps where x lay
        total += int(y.sum()) + int(z.sum())
    return total


def kernels():
    """Peer access is enabled between blocks that lie there before and blocks that come after."""
    import cupy
    add = cupy.RawKernel("extern \"C\" __global__ void add(const long long* a, long long* b, long long n) {"
                         " long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; if (i < n) b[i] += a[i]; }", "add")
    total, before = 0, []
    for device in (0, 1):
        with cupy.cuda.Device(device):
            before.append(cupy.arange(1_000_000, dtype=cupy.int64))
    for device in (0, 1):
        with cupy.cuda.Device(device):
            cupy.cuda.runtime.deviceEnablePeerAccess(1 - device)
    for size in (1_000_000, *sizes(2, 20)):
        for device in (0, 1):
            with cupy.cuda.Device(1 - device):
                there = before[1 - device] if size == 1_000_000 else cupy.arange(size, dtype=cupy.int64)
                cupy.cuda.runtime.deviceSynchronize()
            with cupy.cuda.Device(device):
                here = cupy.ones(size, dtype=cupy.int64)
                add(((size + 255) // 256,), (256,), (there.data.ptr, here.data.ptr, size))
                total += int(here.sum())
    return total


def parallel():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.Tanh(), torch.nn.Linear(512, 512)).cuda()
    both = torch.nn.DataParallel(model, device_ids=[0, 1])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(10):
        x = torch.full((64 + 32 * i, 512), 0.25, device="cuda")
        loss = (both(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return round(float(loss), 5)


def add_up(inbox, outbox):
    for _ in range(12):
        tensor = inbox.get()
        outbox.put(int(tensor.sum()))
        del tensor


def shared():
    context = torch.multiprocessing.get_context("spawn")
    inbox, outbox = context.Queue(), context.Queue()
    child = context.Process(target=add_up, args=(inbox, outbox))
    child.start()
    total = 0
    for i, size in enumerate(sizes(4, 12)):
        tensor = torch.arange(size, device=f"cuda:{i % 2}", dtype=torch.int64)[i:]
        inbox.put(tensor)
        total += outbox.get(timeout=60)
    child.join()
    return total, child.exitcode


if __name__ == "__main__":
    print(sys.argv[1], {"copies": copies, "kernels": kernels, "parallel": parallel, "shared": shared}[sys.argv[1]](), flush=True)
