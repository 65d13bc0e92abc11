"""The environments of scripts/deploy/environments: activation switches the pool on and deactivation off, in a venv and as conda does it; what
they install is pinned, and the wheel is the one that scripts/package makes.

    test_environments.py BUILD     the build folder: lib/, lib/simcuda/
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / "scripts" / "deploy" / "environments"
PROGRAM = ROOT / "tests" / "images" / "program.py"
BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ROOT / "build").resolve()
FRONT = BUILD / "lib" / "libgpupool.so"
SHOW = 'echo "${LD_PRELOAD-none} ${GPUPOOL_POOL_STRATEGY-none} ${PYTORCH_ALLOC_CONF-none}"'
ON = f"{FRONT} auto_growth backend:cudaMallocAsync"
OFF = "none none none"


class Environments(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.prefix = pathlib.Path(holder.name) / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.prefix], check=True)
        [site] = self.prefix.glob("lib/python*/site-packages")
        (site / "gpupool.py").write_text(f"library = {str(FRONT)!r}\n")  # stands in for the wheel

    def extend(self):
        subprocess.run([ENVIRONMENTS / "activate-gpupool", self.prefix], check=True)

    def bash(self, script, **variables):
        environment = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(BUILD / "lib" / "simcuda"), **variables}
        done = subprocess.run(["bash", "-euc", script], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def shown(self, script, **variables):
        return self.bash(script, **variables).stdout.splitlines()

    def test_a_venv(self):
        self.extend()
        self.extend()  # twice is once
        on = f". {self.prefix}/bin/activate; {SHOW}; deactivate; {SHOW}"
        self.assertEqual(self.shown(on), [ON, OFF])
        self.assertEqual(self.shown(f"{on}; {on}"), [ON, OFF, ON, OFF])

    def test_a_program_in_a_venv_has_a_pool(self):
        self.extend()
        done = self.bash(f". {self.prefix}/bin/activate; python {PROGRAM}; deactivate; python3 {PROGRAM}")
        self.assertEqual(done.stdout, "program: right\n" * 2)
        self.assertEqual(done.stderr.count("gpupool: device 0"), 1)

    def test_what_was_set_before_stays(self):
        self.extend()
        mine = {"LD_PRELOAD": str(BUILD / "lib" / "libgpupool_core.so"), "GPUPOOL_POOL_STRATEGY": "best_fit", "PYTORCH_ALLOC_CONF": "max_split_size_mb:64"}
        before = " ".join(mine.values())
        self.assertEqual(self.shown(f". {self.prefix}/bin/activate; {SHOW}; deactivate; {SHOW}", **mine), [f"{FRONT}:{before}", before])

    def test_conda(self):
        (self.prefix / "conda-meta").mkdir()
        self.extend()
        on, off = (self.prefix / "etc" / "conda" / f"{name}.d" / "gpupool.sh" for name in ("activate", "deactivate"))
        self.assertEqual(self.shown(f". {on}; {SHOW}; . {off}; {SHOW}"), [ON, OFF])
        self.assertNotIn("gpupool", (self.prefix / "bin" / "activate").read_text())

    def test_a_path_that_a_preload_cannot_hold(self):
        moved = self.prefix.with_name("with blank")
        moved.mkdir()
        (moved / "libgpupool.so").touch()
        [site] = self.prefix.glob("lib/python*/site-packages")
        (site / "gpupool.py").write_text(f"library = {str(moved / 'libgpupool.so')!r}\n")
        done = subprocess.run([ENVIRONMENTS / "activate-gpupool", self.prefix], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("with blank", done.stderr)

    def test_everything_is_pinned(self):
        version = re.search(r"^project\(gpupool VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
        conda = [line.strip("- \n") for line in (ENVIRONMENTS / "environment.yml").read_text().splitlines() if line.strip().startswith("- ")]
        pip = [line for line in (ENVIRONMENTS / "requirements.txt").read_text().splitlines() if line and not line.startswith("#")]
        for wanted in (conda, pip):
            wheels = [line for line in wanted if line.endswith(".whl")]
            self.assertEqual([pathlib.Path(line).name.split("-")[1] for line in wheels], [version])
            for line in wanted:
                self.assertRegex(line, r"^pip:$|\.whl$|^\w+==?[\d.]+$")


if __name__ == "__main__":
    unittest.main()
