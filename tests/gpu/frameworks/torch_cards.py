"""Two cards, a process for each: what NCCL, DDP and FSDP make of memory that comes and goes.

    python3 -m torch.distributed.run --nproc-per-node=2 torch_cards.py collectives|registered|graph|ddp|fsdp

Rank 0 prints exact results: sums of whole numbers, and losses where sums have one order.
"""
import os
import sys

import torch
import torch.distributed as dist

ROUNDS = 40


def sizes(seed):
    generator = torch.Generator().manual_seed(seed)
    return [int(n) for n in torch.randint(1_000, 6_000_000, (ROUNDS,), generator=generator)]


def collectives(rank, world):
    total = 0
    for i, size in enumerate(sizes(1)):
        x = torch.full((size,), rank + i, device="cuda", dtype=torch.int64)
        dist.all_reduce(x)
        gathered = torch.empty(world * size, device="cuda", dtype=torch.int64)
        dist.all_gather_into_tensor(gathered, x)
        scattered = torch.empty(size, device="cuda", dtype=torch.int64)
        dist.reduce_scatter_tensor(scattered, gathered)
        received = torch.empty_like(scattered)
        work = dist.batch_isend_irecv([dist.P2POp(dist.isend, scattered, (rank + 1) % world), dist.P2POp(dist.irecv, received, (rank - 1) % world)])
        for each in work:
            each.wait()
        del x, gathered, scattered
        total += int(received[0]) * size
        assert int(received.sum()) == int(received[0]) * size
    return total


def registered(rank, world):
    """Buffers that NCCL registers: it takes hold of the memory behind the address."""
    backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cuda"))
    total = 0
    for i, size in enumerate(sizes(2)[:8]):
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            x = torch.full((size,), rank + i, device="cuda", dtype=torch.int64)
            out = torch.empty(world * size, device="cuda", dtype=torch.int64)
        backend.register_mem_pool(pool)
        for _ in range(3):
            dist.all_gather_into_tensor(out, x)
            dist.all_reduce(x)
        torch.cuda.synchronize()
        total += int(x.sum()) + int(out.sum())
        backend.deregister_mem_pool(pool)
        del x, out, pool
    return total


def graph(rank, world):
    """In a graph NCCL registers the program's buffers by itself."""
    x = torch.full((3_000_000,), 1.0, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            dist.all_reduce(x)
    torch.cuda.synchronize()
    x.fill_(1.0)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        y = x * 2
        dist.all_reduce(y)
        x.copy_(y / world)
    x.fill_(1.0)
    other = []
    for i in range(10):
        captured.replay()
        other.append(torch.full((1_000_000 + i,), float(i), device="cuda"))  # must not land in the graph's memory
    torch.cuda.synchronize()
    return float(x[0]), float(x.sum()), sum(float(each[0]) * len(each) for each in other)


def train(model, rank):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(3 + rank)
    losses = []
    for _ in range(12):
        rows = int(torch.randint(64, 1024, (1,), generator=generator))
        x = torch.randn(rows, 1024, generator=generator).to("cuda", non_blocking=True)
        loss = (model(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(round(float(loss), 4))
    return losses[0], losses[-1]


def layers():
    torch.manual_seed(0)
    return torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.GELU()) for _ in range(6)]).cuda()


def ddp(rank, world):
    return train(torch.nn.parallel.DistributedDataParallel(layers(), device_ids=[rank]), rank)


def fsdp(rank, world):
    from torch.distributed.fsdp import fully_shard
    model = layers()
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    return train(model, rank)


def main():
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    world = dist.get_world_size()
    result = {"collectives": collectives, "registered": registered, "graph": graph, "ddp": ddp, "fsdp": fsdp}[sys.argv[1]](rank, world)
    dist.barrier()
    if rank == 0:
        print(sys.argv[1], result, flush=True)
    dist.destroy_process_group()


main()
