"""Real training, unmodified: speed, losses and memory of PyTorch's default and of the pool in its modes, alternating."""
import re
import statistics

from . import bench as b

TITLE = "Training workloads"

WORKLOADS = ("ernie", "gpt_varlen", "resnet_multires")
GROWING = ("ernie", "gpt_varlen")  # those that auto_growth is shown on
MOST_TIME = 1.03  # of the default's median
MOST_RESERVED = 1.10  # of live, with auto_growth
LOSS_TOLERANCE = 1e-3  # relative, beside the default's own spread

ASYNC = {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}
NO_CACHE = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
GROWTH = {"GPUPOOL_POOL_STRATEGY": "auto_growth"}
DEFAULT = "PyTorch default"
FIRST = {DEFAULT: (b.PLAIN, {}), "pool, cudaMallocAsync": (b.POOL, ASYNC), "pool, no PyTorch cache": (b.POOL, NO_CACHE)}
SECOND = {DEFAULT: (b.PLAIN, {}), "pool, PyTorch's cache": (b.POOL, {})}
GROWN = {"auto_growth, cudaMallocAsync": (b.POOL, {**ASYNC, **GROWTH}), "auto_growth, no PyTorch cache": (b.POOL, {**NO_CACHE, **GROWTH})}

LINE = re.compile(r": ([\d.]+) s, last loss ([-\d.naif]+), live peak (\d+) MiB, reserved peak (\d+) MiB")


class Run:
    def __init__(self, outcome):
        seconds, loss, self.torch_live, self.torch_reserved = map(float, LINE.search(outcome.out).groups())
        self.seconds, self.loss, self.pool = seconds, loss, outcome.pool


def plan(bench):
    """Every run in order: the modes alternate, and what matters most comes first, should the time run out."""
    workloads = WORKLOADS[:1] if bench.quick else WORKLOADS
    if bench.modes:
        wanted = [mode for mode in {**FIRST, **SECOND, **GROWN}.items() if any(name in mode[0] for name in bench.modes)]
        return [(workload, mode) for workload in workloads for mode in wanted] * bench.rounds
    first = [(workload, mode) for workload in workloads for mode in FIRST.items()]
    second = [(workload, mode) for workload in workloads
              for mode in (*SECOND.items(), *(GROWN.items() if workload in GROWING else ()))]
    return first + second + (first + second) * (bench.rounds - 1)


def measure(bench, result):
    runs = {}
    left_out = 0
    for workload, (name, (mode, settings)) in plan(bench):
        known = runs.setdefault(workload, {}).setdefault(name, [])
        # As long as the longest run so far, and then some.
        if bench.left() < measure.longest + 3:
            left_out += 1
            continue
        outcome = bench.run(mode, [bench.python, b.PROGRAMS / "workloads" / "workload.py", workload], settings, timeout=min(120, bench.left()))
        measure.longest = max(measure.longest, outcome.seconds)
        if result.expect(outcome.ok and LINE.search(outcome.out), f"{workload}, {name}: {outcome.why()}"):
            known.append(Run(outcome))
            if mode == b.POOL:
                result.expect(outcome.pooled > 0, f"{workload}, {name}: nothing was pooled")
    if left_out:
        result.note(f"{left_out} of {len(plan(bench))} runs left out, for the time was up")
    return runs


measure.longest = 20.0


def shown(name, runs, usual):
    pool = runs[-1].pool
    seconds = statistics.median(run.seconds for run in runs)
    row = [name, f"{seconds:.2f}", f"{seconds / usual:.3f}", f"{runs[-1].loss:.4f}", len(runs)]
    if not pool:
        return row + [f"{runs[-1].torch_reserved:,.0f}", f"{runs[-1].torch_live:,.0f}", "", f"{runs[-1].torch_reserved / runs[-1].torch_live:.3f}",
                      *[""] * 6]
    reserved, live, needed = (pool[f"{gauge}.peak"] / b.MIB for gauge in ("reserved", "live", "needed"))
    return row + [f"{reserved:,.0f}", f"{live:,.0f}", f"{needed:,.0f}", f"{needed / live:.3f}", pool["fences"], pool["host_waits"],
                  f"{pool['host_wait_ns'] / 1e6:.0f}", pool["migrations"], pool["growth_steps"], f"{pool['pool_ns'] / 1e6:.0f}"]


def judge(result, workload, name, runs, default):
    losses = [run.loss for run in default]
    slack = LOSS_TOLERANCE * max(map(abs, losses))
    for run in runs:
        result.expect(min(losses) - slack <= run.loss <= max(losses) + slack,
                      f"{workload}, {name}: loss {run.loss}, the default's {min(losses)} to {max(losses)}")
    seconds = statistics.median(run.seconds for run in runs)
    usual = statistics.median(run.seconds for run in default)
    result.expect(seconds <= MOST_TIME * usual, f"{workload}, {name}: {seconds:.2f} s, {seconds / usual:.3f} x the default's {usual:.2f} s")
    if name.startswith("auto_growth"):
        ratio = max(run.pool["reserved.peak"] / run.pool["live.peak"] for run in runs)
        result.expect(ratio <= MOST_RESERVED, f"{workload}, {name}: reserved is {ratio:.3f} x live")


def check(bench, result):
    runs = measure(bench, result)
    for workload, modes in runs.items():
        default = modes.get(DEFAULT)
        rows = result.table(f"{workload}: seconds of the steps (median), memory in MiB; ratio is needed / live, for PyTorch reserved / live",
                            ["mode", "s", "x default", "last loss", "runs", "reserved", "live", "needed", "ratio", "fences", "host waits",
                             "waited ms", "migrations", "growth steps", "pool ms"])
        if not default:
            result.expect(False, f"{workload}: no run of the default")
            continue
        if len(default) < 2:
            result.note(f"{workload}: one run of the default only, its spread is not known")
        for name, of in modes.items():
            if of:
                rows.append(shown(name, of, statistics.median(run.seconds for run in default)))
                if name != DEFAULT:
                    judge(result, workload, name, of, default)
