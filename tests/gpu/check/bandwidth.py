"""Copies between large blocks are as fast on the pool's handles as on cudaMalloc's memory; on those that small blocks left behind, not much slower."""
import json
import statistics

from . import bench as b
from .machine import said

TITLE = "Speed of copies on the card"

LEAST, LEAST_AFTER = 0.98, 0.8  # of the driver's; after small blocks: docs/decisions/0026
BLOCK, BEFORE = 16 << 10, 60 << 10  # MiB, on a card of
CARD = 143_771  # MiB
GROWTH = {"GPUPOOL_POOL_STRATEGY": "auto_growth"}
# Preload, settings, and the sizes in MiB of the blocks that came and went before.
MODES = {
    "driver": (b.PLAIN, {}, ()),
    "reserved up front": (b.POOL, {}, ()),
    "auto_growth": (b.POOL, GROWTH, ()),
    "auto_growth, after blocks of 1 to 9 MiB": (b.POOL, GROWTH, (1, 9)),
    "auto_growth, after blocks of 32 to 100 MiB": (b.POOL, GROWTH, (32, 100)),
}


def sizes(bench):
    """Of the two blocks, and of all that comes and goes before, in MiB; smaller on a smaller card."""
    if bench.sim:
        return 128, 512
    total = said("nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits").split()
    share = min(1.0, int(total[0]) / CARD) if total else 1.0
    return int(BLOCK * share), int(BEFORE * share)


def check(bench, result):
    program = bench.compile("bandwidth", "bandwidth.cpp", bench.cuda_library("libcuda.so", "libcuda.so.1"))
    block, before = sizes(bench)
    copies = 3 if bench.sim else 30
    rounds = 1 if bench.sim or bench.quick else max(2, min(3, bench.rounds))
    speeds, pools = {name: [] for name in MODES}, {}
    for _ in range(rounds):
        for name, (mode, settings, small) in MODES.items():
            outcome = bench.run(mode, [program, block, copies, *((before, *small) if small else ())], settings)
            if not result.expect(outcome.ok, f"{name}: {outcome.out.strip()} {outcome.why()}"):
                continue
            found = json.loads(outcome.out)
            result.expect(found["right"], f"{name}: wrong bytes")
            speeds[name].append(found["gb_per_s"])
            pools[name] = outcome.pool
            if small:
                held = outcome.pool["reserved.peak"] / b.MIB
                result.expect(held < before + small[1] + block, f"{name}: {held:,.0f} MiB held, so the large blocks lie beside what the small ones left")
    medians = {name: statistics.median(of) for name, of in speeds.items() if of}
    rows = result.table(f"Copies from one block of {block:,} MiB to another, GB/s read and written (median of {copies} copies, then of {rounds} runs, in alternation)",
                        ["memory", "GB/s", "x driver", "each run", "reserved, MiB", "growth steps", "migrations"])
    for name, speed in medians.items():
        pool = pools[name]
        ratio = speed / medians.get("driver", float("nan"))
        rows.append([name, f"{speed:,.0f}", f"{ratio:.3f}", " ".join(f"{each:,.0f}" for each in speeds[name]),
                     *((f"{pool['reserved.peak'] / b.MIB:,.0f}", pool["growth_steps"], pool["migrations"]) if pool else [""] * 3)])
        least = LEAST_AFTER if MODES[name][2] else LEAST
        result.expect(bench.sim or ratio >= least, f"{name}: {speed:,.0f} GB/s, {ratio:.3f} x the driver's")
