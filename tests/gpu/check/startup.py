"""What the pool costs at the beginning and the end of a program: the reservation, the first allocation, the exit."""
import json
import statistics
import time

from . import bench as b

TITLE = "Beginning and end"

FIRST_ALLOCATION_MS = 5
FIRST_CALL_MS = 2  # more than without the preload
END_MS = 50  # more than without the preload
RESERVATION = 1.2  # of one cudaMalloc of that size
KEYS = ("first_call_ms", "first_allocation_ms", "large_ms", "end_ms")


def check(bench, result):
    library = bench.cuda_library("libcudart.so", "libcudart.so.13")
    program = bench.compile("startup", "startup.cpp", f"-L{library.parent}", f"-l:{library.name}", f"-Wl,-rpath,{library.parent}")
    size = (1 << 30) if bench.sim else (120 << 30)
    large = size - (64 << 20)  # the pool holds the first MiB, too
    rounds = 1 if bench.sim else 3 if bench.quick else 7
    modes = {"driver": (b.PLAIN, {}), "gpupool": (b.POOL, {"GPUPOOL_POOL_SIZE": str(size), "GPUPOOL_STATS_SUMMARY": "off"})}
    figures = {name: {key: [] for key in KEYS} for name in modes}
    for _ in range(rounds):
        for name, (mode, settings) in modes.items():
            outcome = bench.run(mode, [program, large], settings, timeout=60)
            ended = time.monotonic()
            if not result.expect(outcome.ok, f"{name}: {outcome.why()}"):
                return
            said = json.loads(outcome.out)
            said["end_ms"] = (ended - said["end_s"]) * 1000
            for key in KEYS:
                figures[name][key].append(said[key])
    driver, pool = ({key: statistics.median(each) for key, each in figures[name].items()} for name in modes)
    rows = result.table(f"Milliseconds, {size >> 30} GiB in all (median of {rounds} runs, in alternation)", ["what", *modes])
    for key, what in zip(KEYS, ("first call", "first allocation, 1 MiB", "one block of nearly all, right after it", "from the end of main to the end of the process")):
        rows.append([what, f"{driver[key]:.1f}", f"{pool[key]:.1f}"])
    if bench.sim:
        return
    result.expect(pool["first_call_ms"] <= driver["first_call_ms"] + FIRST_CALL_MS, f"the first call takes {pool['first_call_ms']:.1f} ms, without {driver['first_call_ms']:.1f}")
    result.expect(pool["first_allocation_ms"] <= FIRST_ALLOCATION_MS, f"the first allocation takes {pool['first_allocation_ms']:.1f} ms")
    taken, usual = (each["first_allocation_ms"] + each["large_ms"] for each in (pool, driver))
    result.expect(taken <= RESERVATION * usual, f"the reservation takes {taken:.1f} ms, one cudaMalloc {usual:.1f}")
    result.expect(pool["end_ms"] <= driver["end_ms"] + END_MS, f"the end takes {pool['end_ms']:.1f} ms, without {driver['end_ms']:.1f}")
