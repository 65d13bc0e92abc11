"""scripts/test-images --smoke passes what was built, and finds each kind of fault that is planted in it.

    test_images.py BUILD
"""
import pathlib
import shutil
import sys
import tempfile
import unittest

from tree import ROOT, run

FILES = ("bin/gpupool", "lib/libgpupool.so", "lib/libgpupool_core.so", "lib/simcuda/libcuda.so.1")
LOUD = '#include <unistd.h>\n__attribute__((constructor)) static void planted(void) { (void)!write(2, "planted\\n", 8); }\n'
WRONG = "int cuInit(unsigned flags) { return (int)flags + 1; }\n"


class Images(unittest.TestCase):
    build = None

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        for name in FILES:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.build / name, self.folder / name)

    def plant(self, name, text):
        """A library of this source in the place of what was built."""
        source = self.folder / "planted.c"
        source.write_text(text)
        made = run("cc", "-shared", "-fPIC", source, "-o", self.folder / name)
        self.assertEqual(made.returncode, 0, made.stdout)

    def smoke(self):
        result = run(ROOT / "scripts" / "test-images", "--smoke", self.folder)
        if result.returncode == 77:
            self.skipTest(result.stdout.strip())
        return result

    def assert_failed(self, *checks):
        result = self.smoke()
        self.assertEqual(result.returncode, 1, result.stdout)
        for check in checks:
            self.assertRegex(result.stdout, rf"FAILED +{check}\n")

    def test_what_was_built(self):
        result = self.smoke()
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("all is right", result.stdout)

    def test_a_front_that_is_heard_in_every_program(self):
        self.plant("lib/libgpupool.so", LOUD)
        self.assert_failed("quiet", "pool", "fallback")

    def test_a_core_that_cannot_be_loaded(self):
        (self.folder / "lib" / "libgpupool_core.so").write_text("planted\n")
        self.assert_failed("pool", "command")

    def test_a_driver_that_does_not_work(self):
        self.plant("lib/simcuda/libcuda.so.1", WRONG)
        self.assert_failed("pool", "command")

    def test_a_command_that_does_not_start(self):
        (self.folder / "bin" / "gpupool").write_text("#!/bin/sh\nexit 1\n")
        self.assert_failed("command")


if __name__ == "__main__":
    Images.build = pathlib.Path(sys.argv.pop())
    unittest.main()
