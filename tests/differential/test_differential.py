"""The comparison itself: the same program twice is alike, a planted difference is found, and every exception has a use."""
import pathlib
import re
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PLACES = []


def differential(*words):
    return subprocess.run([sys.executable, "-B", str(ROOT / "scripts/differential"), *PLACES, "--api", "driver",
                           "--threads", "1", *words], capture_output=True, text=True, check=False)


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

    def test_every_exception_is_used(self):
        names = re.findall(r"^EXCEPTION\((\w+)", (HERE / "exceptions.def").read_text(), re.MULTILINE)
        sources = "".join(file.read_text() for file in HERE.glob("operations_*.cpp"))
        for name in names:
            self.assertIn(f"Exception::{name}", sources)


if __name__ == "__main__":
    PLACES, sys.argv[1:] = sys.argv[1:], []
    unittest.main()
