"""Host time of pairs beside other allocators that people use."""
import importlib.util
import json
import pathlib
import statistics

from . import bench as b

TITLE = "Pairs beside other allocators"

BUSY_THREADS = 8


def folder_of(module):
    """Where a Python package lies, or None."""
    found = importlib.util.find_spec(module)
    return pathlib.Path(found.submodule_search_locations[0]) if found and found.submodule_search_locations else None


def linked(*libraries):
    return [option for library in libraries for option in (f"-L{library.parent}", f"-l:{library.name}", f"-Wl,-rpath,{library.parent}")]


def peers(bench, cudart):
    """Name, command and whether the pool is preloaded, of each allocator that can be had here; None for a command: what is missing."""
    runtime = linked(cudart)
    pairs = bench.compile("pairs", "pairs.cpp", *runtime)
    yield "cudaMalloc, driver", [pairs, "plain"], b.PLAIN
    yield "cudaMalloc, gpupool", [pairs, "plain"], b.POOL
    yield "cudaMallocAsync, driver", [pairs, "ordered"], b.PLAIN
    yield "cudaMallocAsync, gpupool", [pairs, "ordered"], b.POOL
    cccl = next((place for place in (bench.include / "cccl", bench.include) if (place / "cub" / "util_allocator.cuh").exists()), None)
    yield "CUB CachingDeviceAllocator", cccl and [bench.compile("cub", "peers/cub.cpp", f"-isystem{cccl}", *runtime)], b.PLAIN
    rmm, logger = folder_of("librmm"), folder_of("rapids_logger")
    program = rmm and logger and bench.compile(
        "rmm", "peers/rmm.cpp", "-w", f"-I{rmm / 'include'}", f"-I{rmm / 'include' / 'rapids'}", f"-I{logger / 'include'}",
        *linked(rmm / "lib64" / "librmm.so", logger / "lib64" / "librapids_logger.so"), *runtime)
    for kind in ("pool", "arena", "async"):
        yield f"RMM {kind}", program and [program, kind], b.PLAIN
    torch = folder_of("torch")
    yield "PyTorch's cache, from C++", torch and [bench.compile(
        "torch_pairs", "peers/torch.cpp", "-w", f"-isystem{torch / 'include'}",
        *linked(torch / "lib" / "libc10_cuda.so", torch / "lib" / "libc10.so"), *runtime)], b.PLAIN


def check(bench, result):
    cudart = bench.cuda_library("libcudart.so", "libcudart.so.13")
    lives = (100,) if bench.sim else (1000, 10_000) if bench.quick else (1000, 10_000, 100_000)
    pairs = 300 if bench.sim else 20_000
    rounds = 1 if bench.sim or bench.quick else max(3, bench.rounds)
    there = []
    for name, command, mode in peers(bench, cudart):
        if command:
            there.append((name, command, mode))
        else:
            result.note(f"{name}: not there")
    sizes = [(live, 1) for live in lives] + [(lives[0], 2 if bench.sim else BUSY_THREADS)]
    figures = {}
    for _ in range(rounds):
        for (live, threads), (name, command, mode) in ((size, peer) for size in sizes for peer in there):
            outcome = bench.run(mode, [*command, live, pairs, threads], {"GPUPOOL_POOL_SIZE": "2GiB" if bench.sim else "16GiB"}, timeout=90)
            if result.expect(outcome.ok, f"{name}, {live} live, {threads} threads: {outcome.why()}"):
                figures.setdefault((name, live, threads), []).append(json.loads(outcome.out))
            if mode == b.POOL:
                result.expect(outcome.pooled > 0, f"{name}: nothing was pooled")

    def median(name, live, threads, key):
        known = figures.get((name, live, threads))
        return statistics.median(each[key] for each in known) if known else float("nan")

    rows = result.table(f"A free and an allocation of 0.5-100 kB, microseconds (medians of {pairs:,} pairs and {rounds} rounds)",
                        ["allocator", *(f"{live:,} live" for live in lives), f"p99 at {lives[-1]:,}", f"million pairs/s, {sizes[-1][1]} threads"])
    middle = lives[len(lives) // 2]
    result.chart("peers", f"A free and an allocation of 0.5-100 kB, {middle:,} live blocks", "us",
                 [(name, round(median(name, middle, 1, "median_ns") / 1000, 2), mode == b.POOL) for name, _, mode in there if (name, middle, 1) in figures])
    for name, *_ in there:
        rows.append([name, *(f"{median(name, live, 1, 'median_ns') / 1000:.2f}" for live in lives),
                     f"{median(name, lives[-1], 1, 'p99_ns') / 1000:.2f}", f"{median(name, *sizes[-1], 'pairs_per_s') / 1e6:.2f}"])
