"""pool.guard=on finds what a kernel writes behind a block's end, poisons what is freed, and changes no result."""
import importlib.util
import re

from . import bench as b
from .frameworks import ASYNC

TITLE = "Red zones"

GUARD = {"GPUPOOL_POOL_GUARD": "on", "GPUPOOL_LOG_LEVEL": "info", "GPUPOOL_POOL_SIZE": "1GiB"}
FOUND = re.compile(r"overrun: (\d+) bytes behind the end of block (0x[0-9a-f]+) .*offsets (\d+) to (\d+) of its (\d+) bytes; request \d+ of the "
                   r"pool, by (\w+);")
TOTAL = re.compile(r"guard: (\d+) freed blocks checked, (\d+) overrun, (\d+) not looked at")
CALLS = {"plain": "cuMemAlloc_v2", "ordered": "cuMemAllocAsync"}
RIGHT = (("PyTorch, two streams", "torch", ("torch_streams.py",), {}),
         ("PyTorch, two streams, cudaMallocAsync", "torch", ("torch_streams.py",), ASYNC),
         ("PyTorch, CUDA graphs, cudaMallocAsync", "torch", ("torch_graphs.py",), ASYNC), ("PyTorch, memory_stats, cudaMallocAsync", "torch",
                                                                                          ("torch_stats.py",), ASYNC),
         ("CuPy, malloc_async", "cupy", ("cupy_pools.py", "malloc_async"), {}))


def totals(outcome):
    return [tuple(map(int, found)) for found in TOTAL.findall(outcome.err)]


def own_program(bench, result, rows):
    program = bench.compile("guard", "guard.cpp", bench.cuda_library("libcuda.so", "libcuda.so.1"))
    for kind, call in CALLS.items():
        plain = bench.run(b.PLAIN, [program, bench.kernels(), kind])
        pool = bench.run(b.POOL, [program, bench.kernels(), kind, "stale"], GUARD)
        found = FOUND.findall(pool.err)
        block = re.search(r"overruns (0x[0-9a-f]+)", pool.err)
        rows.append([f"kernels, {kind}", pool.out.strip(), *(totals(pool) or [("none", "none", "none")])[0]])
        result.expect(plain.ok and plain.out == "guard: wrong 0\n", f"guard {kind}, without the pool: {plain.out.strip()} {plain.why()}")
        result.expect(pool.ok and pool.out == "guard: wrong 0, poisoned 4000 of 4000\n", f"guard {kind}: {pool.out.strip()} {pool.why()}")
        result.expect(block and found == [("16", block[1], "5000", "5015", "5000", call)], f"guard {kind}: found {found}: {pool.why()}")


def frameworks(bench, result, rows):
    for name, module, (program, *arguments), settings in RIGHT:
        if not importlib.util.find_spec(module):
            continue
        command = [bench.python, b.PROGRAMS / "frameworks" / program, *arguments]
        plain = bench.run(b.PLAIN, command, settings, timeout=90)
        pool = bench.run(b.POOL, command, {**settings, **GUARD, "GPUPOOL_POOL_SIZE": "4GiB"}, timeout=90)
        rows.append([name, pool.out.strip().replace("\n", " / ")[:60], *(totals(pool) or [("none", "none", "none")])[0]])
        result.expect(plain.ok, f"{name}, without the pool: {plain.why()}")
        result.expect(pool.ok, f"{name}, guarded: {pool.why()}")
        if plain.ok and pool.ok:
            result.expect(plain.out == pool.out, f"{name}: {plain.out.strip()!r} became {pool.out.strip()!r}")
        result.expect(not FOUND.search(pool.err), f"{name}: {FOUND.search(pool.err) and FOUND.search(pool.err)[0]}")
        keeps_its_own = not settings and module == "torch"  # PyTorch's cache, to the end
        result.expect(keeps_its_own or any(checked for checked, _, _ in totals(pool)), f"{name}: no block was checked: {pool.why()}")
    if importlib.util.find_spec("cupy"):
        pool = bench.run(b.POOL, [bench.python, b.PROGRAMS / "frameworks" / "cupy_overrun.py"], GUARD, timeout=90)
        block = re.search(r"overruns (0x[0-9a-f]+)", pool.err)
        found = FOUND.findall(pool.err)
        rows.append(["CuPy, a kernel of one's own", pool.out.strip(), *(totals(pool) or [("none", "none", "none")])[0]])
        result.expect(pool.ok and block and found == [("4", block[1], "4000", "4003", "4000", "cuMemAllocAsync")],
                      f"CuPy, a kernel of one's own: found {found}: {pool.why()}")


def check(bench, result):
    rows = result.table("pool.guard=on", ["program", "it says", "freed blocks checked", "overrun", "not looked at"])
    own_program(bench, result, rows)
    if not bench.sim:
        frameworks(bench, result, rows)
