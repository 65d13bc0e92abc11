"""Programs without CUDA do not notice the preload."""
import os
import statistics
import time

from . import bench as b

TITLE = "Programs without CUDA"

MOST_MICROSECONDS = 40
PYTHON = "import os, ctypes; print(len(os.listdir('/proc/self/fd')), len(os.listdir('/proc/self/task')), ctypes.get_errno())"


def median_start_us(bench, times):
    """Median time of /bin/true without and with the preload, in alternation."""
    environments = [bench.environment(mode, {}, bench.work) for mode in (b.PLAIN, b.POOL)]
    taken = [[], []]
    for _ in range(times):
        for environment, into in zip(environments, taken):
            start = time.perf_counter_ns()
            os.waitpid(os.posix_spawn("/bin/true", ["true"], environment), 0)
            into.append((time.perf_counter_ns() - start) / 1000)
    return [statistics.median(each) for each in taken]


def check(bench, result):
    probe = bench.compile("probe", "probe.cpp")
    commands = {
        "errno, threads, files": [probe],
        "true": ["/bin/true"],
        "bash": ["bash", "-c", "echo $((6 * 7)); ls /nowhere-at-all; (exit 3); echo $?; exit 5"],
        "python3": [bench.python, "-S", "-c", PYTHON],
        "ls": ["ls", "/", "/nowhere-at-all"],
    }
    rows = result.table("Programs without CUDA", ["program", "output, errors and exit status"])
    for name, command in commands.items():
        plain, pool = bench.run(b.PLAIN, command), bench.run(b.POOL, command)
        same = (plain.status, plain.out, plain.err) == (pool.status, pool.out, pool.err)
        rows.append([name, "the same" if same else "DIFFERENT"])
        result.expect(same, f"{name}: {plain.status} {plain.out!r} {plain.err!r} became {pool.status} {pool.out!r} {pool.err!r}")
        result.expect(not pool.reports, f"{name}: wrote a report")
    plain_us, pool_us = median_start_us(bench, 50 if bench.sim else 500)
    result.table("Time of /bin/true, median", ["without", "with", "difference"]).append(
        [f"{plain_us:.0f} us", f"{pool_us:.0f} us", f"{pool_us - plain_us:+.0f} us"])
    if not bench.sim:  # a machine that also builds and tests is no place to measure
        result.expect(pool_us - plain_us <= MOST_MICROSECONDS, f"/bin/true takes {pool_us - plain_us:.0f} us more")
