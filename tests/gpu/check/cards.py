"""Two cards: NCCL, DDP, FSDP, peers and shared tensors give the same results."""
import importlib.util

from . import bench as b

TITLE = "Two cards"

ASYNC = {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}
NO_CACHE = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
LEGACY = {"NCCL_CUMEM_ENABLE": "0"}  # buffers by cudaMalloc, shared by cudaIpcGetMemHandle
# program, what it does, settings, whether the pool must serve its memory
CASES = (
    ("torch_cards.py", "collectives", {}, True),
    ("torch_cards.py", "collectives", ASYNC, True),
    ("torch_cards.py", "collectives", NO_CACHE, True),
    ("torch_cards.py", "collectives", {**ASYNC, **LEGACY}, True),
    ("torch_cards.py", "registered", {}, True),
    ("torch_cards.py", "registered", {"GPUPOOL_POOL_BACKING": "arena"}, True),
    ("torch_cards.py", "graph", {}, True),
    ("torch_cards.py", "graph", LEGACY, True),
    ("torch_cards.py", "ddp", ASYNC, True),
    ("torch_cards.py", "ddp", NO_CACHE, True),
    ("torch_cards.py", "fsdp", {}, True),
    ("torch_peers.py", "copies", ASYNC, True),
    ("torch_peers.py", "copies", NO_CACHE, True),
    ("torch_peers.py", "kernels", {}, True),
    ("torch_peers.py", "kernels", {"GPUPOOL_POOL_STRATEGY": "auto_growth"}, True),
    ("torch_peers.py", "parallel", ASYNC, True),
    ("torch_peers.py", "shared", {}, True),
    ("torch_peers.py", "shared", {"GPUPOOL_POOL_STRATEGY": "auto_growth"}, True),
)


def command(bench, number, program, what):
    launcher = []
    if program == "torch_cards.py":
        launcher = ["-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={29600 + number}"]
    return [bench.python, *launcher, b.PROGRAMS / "frameworks" / program, what]


def check(bench, result):
    if not importlib.util.find_spec("torch"):
        return result.note("PyTorch is not there")
    import torch
    if torch.cuda.device_count() < 2:
        return result.note("one card only: nothing was run")
    rows = result.table("The same program with and without the pool", ["program", "settings", "same result", "result", "pooled", "s", "s with the pool"])

    def job(number, case):
        program, what, settings, _ = case
        settings = {"GPUPOOL_POOL_SIZE": "8GiB", "NCCL_NVLS_ENABLE": "0", **settings}
        return [bench.run(mode, command(bench, 2 * number + turn, program, what), settings, timeout=100)
                for turn, mode in enumerate((b.PLAIN, b.POOL))]

    jobs = [lambda number=number, case=case: job(number, case) for number, case in enumerate(CASES)]
    for (program, what, settings, pooled), (plain, pool) in zip(CASES, bench.together(jobs, 6)):
        name = f"{what} {' '.join(f'{key}={value}' for key, value in settings.items())}"
        same = plain.ok and pool.ok and plain.out == pool.out
        rows.append([what, ", ".join(f"{key}={value}" for key, value in settings.items()), "yes" if same else "NO", pool.out.strip()[:80],
                     b.amount(pool.pooled), f"{plain.seconds:.0f}", f"{pool.seconds:.0f}"])
        result.expect(plain.ok, f"{name}, without the pool: {plain.why()}")
        result.expect(pool.ok, f"{name}, with the pool: {pool.why()}")
        if plain.ok and pool.ok:
            result.expect(plain.out == pool.out, f"{name}: {plain.out.strip()!r} became {pool.out.strip()!r}")
            result.expect(pool.pooled > 0 or not pooled, f"{name}: nothing was pooled")
