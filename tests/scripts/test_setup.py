"""The set-up scripts leave a complete machine alone, and choose CUDA headers by their version."""
import os
import pathlib
import shutil
import tempfile
import unittest

from tree import ROOT, run


class Setup(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        (self.folder / "tree").mkdir()
        shutil.copytree(ROOT / "scripts", self.folder / "tree" / "scripts")

    def headers(self, name, version):
        """A stand-in for an installed toolkit."""
        include = self.folder / name / "include"
        include.mkdir(parents=True)
        (include / "cuda.h").write_text(f"#define CUDA_VERSION {version}\n")
        (include / "cudaTypedefs.h").write_text("")
        return include

    def find(self, **environment):
        return run(self.folder / "tree" / "scripts" / "fetch-cuda-headers", "--find", env={**os.environ, **environment})

    def test_a_toolkit_new_enough_is_found(self):
        include = self.headers("toolkit", 12050)
        self.assertEqual(self.find(CUDA_HOME=str(include.parent)).stdout.strip(), str(include))

    def test_a_toolkit_too_old_is_passed_over(self):
        include = self.headers("toolkit", 12040)
        self.assertNotEqual(self.find(CUDA_HOME=str(include.parent)).stdout.strip(), str(include))

    def test_fetched_headers_come_first(self):
        toolkit = self.headers("toolkit", 13000)
        fetched = self.headers("tree/.deps/cuda", 13000)
        self.assertEqual(self.find(CUDA_HOME=str(toolkit.parent)).stdout.strip(), str(fetched))

    def test_a_complete_machine_needs_no_package_manager(self):
        self.headers("tree/.deps/cuda", 13000)
        refusing = self.folder / "refusing"
        refusing.mkdir()
        for name in ("apt-get", "sudo"):
            (refusing / name).write_text("#!/bin/sh\necho planted refusal\nexit 1\n")
            (refusing / name).chmod(0o755)
        result = run(self.folder / "tree" / "scripts" / "dependencies",
                     env={**os.environ, "PATH": f"{refusing}:{os.environ['PATH']}"})
        self.assertEqual((result.returncode, result.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
