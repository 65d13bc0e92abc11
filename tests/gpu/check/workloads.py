"""Real training, unmodified: speed, losses and memory of PyTorch's default and of the pool in its modes, alternating. While one program
runs, the next one loads its modules, and waits: several seconds of each run, which then fall beside the other's own beginning."""
import concurrent.futures
import contextlib
import re
import statistics
import time

from . import bench as b

TITLE = "Training workloads"

WORKLOADS = ("ernie", "gpt_varlen", "resnet_multires")
GROWING = ("ernie", "gpt_varlen")  # those that auto_growth is shown on
MOST_TIME = 1.03  # of the default's median
GOAL, GOAL_EACH = 1.00, 1.02  # of the default beside it: the median of all alternations, and each
LONGEST = 120  # seconds, of one run
GUESS = 20  # seconds, of a workload that has not run yet
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


PROGRAM = b.PROGRAMS / "workloads" / "workload.py"
FIRST_STEP = re.compile(r"first step after ([\d.]+) s")


class Run:
    """What one program printed and its pool reported. `beside`: the seconds of the default's last run before it, None if there is none."""

    def __init__(self, outcome, elapsed, beside):
        seconds, loss, self.torch_live, self.torch_reserved = map(float, LINE.search(outcome.out).groups())
        first = FIRST_STEP.search(outcome.out)
        self.seconds, self.loss, self.pool, self.elapsed = seconds, loss, outcome.pool, elapsed
        self.first_step = float(first[1]) if first else None
        self.ratio = seconds / beside if beside else None


class Ahead:
    """A run whose program loads its modules, and then waits for the file that `finish` makes."""

    def __init__(self, bench, executor, number, workload, name, how):
        self.workload, self.name, self.mode = workload, name, how[0]
        self.gate = bench.work / f"begin{number}"
        command = [bench.python, PROGRAM, workload, "--after", self.gate]
        self.outcome = executor.submit(bench.run, self.mode, command, how[1], timeout=2 * LONGEST)

    def finish(self):
        """How it ended, and the seconds that this took."""
        start = time.monotonic()
        self.gate.touch()
        return self.outcome.result(), time.monotonic() - start


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
    runs, longest, left_out = {}, {}, 0
    with contextlib.ExitStack() as stack:
        executor = stack.enter_context(concurrent.futures.ThreadPoolExecutor(2))
        current = None
        for number, step in enumerate([*plan(bench), None]):
            following = None
            if step:
                workload, (name, how) = step
                runs.setdefault(workload, {}).setdefault(name, [])
                # As long as each workload's longest run so far, and then some.
                needed = sum(longest.get(each, GUESS) for each in ([current.workload] if current else []) + [workload])
                if bench.left() < needed + 3:
                    left_out += 1
                    continue
                following = Ahead(bench, executor, number, workload, name, how)
                stack.callback(following.gate.touch)  # whatever happens here, nobody waits for ever
            if current:
                take(current, runs, longest, result)
            current = following
    if left_out:
        result.note(f"{left_out} of {len(plan(bench))} runs left out, for the time was up")
    return runs


def take(run, runs, longest, result):
    outcome, elapsed = run.finish()
    longest[run.workload] = max(longest.get(run.workload, 0), elapsed)
    if result.expect(outcome.ok and LINE.search(outcome.out), f"{run.workload}, {run.name}: {outcome.why()}"):
        default = runs[run.workload].get(DEFAULT)
        runs[run.workload][run.name].append(Run(outcome, elapsed, default[-1].seconds if default and run.name != DEFAULT else None))
        if run.mode == b.POOL:
            result.expect(outcome.pooled > 0, f"{run.workload}, {run.name}: nothing was pooled")


COLUMNS = ["mode", "s", "x default", f"median of alternations, goal {GOAL:.2f}", f"worst, goal {GOAL_EACH:.2f}", "each", "first step after, s", "last loss", "runs",
           "reserved", "live", "needed", "ratio", "fences", "host waits", "waited ms", "migrations", "growth steps", "pool ms, of the process's time"]


def shown(name, runs, usual):
    pool = runs[-1].pool
    seconds = statistics.median(run.seconds for run in runs)
    ratios = [run.ratio for run in runs if run.ratio]
    first = [run.first_step for run in runs if run.first_step is not None]
    row = [name, f"{seconds:.2f}", f"{seconds / usual:.3f}"]
    row += [f"{statistics.median(ratios):.3f}", f"{max(ratios):.3f}", " ".join(f"{ratio:.3f}" for ratio in ratios)] if ratios else [""] * 3
    row += [f"{statistics.median(first):.2f}" if first else "", f"{runs[-1].loss:.4f}", len(runs)]
    if not pool:
        return row + [f"{runs[-1].torch_reserved:,.0f}", f"{runs[-1].torch_live:,.0f}", "", f"{runs[-1].torch_reserved / runs[-1].torch_live:.3f}",
                      *[""] * 6]
    reserved, live, needed = (pool[f"{gauge}.peak"] / b.MIB for gauge in ("reserved", "live", "needed"))
    return row + [f"{reserved:,.0f}", f"{live:,.0f}", f"{needed:,.0f}", f"{needed / live:.3f}", pool["fences"], pool["host_waits"],
                  f"{pool['host_wait_ns'] / 1e6:.0f}", pool["migrations"], pool["growth_steps"],
                  share(pool["pool_ns"], runs[-1].elapsed)]


def share(nanoseconds, seconds):
    """Milliseconds, and how much of the process's time that is."""
    return f"{nanoseconds / 1e6:.0f} ({nanoseconds / 1e7 / seconds:.1f} %)"


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
        rows = result.table(f"{workload}: seconds of the steps (median), memory in MiB; ratio is needed / live, for PyTorch reserved / live; an alternation "
                            "is a run beside the default's run just before it", COLUMNS)
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
