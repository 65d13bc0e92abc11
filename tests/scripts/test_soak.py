"""The soak refuses what it cannot do, and leaves no process behind, whatever the programs that it runs do and however it ends."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOAK = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts" / "soak"


class Soak(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gpupool-test-soak-")
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        self.pids = self.build / "pids"

    def build_with(self, torture):
        """A build whose programs are shell scripts; each is to write the pids of its processes."""
        for name in ("bin/gpupool", "bin/gpupool_model", "bin/torture", "lib/libgpupool.so", "lib/libgpupool_core.so",
                     "lib/simcuda/libcuda.so.1"):
            path = self.build / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o755)
        (self.build / "bin" / "torture").write_text(f"#!/bin/sh\npids={self.pids}\n{torture}\n")

    def start(self, *words):
        return subprocess.Popen([sys.executable, "-B", SOAK, "--build", self.build, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True)

    def run_soak(self, *words):
        soak = self.start(*words)
        said, _ = soak.communicate()
        return soak.returncode, said

    def assert_nobody_stays(self):
        pids = [int(pid) for pid in self.pids.read_text().split()]
        self.assertNotEqual(pids, [])
        for pid in pids:
            self.assertRaises(ProcessLookupError, os.kill, pid, 0)

    def test_times_that_are_no_positive_number(self):
        for text in ("0", "-1", "nan", "inf", "soon"):
            status, said = self.run_soak(text)
            self.assertEqual(status, 2)
            self.assertIn(f"{text} is no positive number", said)

    def test_what_is_not_built_is_named_with_its_target(self):
        status, said = self.run_soak("0.1")
        self.assertEqual(status, 2)
        self.assertIn(f"{self.build}/bin/torture is missing; it is built by: ninja -C {self.build} torture", said)

    def test_a_process_that_is_left_behind_is_ended_and_is_a_mismatch(self):
        self.build_with("""sleep 1000 & echo $! >> $pids
                           echo 'torture: operations 7, refused 0, wrong bytes 0, errors 0'""")
        status, said = self.run_soak("0.01", "--only", "torture", "--seed", "1")
        self.assertEqual(status, 1)
        self.assertIn("left 1 processes behind", said)
        self.assertRegex(said.splitlines()[-1], r"mismatches [1-9]")
        self.assert_nobody_stays()

    def test_a_soak_that_is_ended_ends_what_it_runs(self):
        self.build_with("sleep 1000 & echo $$ $! >> $pids; wait")
        for number in (signal.SIGINT, signal.SIGTERM):
            self.pids.write_text("")
            soak = self.start("10", "--only", "torture")
            while not self.pids.read_text().endswith("\n"):
                time.sleep(0.01)
            soak.send_signal(number)
            soak.communicate()
            self.assertEqual(soak.returncode, 128 + number)
            self.assert_nobody_stays()


if __name__ == "__main__":
    unittest.main()
