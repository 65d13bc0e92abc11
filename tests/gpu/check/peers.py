"""Host time of pairs beside other allocators that people use."""
import importlib.util
import pathlib
import statistics

from .pairs import ALONE, PAIRS, linked, play, settings_of

TITLE = "Pairs beside other allocators"

BUSY_THREADS = 8


def folder_of(module):
    """Where a Python package lies, or None."""
    found = importlib.util.find_spec(module)
    return pathlib.Path(found.submodule_search_locations[0]) if found and found.submodule_search_locations else None


def peers(bench, cudart):
    """Name, allocator and command of each that can be had here; None for a command: what is missing."""
    runtime = linked(cudart)
    pairs = bench.compile("pairs", "pairs.cpp", *runtime)
    for call, kind in (("cudaMalloc", "plain"), ("cudaMallocAsync", "ordered")):
        for allocator in ("driver", "gpupool", ALONE):
            yield f"{call}, {allocator}", allocator, [pairs, kind]
    cccl = next((place for place in (bench.include / "cccl", bench.include) if (place / "cub" / "util_allocator.cuh").exists()), None)
    yield "CUB CachingDeviceAllocator", "CUB", cccl and [bench.compile("cub", "peers/cub.cpp", f"-isystem{cccl}", *runtime)]
    rmm, logger = folder_of("librmm"), folder_of("rapids_logger")
    program = rmm and logger and bench.compile(
        "rmm", "peers/rmm.cpp", "-w", f"-I{rmm / 'include'}", f"-I{rmm / 'include' / 'rapids'}", f"-I{logger / 'include'}",
        *linked(rmm / "lib64" / "librmm.so", logger / "lib64" / "librapids_logger.so"), *runtime)
    for kind in ("pool", "arena", "async"):
        yield f"RMM {kind}", "RMM", program and [program, kind]
    torch = folder_of("torch")
    yield "PyTorch's cache, from C++", "PyTorch", torch and [bench.compile(
        "torch_pairs", "peers/torch.cpp", "-w", f"-isystem{torch / 'include'}",
        *linked(torch / "lib" / "libc10_cuda.so", torch / "lib" / "libc10.so"), *runtime)]


def check(bench, result):
    cudart = bench.cuda_library("libcudart.so", "libcudart.so.13")
    settings = settings_of(bench)
    lives = (100,) if bench.sim else (1000, 10_000) if bench.quick else (1000, 10_000, 100_000)
    rounds = 1 if bench.sim or bench.quick else max(3, bench.rounds)
    there = []
    for name, allocator, command in peers(bench, cudart):
        if command:
            there.append((name, allocator, command))
        else:
            result.note(f"{name}: not there")
    sizes = [(live, 1) for live in lives] + [(lives[0], 2 if bench.sim else BUSY_THREADS)]
    figures = {}
    for _ in range(rounds):
        for (live, threads), (name, allocator, command) in ((size, peer) for size in sizes for peer in there):
            got = play(bench, result, allocator, command, settings.get(allocator, {}), live, threads)
            if got:
                figures.setdefault((name, live, threads), []).append(got)

    def median(name, live, threads, key):
        known = figures.get((name, live, threads))
        return statistics.median(each[key] for each in known) if known else float("nan")

    rows = result.table(f"A free and an allocation of 0.5-100 kB, microseconds (medians of {PAIRS:,} pairs and {rounds} rounds)",
                        ["allocator", *(f"{live:,} live" for live in lives), f"p99 at {lives[-1]:,}", f"million pairs/s, {sizes[-1][1]} threads"])
    middle = lives[len(lives) // 2]
    result.chart("peers", f"A free and an allocation of 0.5-100 kB, {middle:,} live blocks", "us",
                 [(name, round(median(name, middle, 1, "median_ns") / 1000, 2), allocator == "gpupool") for name, allocator, _ in there if (name, middle, 1) in figures])
    for name, *_ in there:
        rows.append([name, *(f"{median(name, live, 1, 'median_ns') / 1000:.2f}" for live in lives),
                     f"{median(name, lives[-1], 1, 'p99_ns') / 1000:.2f}", f"{median(name, *sizes[-1], 'pairs_per_s') / 1e6:.2f}"])
