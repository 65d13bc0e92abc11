"""Host time of freeing and allocating in pairs, beside the driver's own and the runtime's share of it."""
import json
import re
import statistics

from . import bench as b

TITLE = "Latency of pairs"

KINDS = {"plain": "cudaMalloc + cudaFree", "ordered": "cudaMallocAsync + cudaFreeAsync"}
GOALS = {"plain": (0.80, 0.85, 0.95), "ordered": (0.30, 0.35, 0.45)}  # microseconds of the pool's pair, one for each count of live blocks
GOAL_AT_8 = 3  # times the driver's stream-ordered pairs per second, with eight threads
ALONE = "cudart alone"  # the runtime's own share: the driver's calls are answered at once
MODES = {"driver": b.PLAIN, "gpupool": b.POOL, ALONE: b.PLAIN}
PAIRS = 20_000


def linked(*libraries):
    return [option for library in libraries for option in (f"-L{library.parent}", f"-l:{library.name}", f"-Wl,-rpath,{library.parent}")]


def settings_of(bench):
    """The environment of each mode."""
    alone = bench.compile("cudart_alone.so", "peers/cudart_alone.cpp", "-shared", "-fPIC")
    pool = {"GPUPOOL_POOL_SIZE": "2GiB" if bench.sim else "16GiB"}
    return {name: {"LD_PRELOAD": str(alone)} if name == ALONE else pool for name in MODES}


def play(bench, result, name, command, settings, live, threads):
    """What one run printed, or None; every allocator plays by this, and is seen to be what it is called."""
    # With many threads a pair of the driver's takes a tenth of a millisecond.
    pairs = 500 if bench.sim else max(PAIRS // threads, PAIRS // 4)
    outcome = bench.run(MODES.get(name, b.PLAIN), [*command, live, pairs, threads], settings, timeout=90)
    what = f"{name}, {' '.join(map(str, command[1:]))}, {live} live, {threads} threads"
    if not result.expect(outcome.ok, f"{what}: {outcome.why()}"):
        return None
    if name == "gpupool":
        result.expect(outcome.pooled > 0, f"{what}: nothing was pooled")
    if name == ALONE:
        found = re.search(r"cudart_alone: (\d+) places", outcome.err)
        result.expect(found and int(found[1]) >= live * threads, f"{what}: the driver was asked for memory")
    return json.loads(outcome.out)


def check(bench, result):
    program = bench.compile("pairs", "pairs.cpp", *linked(bench.cuda_library("libcudart.so", "libcudart.so.13")))
    settings = settings_of(bench)
    lives = (100, 1000) if bench.sim else (1000, 10_000) if bench.quick else (1000, 10_000, 100_000)
    threads = (1, 2) if bench.sim else (1, 2, 4, 8, 16)
    rounds = 1 if bench.sim or bench.quick else bench.rounds

    def medians(kind, live, count):
        """The median over rounds of each figure, the modes in alternation; {} for a mode that has none."""
        figures = {name: [] for name in MODES}
        for _ in range(rounds):
            for name, into in figures.items():
                into.append(play(bench, result, name, [program, kind], settings[name], live, count))
        known = {name: [each for each in of if each] for name, of in figures.items()}
        return {name: {key: statistics.median(each[key] for each in of) for key in of[0]} if of else {} for name, of in known.items()}

    rows = result.table(f"A free and an allocation of 0.5-100 kB, one thread, microseconds (median of {PAIRS:,} pairs, rounds: {rounds})",
                        ["calls", "live blocks", *MODES, "goal of gpupool", "driver p99", "gpupool p99"])
    for kind, calls in KINDS.items():
        for live, goal in zip(lives, GOALS[kind]):
            got = medians(kind, live, 1)
            rows.append([calls, f"{live:,}", *(shown(got[name], "median_ns", 1000) for name in MODES), f"{goal:.2f}",
                         *(shown(got[name], "p99_ns", 1000) for name in ("driver", "gpupool"))])
            if got["driver"] and got["gpupool"]:
                ours, theirs = (got[name]["median_ns"] for name in ("gpupool", "driver"))
                result.expect(bench.sim or ours <= theirs, f"{calls}, {live:,} live: {ours:.0f} ns, the driver takes {theirs:.0f}")
    in_all = result.table(f"Threads with {lives[0]:,} live blocks and a stream each: million pairs per second in all",
                          ["calls", "by", *(f"threads: {count}" for count in threads)])
    each = result.table("The same: microseconds of a pair, median", ["calls", "by", *(f"threads: {count}" for count in threads)])
    for kind, calls in KINDS.items():
        # The driver's plain pairs with many threads take seconds a run, and nobody is proud of them.
        counts = threads if kind == "ordered" else (threads[0], threads[-2])
        got = {count: medians(kind, lives[0], count) for count in counts}
        for name in MODES:
            in_all.append([calls, name, *(shown(got.get(count, {}).get(name), "pairs_per_s", 1e6) for count in threads)])
            each.append([calls, name, *(shown(got.get(count, {}).get(name), "median_ns", 1000) for count in threads)])
        if kind == "ordered" and got.get(8, {}).get("driver") and got[8]["gpupool"]:
            ratio = got[8]["gpupool"]["pairs_per_s"] / got[8]["driver"]["pairs_per_s"]
            result.note(f"eight threads, stream-ordered: {ratio:.1f} x the driver's pairs per second; the goal is {GOAL_AT_8}")


def shown(figures, key, unit):
    return f"{figures[key] / unit:.2f}" if figures else ""
