"""The contract tests of device/ on the real driver. A case that hangs is named, with the line it stands at."""
import re

from . import bench as b

TITLE = "Contracts on the real driver"

SECONDS = 60


def names_of(bench, program):
    for options in (["--list-test-names-only"], ["--list-tests", "--verbosity", "quiet"]):  # Catch2 2 and 3
        outcome = bench.run(b.PLAIN, [program, *options])
        names = [line.strip() for line in outcome.out.splitlines() if line.strip()]
        if names and outcome.status in (0, len(names)):
            return names
    return []


def one_by_one(bench, result, program):
    """Each case alone, so that one that hangs does not hide the others."""
    rows = result.table("Cases that do not pass by themselves", ["case", "seconds", "how it ended"])

    def job(name):
        escaped = name.replace("\\", "\\\\").replace(",", "\\,").replace("[", "\\[")
        return name, bench.run(b.PLAIN, [program, escaped], timeout=12)

    for name, outcome in bench.together([lambda name=name: job(name) for name in names_of(bench, program)], 6):
        if not outcome.ok or "No tests ran" in outcome.out:
            rows.append([name, f"{outcome.seconds:.0f}", outcome.why()[-400:]])
            result.expect(False, f"{name}: {outcome.why()[-700:]}")


def check(bench, result):
    program = bench.build / "bin" / "test_device"
    if not program.exists():
        raise b.Failed(f"{program} is not built")
    outcome = bench.run(b.PLAIN, [program, "-d", "yes"], timeout=SECONDS)
    durations = re.findall(r"^([\d.]+) s: (.*)$", outcome.out, re.MULTILINE)
    summary = next((line for line in reversed(outcome.out.splitlines()) if "assertions" in line or "All tests passed" in line), "none")
    result.table("Contract tests on this driver", ["cases that ended", "summary", "seconds"]).append(
        [len(durations), summary.strip("= "), f"{outcome.seconds:.0f}"])
    slow = sorted(((float(seconds), name) for seconds, name in durations if float(seconds) > 0.5), reverse=True)
    if slow:
        result.note("slowest: " + "; ".join(f"{seconds:.1f} s {name}" for seconds, name in slow[:5]))
    if not result.expect(outcome.ok, f"all cases together: {outcome.out[-1500:]} {outcome.why()}"):
        one_by_one(bench, result, program)
