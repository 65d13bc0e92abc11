"""Host time of freeing and allocating in pairs, beside the driver's own."""
import json
import statistics

from . import bench as b

TITLE = "Latency of pairs"

KINDS = {"plain": "cudaMalloc + cudaFree", "ordered": "cudaMallocAsync + cudaFreeAsync"}


def check(bench, result):
    library = bench.cuda_library("libcudart.so", "libcudart.so.13")
    program = bench.compile("pairs", "pairs.cpp", library, f"-Wl,-rpath,{library.parent}")
    small = bench.sim or bench.quick
    lives = (100, 1000) if bench.sim else (1000, 10_000) if small else (1000, 10_000, 100_000)
    threads = (1, 2) if bench.sim else (1, 4, 16) if bench.rounds == 1 else (1, 2, 4, 8, 16)
    pairs = 500 if bench.sim else 20_000
    rounds = 1 if small else bench.rounds
    settings = {"GPUPOOL_POOL_SIZE": "2GiB" if bench.sim else "16GiB"}

    def medians(kind, live, count):
        """The median over rounds of each figure, driver and pool in alternation."""
        figures = {b.PLAIN: [], b.POOL: []}
        for _ in range(rounds):
            for mode, into in figures.items():
                outcome = bench.run(mode, [program, kind, live, pairs, count], settings, timeout=60)
                if not outcome.ok:
                    raise b.Failed(f"pairs {kind}, {live} live, {count} threads, {mode}: {outcome.why()}")
                into.append(json.loads(outcome.out))
                if mode == b.POOL:
                    result.expect(outcome.pooled > 0, f"pairs {kind}: nothing was pooled")
        return {mode: {key: statistics.median(each[key] for each in of) for key in of[0]} for mode, of in figures.items()}

    rows = result.table(f"A free and an allocation of 0.5-100 kB, one thread, microseconds (median of {pairs:,} pairs, rounds: {rounds})",
                        ["calls", "live blocks", "driver", "gpupool", "driver p99", "gpupool p99"])
    for kind, calls in KINDS.items():
        for live in lives:
            got = medians(kind, live, 1)
            rows.append([calls, f"{live:,}", *(f"{got[mode][key] / 1000:.2f}" for key in ("median_ns", "p99_ns")
                                               for mode in (b.PLAIN, b.POOL))])
            result.expect(bench.sim or got[b.POOL]["median_ns"] <= got[b.PLAIN]["median_ns"],
                          f"{calls}, {live:,} live: {got[b.POOL]['median_ns']:.0f} ns, the driver takes {got[b.PLAIN]['median_ns']:.0f}")
    rows = result.table(f"Threads with {lives[0]:,} live blocks and a stream each, microseconds of a pair (pairs per second in all)",
                        ["calls", "threads", "driver", "gpupool"])
    for kind, calls in KINDS.items():
        for count in threads:
            got = medians(kind, lives[0], count)
            rows.append([calls, count, *(f"{got[mode]['median_ns'] / 1000:.2f} ({got[mode]['pairs_per_s']:,.0f})"
                                         for mode in (b.PLAIN, b.POOL))])
