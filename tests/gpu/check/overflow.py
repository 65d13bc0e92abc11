"""Where the card is full and a program needs more, memory of the host stands in: slower, right, counted, and said once."""
import importlib.util
import json
import re

from . import bench as b
from .ballast import nearly_full

TITLE = "More than the card: memory of the host stands in"

NEEDS = 1.2  # x what is left of the card
REFUSED = 3
SAID = "from now on memory of the host stands in"
ASYNC = {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}
GROWTH = {"GPUPOOL_POOL_STRATEGY": "auto_growth"}


def host(mib):
    return {**GROWTH, "GPUPOOL_POOL_OVERFLOW": "host", "GPUPOOL_POOL_OVERFLOW_MAX": f"{mib}MiB"}


def expect_overflow(result, what, outcome):
    pool, times = outcome.pool, outcome.err.count(SAID)
    result.expect(pool.get("overflow.peak", 0) > 0 and pool.get("overflows", 0) > 0, f"{what}: the report counts no overflow")
    result.expect(times == 1, f"{what}: the log says {times} times that the host stands in")


def small_program(bench, result):
    program = bench.compile("overflow", "overflow.cpp", bench.cuda_library("libcuda.so", "libcuda.so.1"))
    blocks, mib, rounds = (24, 4, 2) if bench.sim else (72, 64, 3)
    needs = blocks * mib
    command = [program, bench.kernels(), blocks, mib, rounds]
    rows = result.table(f"{blocks} blocks of {mib} MiB, filled, exchanged by copies and checked, a half of them freed and taken again {rounds} times",
                        ["card", "memory", "ends", "milliseconds", "MiB on the card", "on the host", "free / total, MiB", "overflows"])

    def row(card, name, outcome, overflows):
        if not result.expect(outcome.ok, f"{name}: {outcome.out.strip()} {outcome.why()}"):
            return
        found = json.loads(outcome.out)
        rows.append([card, name, "right" if found["wrong"] == 0 else "WRONG", f"{found['ms']:.0f}", f"{found['card_mib']:,}", f"{found['host_mib']:,}",
                     f"{found['free_mib']:,} / {found['total_mib']:,}", outcome.pool.get("overflows", "")])
        result.expect(found["wrong"] == 0, f"{name}: {found['wrong']} wrong bytes")
        result.expect(found["card_mib"] + found["host_mib"] == needs, f"{name}: {found} is not {needs} MiB")
        result.expect(found["free_mib"] + found["card_mib"] <= found["total_mib"], f"{name}: free and used are more than the card: {found}")
        result.expect((found["host_mib"] > 0) == overflows, f"{name}: {found['host_mib']} MiB lie on the host")

    row("empty", "driver", bench.run(b.PLAIN, command), False)
    row("empty", "gpupool", bench.run(b.POOL, command, GROWTH), False)
    with nearly_full(bench, int(needs / NEEDS)) as (card, left):
        for name, mode, settings in (("driver", b.PLAIN, {}), ("gpupool", b.POOL, GROWTH)):
            outcome = bench.run(mode, command, {**card, **settings})
            result.expect(outcome.status == REFUSED, f"{name}: {needs} MiB of {left} were not refused: {outcome.out.strip()} {outcome.why()}")
            rows.append([f"{left:,} MiB left", name, outcome.out.strip(), *[""] * 5])
        name = "gpupool, pool.overflow=host"
        outcome = bench.run(b.POOL, command, {**card, **host(needs)})
        row(f"{left:,} MiB left", name, outcome, True)
        expect_overflow(result, name, outcome)


def training(bench, result):
    if bench.sim or not importlib.util.find_spec("torch"):
        return result.note("PyTorch is not there, or there is no card for it, so no training")
    command = [bench.python, b.PROGRAMS / "frameworks" / "torch_overflow.py"]
    said = re.compile(r"peak (\d+) MiB, ([\d.]+) s")
    plain = bench.run(b.PLAIN, command, {}, timeout=90)
    found = said.search(plain.err)
    if not result.expect(plain.ok and found, f"training, PyTorch alone: {plain.why()}"):
        return
    peak = int(found[1])
    rows = result.table(f"A training loop of {peak:,} MiB of live tensors", ["card", "memory", "result", "s of the steps", "overflow, MiB"])
    rows.append(["empty", "PyTorch alone", plain.out.strip(), found[2], ""])
    with nearly_full(bench, int(peak / NEEDS)) as (_, left):
        card = f"{left:,} MiB left"
        for name, mode, settings in (("PyTorch alone", b.PLAIN, {}), ("gpupool", b.POOL, {**ASYNC, **GROWTH})):
            outcome = bench.run(mode, command, settings, timeout=60)
            result.expect(not outcome.ok, f"training, {name}: {peak} MiB of {left} were not refused")
            rows.append([card, name, ending(outcome), "", ""])
        name = "gpupool, pool.overflow=host"
        outcome = bench.run(b.POOL, command, {**ASYNC, **host(peak)}, timeout=90)
        found = said.search(outcome.err)
        if result.expect(outcome.ok and found, f"training, {name}: {outcome.why()}"):
            rows.append([card, name, outcome.out.strip(), found[2], f"{outcome.pool.get('overflow.peak', 0) / b.MIB:,.0f}"])
            result.expect(outcome.out == plain.out, f"training, {name}: {plain.out.strip()!r} became {outcome.out.strip()!r}")
            expect_overflow(result, f"training, {name}", outcome)


def ending(outcome):
    return "ends" if outcome.ok else "out of memory" if "out of memory" in outcome.err.lower() else outcome.why()[-100:]


def check(bench, result):
    small_program(bench, result)
    training(bench, result)
