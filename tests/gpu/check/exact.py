"""A pool of exactly the size that `gpupool size` finds for a program's trace serves it, without growth or the driver's help; and programs
end under a limit that PyTorch's own cache cannot live with. scripts/gpu-traces does the same with programs of more kinds."""
import importlib.util
import json

from . import bench as b
from .workloads import LINE, WORKLOADS

TITLE = "Pools of the size that replay finds"

PROGRAMS = b.PROGRAMS / "workloads"
TRAINING = {name: ["workload.py", name] for name in WORKLOADS}
CAPS = (1.02, 1.05, 1.10)  # of what lives
LONGEST = 100  # seconds for one program
RUN_COLUMNS = ["workload", "how", "s", "last loss", "live", "reserved", "ratio", "requests", "migrations", "growth steps", "pool ms"]
CAP_COLUMNS = ["workload", "limit", "x live", "PyTorch without limit", "PyTorch alone", "gpupool", "reserved"]


def mib(count):
    return f"{count / b.MIB:,.0f}"


class Workload:
    """One program, and what is known of it so far. Each part adds rows to a table, and what does not hold to the result."""

    def __init__(self, bench, result, out, name, command, own_cache=(), can_cap=False):
        """`own_cache`: arguments that leave the program its framework's cache; `can_cap`: it takes --cap MIB for PyTorch's."""
        self.bench, self.result, self.name, self.command = bench, result, name, command
        self.own_cache, self.can_cap = list(own_cache), can_cap
        self.out = out
        self.trace = out / f"{name}.trace"
        self.torch_live = self.torch_reserved = None  # MiB, as PyTorch says
        self.live = None  # bytes, as the pool says
        self.only_with_the_pool = False  # does it end under a limit

    def expect(self, holds, part, outcome):
        return self.result.expect(holds, f"{self.name}, {part}: {outcome.why()}")

    def with_pool(self, options, arguments=()):
        """Under `gpupool run`; what it reports is read as for every check."""
        command = [self.bench.build / "bin" / "gpupool", "run", "--unify", *options, "--", *self.command, *arguments]
        return self.bench.run(b.RUN, command, {}, LONGEST)

    def own(self, table):
        outcome = self.bench.run(b.PLAIN, self.command + self.own_cache, {}, LONGEST)
        if not self.expect(outcome.ok, "own", outcome):
            return
        peaks = LINE.search(outcome.out)
        if peaks:
            seconds, loss, self.torch_live, self.torch_reserved = (peaks[1], peaks[2], int(peaks[3]), int(peaks[4]))
            table.append([self.name, "its own cache", seconds, loss, f"{self.torch_live:,}", f"{self.torch_reserved:,}",
                          f"{self.torch_reserved / self.torch_live:.3f}", *[""] * 4])
        else:
            table.append([self.name, "its own cache", f"{outcome.seconds:.1f}", outcome.out.strip().splitlines()[-1][-60:], *[""] * 7])

    def pool_row(self, how, outcome):
        pool = outcome.pool
        peaks = LINE.search(outcome.out)
        seconds, loss = (peaks[1], peaks[2]) if peaks else (f"{outcome.seconds:.1f}", outcome.out.strip().splitlines()[-1][-60:])
        return [self.name, how, seconds, loss, mib(pool["live.peak"]), mib(pool["reserved.peak"]),
                f"{pool['reserved.peak'] / max(pool['live.peak'], 1):.3f}", pool["requests"], pool["migrations"], pool["growth_steps"],
                f"{pool['pool_ns'] / 1e6:.0f}"]

    def traced(self, table):
        # A file for each process; the program's is the largest.
        outcome = self.with_pool(["--trace", self.out / f"{self.name}-%p.trace", "--strategy", "auto_growth"])
        recorded = sorted(self.out.glob(f"{self.name}-*.trace"), key=lambda file: file.stat().st_size)
        if recorded:
            recorded[-1].replace(self.trace)
        for other in recorded[:-1]:
            other.unlink()
        if not self.expect(outcome.ok and bool(outcome.pool), "traced", outcome):
            return
        self.live = outcome.pool["live.peak"]
        table.append(self.pool_row("auto_growth", outcome))
        ratio = outcome.pool["reserved.peak"] / max(self.live, 1)
        self.result.expect(ratio <= 1.05, f"{self.name}: auto_growth held {ratio:.3f} x live")
        self.result.expect(self.trace.exists(), f"{self.name}: no trace was written")
        if self.trace.exists():
            self.result.note(f"{self.name}: the trace has {self.trace.stat().st_size:,} bytes")

    def size_by_replay(self):
        done = self.bench.call([self.bench.build / "bin" / "gpupool", "size", self.trace, "--json"], self.bench.environment(b.PLAIN, {}, None), 60)
        return json.loads(done.out)["size_bytes"] if self.expect(done.ok, "size", done) else None

    def sized(self, table):
        size = self.size_by_replay() if self.trace.exists() else None
        if not size:
            return
        outcome = self.with_pool(["--size", str(size), "--max", str(size)])
        if not self.expect(outcome.ok and bool(outcome.pool), f"a pool of {size}", outcome):
            return
        pool = outcome.pool
        table.append(self.pool_row(f"a pool of {mib(size)} MiB", outcome))
        refused = pool["oom_capacity"] + pool["oom_fragmentation"]
        self.result.expect(pool["growth_steps"] == 0, f"{self.name}: the pool of {size} grew {pool['growth_steps']} times")
        self.result.expect(refused == 0, f"{self.name}: the pool of {size} refused {refused} requests")
        self.result.expect(not past(outcome), f"{self.name}: past the pool of {size} went {past(outcome)}")

    def capped(self, table):
        """From the tightest limit on: the first that the pool can live with, against PyTorch alone with the same."""
        if not self.can_cap or not self.torch_live or self.torch_reserved < 1.12 * self.torch_live:
            return
        for factor in CAPS:
            cap = int(self.torch_live * factor)
            alone = self.bench.run(b.PLAIN, [*self.command, "--cap", cap], {}, LONGEST)
            pooled = self.with_pool(["--strategy", "auto_growth", "--max", f"{cap}MiB"])
            lives = pooled.ok and not past(pooled)  # what the pool may not hold the driver serves, if it can
            table.append([self.name, f"{cap:,}", f"{factor:.2f}", f"{self.torch_reserved:,}", ended(alone),
                          "needs more" if pooled.ok and not lives else ended(pooled), mib(pooled.pool.get("reserved.peak", 0))])
            if lives:
                if not alone.ok:
                    self.result.expect("OutOfMemory" in alone.err, f"{self.name}, capped alone: {alone.why()}")
                self.only_with_the_pool = not alone.ok
                return
        self.result.expect(False, f"{self.name}: no limit of {CAPS} x live was enough: {pooled.why()}")


def past(outcome):
    """What the driver served of the card's memory beside the pool."""
    return [row for row in outcome.report.get("past_the_pool", []) if row["api"].startswith("cuMemAlloc") and "Host" not in row["api"]]


def ended(outcome):
    if outcome.ok:
        return f"ends, {outcome.seconds:.0f} s"
    return "out of memory" if "out of memory" in outcome.err.lower() else "fails"


def workloads(bench, result):
    out = bench.work / "traces"
    out.mkdir()
    if bench.sim:
        program = bench.compile("overflow", "overflow.cpp", bench.cuda_library("libcuda.so", "libcuda.so.1"))
        return [Workload(bench, result, out, "blocks", [program, bench.kernels(), 24, 4, 2])]
    names = list(TRAINING)[:1] if bench.quick else TRAINING
    return [Workload(bench, result, out, name, [bench.python, PROGRAMS / TRAINING[name][0], *TRAINING[name][1:]], can_cap=True) for name in names]


def check(bench, result):
    if not bench.sim and not importlib.util.find_spec("torch"):
        return result.note("PyTorch is not there")
    every = workloads(bench, result)
    runs = result.table("Seconds (several at once but in pools of a size), memory in MiB; ratio is reserved / live", RUN_COLUMNS)
    caps = result.table("A limit between what lives and what PyTorch's cache takes, MiB", CAP_COLUMNS)

    def record(workload):
        workload.own(runs)
        workload.traced(runs)

    bench.together([lambda each=each: record(each) for each in every], len(every))
    for each in every:
        each.sized(runs)
    bench.together([lambda each=each: each.capped(caps) for each in every], len(every))
    order = [each.name for each in every]
    for table in (runs, caps):
        table.sort(key=lambda row: order.index(row[0]))
    if caps:
        result.expect(any(each.only_with_the_pool for each in every), "no limit was found that only the pool can live with")
