"""The parts of gpu-check that need neither a GPU nor a driver: running programs, judging figures, rendering."""
import json
import math
import pathlib
import sys
import tempfile
import time
import unittest
import unittest.mock
import xml.etree.ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from check import bench, render, workloads  # noqa: E402
from check.result import Result, markdown  # noqa: E402


def run_of(seconds, loss, reserved=None, live=100):
    """A workload's run as the program printed it and the pool reported it."""
    line = f"ernie plain: {seconds} s, last loss {loss}, live peak 100 MiB, reserved peak 150 MiB, card used 9 MiB"
    pool = {"reserved.peak": reserved, "live.peak": live}
    reports = [{"process": {"pooled": 1, "passed": 0}, "pools": [pool]}] if reserved else []
    return workloads.Run(bench.Outcome(0, line, "", 1.0, reports), 12.0, 10.0)


class Running(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        nowhere = pathlib.Path(holder.name)
        self.bench = bench.Bench(nowhere, nowhere, nowhere, None, time.monotonic() + 60, False, 1)
        self.addCleanup(self.bench.log.close)

    def test_a_program_that_ends(self):
        outcome = self.bench.run(bench.PLAIN, ["sh", "-c", "echo out; echo err >&2; exit 3"])
        self.assertEqual((outcome.status, outcome.out, outcome.err), (3, "out\n", "err\n"))
        self.assertFalse(outcome.ok)

    def test_a_program_that_does_not_end_says_where_it_was(self):
        outcome = self.bench.run(bench.PLAIN, [sys.executable, "-c", "import signal; signal.pause()"], timeout=1)
        self.assertFalse(outcome.ok)
        self.assertIn("none after 1 s", outcome.why())
        self.assertIn("Aborted", outcome.err)

    def test_what_is_not_built_is_named(self):
        with self.assertRaisesRegex(bench.Failed, "libgpupool.so is not built"):
            self.bench.run(bench.POOL, ["true"])

    def test_a_program_that_is_not_there(self):
        self.assertFalse(self.bench.run(bench.PLAIN, ["/nowhere/at-all"]).ok)


class Judging(unittest.TestCase):
    def failures(self, name, runs):
        result = Result()
        workloads.judge(result, "ernie", name, runs, [run_of(10.0, 3.0), run_of(10.2, 3.1)])
        return result.failures

    def test_within_the_bounds(self):
        self.assertEqual(self.failures("pool", [run_of(10.3, 3.05)]), [])
        self.assertEqual(self.failures("auto_growth", [run_of(10.3, 3.1, reserved=109)]), [])

    def test_each_bound_is_seen(self):
        self.assertIn("loss", " ".join(self.failures("pool", [run_of(10.0, 3.2)])))
        self.assertIn("x the default", " ".join(self.failures("pool", [run_of(10.5, 3.0)])))
        self.assertIn("x live", " ".join(self.failures("auto_growth", [run_of(10.0, 3.0, reserved=111)])))


class Showing(unittest.TestCase):
    def test_a_row_has_every_column(self):
        pool = dict.fromkeys(("reserved.peak", "live.peak", "needed.peak", "fences", "host_waits", "host_wait_ns", "migrations", "growth_steps"), 1 << 20)
        line = "ernie plain: 10.5 s, last loss 3, live peak 100 MiB, reserved peak 150 MiB, card used 9 MiB, first step after 1.25 s"
        report = {"process": {"pooled": 1, "passed": 0}, "pools": [{**pool, "pool_ns": 250_000_000}]}
        row = workloads.shown("pool", [workloads.Run(bench.Outcome(0, line, "", 1.0, [report]), 10.0, 10.0)], 10.0)
        self.assertEqual((len(row), row[1:7], row[-1]), (len(workloads.COLUMNS), ["10.50", "1.050", "1.050", "1.050", "1.050", "1.25"], "250 (2.5 %)"))
        self.assertEqual(len(workloads.shown("default", [run_of(10.0, 3.0)], 10.0)), len(workloads.COLUMNS))


class Alternating(unittest.TestCase):
    PROGRAM = """#!{python}
import os, sys, time
_, program, workload, _, gate = sys.argv
print("loaded", workload, file=sys.stderr)
while not os.path.exists(gate):
    time.sleep(0.005)
with open(os.environ["ORDER"], "a") as order:
    print("begins", workload, file=order, flush=True)
    time.sleep(0.05)
    print("ends", workload, file=order, flush=True)
seconds = 11 if "LD_PRELOAD" in os.environ else 10
print(f"{{workload}} plain: {{seconds}} s, last loss 3, live peak 1 MiB, reserved peak 2 MiB, card used 3 MiB, first step after 1.5 s")
"""

    def test_one_at_a_time_each_beside_the_default_before_it(self):
        with tempfile.TemporaryDirectory() as holder:
            nowhere = pathlib.Path(holder)
            place = bench.Bench(nowhere, nowhere, nowhere, None, time.monotonic() + 600, False, 2, ("PyTorch default", "PyTorch's cache"))
            self.addCleanup(place.log.close)
            place.preload = lambda mode: ""
            program, order = nowhere / "python", nowhere / "order"
            program.write_text(self.PROGRAM.format(python=sys.executable))
            program.chmod(0o755)
            place.python = str(program)
            with unittest.mock.patch.dict("os.environ", {"ORDER": str(order)}):
                result = Result()
                runs = workloads.measure(place, result)
            steps = order.read_text().split("\n")[:-1]
        names = [workload for _ in range(2) for workload in workloads.WORKLOADS for _ in range(2)]
        self.assertEqual(steps, [f"{what} {name}" for name in names for what in ("begins", "ends")])
        for modes in runs.values():
            self.assertEqual([run.ratio for run in modes["pool, PyTorch's cache"]], [1.1, 1.1])
            self.assertEqual([run.first_step for run in modes[workloads.DEFAULT]], [1.5, 1.5])
        self.assertEqual(len(result.failures), 6)  # nothing was pooled, indeed

    def test_no_run_is_begun_that_would_end_late(self):
        with tempfile.TemporaryDirectory() as holder:
            nowhere = pathlib.Path(holder)
            place = bench.Bench(nowhere, nowhere, nowhere, None, time.monotonic() + workloads.GUESS, False, 1)
            self.addCleanup(place.log.close)
            result = Result()
            self.assertFalse([run for modes in workloads.measure(place, result).values() for of in modes.values() for run in of])
        self.assertIn("left out", result.notes[0])


class Rendering(unittest.TestCase):
    RESULTS = """{"when": "2030-01-0%d", "machine": {"card": "Card"}, "commit": "c", "command": "gpu-check", "seconds": 1.0, "checks":
      {"quiet": {"title": "Quiet", "passed": false, "seconds": 1, "failures": ["/some/where/tests/gpu/a.cpp:1: no"], "notes": ["a note"],
                 "tables": [{"title": "T", "columns": ["a"], "rows": [["x|y"]]}]}}}"""

    def test_newest_first_and_no_place_of_one_machine(self):
        with tempfile.TemporaryDirectory() as holder:
            page, results = pathlib.Path(holder) / "page.md", pathlib.Path(holder) / "results.json"
            page.write_text(f"# Page\n\n{render.MARKER}\n")
            for day in (1, 2):
                results.write_text(self.RESULTS % day)
                render.render(results, page)
            text = page.read_text()
        self.assertLess(text.index("## 2030-01-02"), text.index("## 2030-01-01"))
        self.assertIn("- Failed: tests/gpu/a.cpp:1: no", text)
        self.assertNotIn("/some/where", text)
        self.assertIn("| x\\|y |", text)

    def test_pictures_lie_beside_the_page(self):
        with tempfile.TemporaryDirectory() as holder:
            page, results = pathlib.Path(holder) / "page.md", pathlib.Path(holder) / "results.json"
            page.write_text(f"{render.MARKER}\n")
            bars = [["theirs <1>", 12.5, False], ["ours", 0.4, True]]
            with_chart = json.loads(self.RESULTS % 1)
            with_chart["checks"]["quiet"]["charts"] = {"pairs": {"title": "Pairs", "unit": "us", "bars": bars}}
            results.write_text(json.dumps(with_chart))
            render.render(results, page)
            drawn = (page.parent / "pairs.svg").read_text()
        root = xml.etree.ElementTree.fromstring(drawn)
        words = [element.text for element in root if element.tag.endswith("text")]
        self.assertLess(words.index("ours"), words.index("theirs <1>"))
        _, *bars = (element for element in root if element.tag.endswith("rect"))
        widths = [float(bar.get("width")) for bar in bars]
        self.assertAlmostEqual(widths[1] / widths[0], math.log10(125) / math.log10(4), delta=0.01)  # the scale begins at 0.1
        self.assertIn("12.5", words)

    def test_a_page_without_the_marker_is_left_alone(self):
        with tempfile.TemporaryDirectory() as holder:
            page = pathlib.Path(holder) / "page.md"
            page.write_text("text\n")
            with self.assertRaises(SystemExit):
                render.render(page, page)
            self.assertEqual(page.read_text(), "text\n")

    def test_a_table(self):
        self.assertEqual(markdown({"title": "T", "columns": ["a", "b"], "rows": [[1, 2]]}), "T:\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n")


unittest.main()
