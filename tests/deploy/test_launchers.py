"""Jobs of many ranks under `gpupool run` and the Slurm prolog, with stand-ins for the launchers (launcher.py) and with those that are installed,
on simulated cards.

    test_launchers.py BUILD     the build folder: bin/gpupool, lib/, lib/simcuda/
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAM = [sys.executable, "-S", str(ROOT / "tests" / "images" / "program.py")]
PROLOG = ROOT / "scripts" / "deploy" / "slurm" / "task-prolog.sh"
HOOK = ROOT / "scripts" / "deploy" / "slurm" / "50-gpupool.sh"
BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ROOT / "build").resolve()
GPUPOOL = str(BUILD / "bin" / "gpupool")


class Launchers(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def run_job(self, *words, **variables):
        environment = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(BUILD / "lib" / "simcuda"), "GPUPOOL_SIM_DEVICES": "4",
                       "GPUPOOL_SIM_MEMORY": "8GiB", "GPUPOOL_SIM_CARD": str(self.folder / "card"), **variables}
        done = subprocess.run([str(word) for word in words], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def run_with(self, kind, ranks, per_node, name):
        """The launcher under gpupool; the reports that it left, by their names."""
        done = self.run_job(GPUPOOL, "run", "--strategy", "auto_growth", "--stats", self.folder / name, "--", sys.executable, HERE / "launcher.py",
                            kind, ranks, per_node, *PROGRAM)
        self.assertEqual(done.stdout, "program: right\n" * ranks)
        return sorted(self.folder.glob("*.json*"))

    def test_a_job_of_64_ranks_on_four_cards(self):
        reports = self.run_with("torchrun", 64, 8, "rank-%r.json")
        self.assertEqual({file.name for file in reports}, {f"rank-{rank}.json" for rank in range(64)})
        pools = json.loads(self.run_job(GPUPOOL, "report", "--json", *reports).stdout)["pools"]
        self.assertEqual({(int(pool["rank"]), pool["device"]) for pool in pools}, {(rank, rank % 4) for rank in range(64)})

    def test_the_ranks_of_mpirun_and_srun(self):
        for kind in ("mpirun", "srun"):
            reports = self.run_with(kind, 4, 4, f"{kind}-%r.json")
            self.assertEqual({file.name for file in reports if kind in file.name}, {f"{kind}-{rank}.json" for rank in range(4)})

    def test_spawned_workers_without_a_rank(self):
        reports = self.run_with("spawn", 4, 4, "worker-%r.json")
        self.assertEqual({file.name for file in reports}, {"worker-0.json", "worker-0.json.1", "worker-0.json.2", "worker-0.json.3"})

    def ranks_of(self, *words, **variables):
        """What a launcher that is really there leaves: the ranks in the reports, each of a process with a pool."""
        self.run_job(*words, HOME=str(self.folder), GPUPOOL_POOL_STRATEGY="auto_growth", **variables)
        pools = json.loads(self.run_job(GPUPOOL, "report", "--json", *self.folder.glob("real-*.json*")).stdout)["pools"]
        return sorted(int(pool["rank"]) for pool in pools)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_open_mpi(self):
        anywhere = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_plm": "isolated"}  # without ssh, too
        job = ["mpirun", "--oversubscribe", "-n", 4, GPUPOOL, "run", "--stats", self.folder / "real-%r.json", "--", *PROGRAM]
        self.assertEqual(self.ranks_of(*job, **anywhere), [0, 1, 2, 3])

    @unittest.skipUnless(shutil.which("torchrun"), "no torchrun")
    def test_torchrun(self):
        job = [GPUPOOL, "run", "--stats", self.folder / "real-%r.json", "--", "torchrun", "--standalone", "--nproc-per-node", 4, "--no-python", *PROGRAM]
        self.assertEqual(self.ranks_of(*job), [0, 1, 2, 3])

    def prolog(self, **variables):
        text = PROLOG.read_text().replace("/opt/gpupool/lib/libgpupool.so", str(BUILD / "lib" / "libgpupool.so"))
        return self.run_job("/bin/sh", "-c", text, **variables).stdout.splitlines()

    def test_the_prolog(self):
        front = BUILD / "lib" / "libgpupool.so"
        self.assertEqual(self.prolog(), [])
        asked = self.prolog(GPUPOOL="1", LD_PRELOAD="/planted.so", SLURM_SUBMIT_DIR="/home/one", SLURM_JOB_ID="7")
        self.assertEqual(asked, [f"export LD_PRELOAD={front}:/planted.so", "export GPUPOOL_STATS_PATH=/home/one/gpupool-7-%h-%r.json"])
        self.assertEqual(self.prolog(GPUPOOL="1", LD_PRELOAD=str(front)), [])

    def test_the_enroot_hook(self):
        home = self.folder / "gpupool"
        (home / "lib").mkdir(parents=True)
        (home / "lib" / "libgpupool.so").touch()
        environ, mounts = self.folder / "environ", self.folder / "mounts"
        environ.write_text("GPUPOOL=1\nLD_PRELOAD=/planted.so\n")
        self.run_job("/bin/bash", "-c", HOOK.read_text().replace("home=/opt/gpupool", f"home={home}"), ENROOT_ENVIRON=str(environ), ENROOT_MOUNTS=str(mounts))
        self.assertEqual(environ.read_text().splitlines()[-1], f"LD_PRELOAD={home}/lib/libgpupool.so:/planted.so")
        self.assertIn(f"{home} {home} none", mounts.read_text())


if __name__ == "__main__":
    unittest.main()
