"""Reuse across streams is right because of the fences, and the fences hold up nothing that came after the free."""
from . import bench as b

TITLE = "Fences"

# Small enough that the second block must take the first one's bytes.
TIGHT = {"GPUPOOL_POOL_SIZE": "36MiB", "GPUPOOL_POOL_MAX": "36MiB"}
KINDS = ("plain", "ordered")


def wrong_bytes(outcome):
    words = outcome.out.split()
    return {kind: int(words[words.index(kind) + 1]) for kind in KINDS} if outcome.ok and words[:1] == ["race:"] else None


def race(bench, result, image):
    program = bench.compile("race", "race.cpp", bench.cuda_library("libcuda.so", "libcuda.so.1"))
    times, rounds = (3, 3) if bench.sim else (10, 20)
    rows = result.table("A block that one stream reads while another gets it", ["allocator", "kind", "runs", "runs with wrong bytes"])
    for mode, title in ((b.PLAIN, "driver"), (b.POOL, "gpupool"), (b.UNFENCED, "gpupool compiled without its fences")):
        outcomes = [bench.run(mode, [program, image, rounds], TIGHT, timeout=60) for _ in range(1 if mode == b.PLAIN else times)]
        counts = []
        for outcome in outcomes:
            count = wrong_bytes(outcome)
            if result.expect(count is not None, f"race, {title}: {outcome.why()}"):
                counts.append(count)
        for kind in KINDS:
            corrupted = sum(count[kind] != 0 for count in counts)
            rows.append([title, kind, len(counts), corrupted])
            if mode == b.UNFENCED:
                result.expect(corrupted > 0, f"race, {kind}: without fences nothing went wrong, so the program shows nothing")
            else:
                result.expect(corrupted == 0, f"race, {kind}, {title}: wrong bytes in {corrupted} of {len(counts)} runs")
        if mode == b.POOL:
            result.expect(all(outcome.pooled > 0 for outcome in outcomes), "race: nothing was pooled")


def no_hang(bench, result, image):
    program = bench.compile("no_hang", "no_hang.cpp", bench.cuda_library("libcuda.so", "libcuda.so.1"))
    rows = result.table("Work after the free waits for the next owner's work", ["kind", "driver", "gpupool"])
    for kind in ("plain", "plain_threads", "ordered", "ordered_new_stream"):
        ends = {}
        for mode in (b.PLAIN, b.POOL):
            outcome = bench.run(mode, [program, image, kind], {"GPUPOOL_POOL_SIZE": "1GiB"}, timeout=20)
            ends[mode] = "ends" if outcome.ok and outcome.out == "no_hang: done\n" else "WRONG" if outcome.ok else "HANGS OR FAILS"
            # Driver 580 lets no thread launch while another is in cuMemFree, so there plain_threads hangs natively.
            if mode == b.POOL or kind != "plain_threads":
                result.expect(ends[mode] == "ends", f"no_hang {kind}, {mode}: {outcome.out.strip()} {outcome.why()}")
        rows.append([kind, ends[b.PLAIN], ends[b.POOL]])


def foreign_event(bench, result, image):
    if bench.sim:
        return  # it has no events between processes
    program = bench.compile("foreign_event", "foreign_event.cpp", bench.cuda_library("libcuda.so", "libcuda.so.1"))
    rows = result.table("Work after the free waits for an event of another process", ["kind", "driver", "gpupool"])
    for kind in ("plain", "ordered"):
        outcomes = [bench.run(mode, [program, image, kind], {"GPUPOOL_POOL_SIZE": "1GiB"}, timeout=30) for mode in (b.PLAIN, b.POOL)]
        ends = [outcome.out.strip() if outcome.ok else "HANGS OR FAILS" for outcome in outcomes]
        for outcome, end in zip(outcomes, ends):
            result.expect(end == "foreign_event: done", f"foreign_event {kind}: {outcome.out.strip()} {outcome.why()}")
        rows.append([kind, *ends])


def check(bench, result):
    image = bench.kernels()
    no_hang(bench, result, image)
    foreign_event(bench, result, image)
    race(bench, result, image)
