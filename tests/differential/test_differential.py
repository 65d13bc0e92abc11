"""The comparison itself: the same program twice is alike, a planted difference is found, and every exception has a use."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PLACES = []


def differential(*words):
    return subprocess.run([sys.executable, "-B", str(ROOT / "scripts/differential"), *PLACES, "--api", "driver",
                           "--spelling", "newest", "--threads", "1", *words], capture_output=True, text=True, check=False)


def alone(*words, **settings):
    """The program itself on the simulated driver, without the preload."""
    places = dict(zip(PLACES[::2], PLACES[1::2]))
    environment = {**os.environ, "LD_LIBRARY_PATH": places["--simulated"], **settings}
    return subprocess.run([places["--program"], *words], env=environment, capture_output=True, text=True, check=False)


class Differential(unittest.TestCase):
    def test_alike(self):
        result = differential("--calls", "200", "--seeds", "5")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"differential: \d+ answers alike")

    def test_a_difference_is_found(self):
        # A driver that refuses stream-ordered allocations has no effect on what the pool serves.
        result = differential("--calls", "200", "--seeds", "5", "--set", "GPUPOOL_SIM_FAULT=cuMemAllocAsync:1-9=2")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("differs", result.stdout)

    def test_where_it_ended_is_told(self):
        # A wait that nothing ends: the simulated driver aborts before the program's patience is over, and after it.
        for patience, deadlock_ms, told in (("30", "100", "aborted"), ("1", "60000", "does not return")):
            result = alone("--only", "synchronize", "--patience", patience, GPUPOOL_SIM_FAULT="cuEventRecord:*=never",
                           GPUPOOL_SIM_DEADLOCK_MS=deadlock_ms)
            self.assertNotEqual(result.returncode, 0)
            self.assertRegex(result.stderr, f"differential: {told} in cu.*, step synchronize")

    def test_kinds_are_chosen(self):
        shown = alone("--only", "ask_range,allocate", "--skip", "ask_range", "--calls", "50").stdout
        self.assertIn("alloc ", shown)
        self.assertNotIn("range of", shown)
        self.assertEqual(alone("--only", "no_such_kind").returncode, 2)

    def test_every_hooked_symbol_is_called(self):
        """By the program itself, in one spelling or another: the simulated driver tells which of its symbols were."""
        often = "allocate_ordered,use_contents,free_plainly,free_ordered,synchronize"
        called = set()
        with tempfile.TemporaryDirectory() as folder:
            for spelling in ("newest", "per-thread", "oldest"):
                trace = pathlib.Path(folder) / spelling
                result = alone("--all", "--skip", often, "--calls", "4000", "--spelling", spelling,
                               GPUPOOL_SIM_TRACE=str(trace), GPUPOOL_SIM_DEVICES="2")
                self.assertEqual(result.returncode, 0, result.stderr)
                called.update(re.findall(r"^(cu\w+)\(", trace.read_text(), re.MULTILINE))
        hooked = re.findall(r"^HOOK\((\w+),", (ROOT / "preload/hooks.def").read_text(), re.MULTILINE)
        self.assertEqual([symbol for symbol in hooked if symbol not in called], [])

    def test_threads_at_once_are_compared(self):
        result = differential("--at-once", "--threads", "4", "--calls", "150", "--seeds", "2")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"differential: \d+ answers alike")

    def test_every_exception_is_used(self):
        names = re.findall(r"^EXCEPTION\((\w+)", (HERE / "exceptions.def").read_text(), re.MULTILINE)
        sources = "".join(file.read_text() for file in HERE.glob("operations_*.cpp"))
        for name in names:
            self.assertIn(f"Exception::{name}", sources)


if __name__ == "__main__":
    PLACES, sys.argv[1:] = sys.argv[1:], []
    unittest.main()
