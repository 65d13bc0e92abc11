"""What the tests of scripts/ share: the repository, copies of it to plant faults in, and running a script."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))

import house  # noqa: E402


def run(*command, **options):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, **options)


class TreeCase(unittest.TestCase):
    """A copy of the house, made anew for each test, so that one fault cannot hide another."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.tree = pathlib.Path(holder.name)
        for file in house.files(ROOT):
            (self.tree / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, self.tree / file)

    def plant(self, path, text):
        """Adds text to a file of the copy, or makes the file."""
        file = self.tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as stream:
            stream.write("\n" + text + "\n")

    def gate(self, name):
        return run(ROOT / "scripts" / f"check-{name}", "--root", self.tree)

    def assert_clean(self, name):
        result = self.gate(name)
        self.assertEqual(result.returncode, 0, result.stdout)

    def assert_found(self, name, *words):
        """The gate fails, and one of its lines holds all these words."""
        result = self.gate(name)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertTrue(any(all(word in line for word in words) for line in result.stdout.splitlines()), result.stdout)
