"""What the checks share: where things lie, running programs with and without the preload, reading the pool's report.

A Bench is made once by scripts/gpu-check and handed to every check. Its work folder holds what is compiled and written on
the way; nothing else is changed on the machine. Methods may be called from several threads.
"""
import concurrent.futures
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "tests" / "gpu"

PLAIN = "plain"  # without the preload
POOL = "pool"  # with it
RUN = "run"  # the command names `gpupool run` itself
UNFENCED = "unfenced"  # with a core whose device waits were left out when it was compiled: for one check only

SYSTEM_LIBRARIES = ("/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")

MIB = 1 << 20


class Failed(Exception):
    """A check cannot go on; the text says why."""


class Outcome:
    """How one program ended, what it printed and what the pools of its processes reported."""

    def __init__(self, status, out, err, seconds, reports):
        self.status, self.out, self.err, self.seconds, self.reports = status, out, err, seconds, reports

    @property
    def ok(self):
        return self.status == 0

    @property
    def report(self):
        """The report of the process that asked for the most memory, {} if there is none."""
        return max(self.reports, key=lambda each: each["process"]["pooled"] + each["process"]["passed"], default={})

    @property
    def pooled(self):
        return self.report.get("process", {}).get("pooled", 0)

    @property
    def passed(self):
        return self.report.get("process", {}).get("passed", 0)

    @property
    def pool(self):
        """The first device's pool, {} if there is none."""
        return next(iter(self.report.get("pools", [])), {})

    def why(self):
        """The last lines that a person needs when something went wrong."""
        lines = [line for line in (self.err + "\n" + self.out).splitlines() if line.strip() and not line.startswith("gpupool:   ")]
        return f"exit status {self.status}: " + " | ".join(lines[-6:])[-900:]


class Bench:
    def __init__(self, build, work, cuda, sim, deadline, quick, rounds, modes=()):
        self.build, self.work, self.cuda, self.sim = build, work, cuda, sim
        self.deadline, self.quick, self.rounds, self.modes = deadline, quick, rounds, modes
        self.include = cuda / "include"
        self.pages = work / "pages"  # what programs that are killed leave goes with the work folder
        self.pages.mkdir()
        self.python = sys.executable
        self._numbers = itertools.count()
        self.log = open(work / "log.txt", "w", buffering=1)

    # --- places

    def preload(self, mode):
        folder = {POOL: self.build / "lib", UNFENCED: self.build / "lib" / "unfenced"}[mode]
        for name in ("libgpupool.so", "libgpupool_core.so"):
            if not (folder / name).exists():
                raise Failed(f"{folder / name} is not built")
        return folder / "libgpupool.so"

    def cuda_library(self, *names):
        """The first of these that is there, in the simulated driver's folder or the toolkit's."""
        places = [self.sim] if self.sim else [self.cuda / "lib64", self.cuda / "lib64" / "stubs", self.cuda / "lib",
                                              *self.cuda.glob("targets/*/lib"), *self.cuda.glob("targets/*/lib/stubs"),
                                              *map(pathlib.Path, SYSTEM_LIBRARIES)]
        for place, name in itertools.product(places, names):
            if (place / name).exists():
                return place / name
        raise Failed(f"none of {', '.join(names)} in {', '.join(map(str, places))}")

    # --- time

    def left(self):
        return self.deadline - time.monotonic()

    # --- compiling

    def compile(self, name, source, *options):
        """A C++ program of tests/gpu; the path of the executable."""
        target = self.work / name
        command = [os.environ.get("CXX", "g++"), "-std=c++20", "-O2", "-pthread", f"-isystem{self.include}", f"-I{ROOT}",
                   str(PROGRAMS / source), "-o", str(target), *map(str, options)]
        done = self.call(command, dict(os.environ), 120)
        if not done.ok:
            raise Failed(f"{source} does not compile: {done.why()}")
        return target

    def kernels(self):
        """The kernels of kernels.cu as an image; the simulated driver takes any file for one."""
        image = self.work / "kernels.cubin"
        if self.sim:
            image.write_text("kernels")
            return image
        errors = []
        for architecture in ("native", "sm_90"):
            done = self.call([str(self.cuda / "bin" / "nvcc"), "-cubin", f"-arch={architecture}", str(PROGRAMS / "kernels.cu"), "-o",
                              str(image)], dict(os.environ), 120)
            if done.ok:
                return image
            errors.append(done.why())
        raise Failed("kernels.cu does not compile: " + errors[0])

    # --- running

    def environment(self, mode, settings, reports):
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("GPUPOOL_", "PYTORCH_", "XLA_")) and key != "LD_PRELOAD"}
        environment["PYTHONFAULTHANDLER"] = "1"  # a program that is stopped says where it was
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        if self.sim:
            environment["LD_LIBRARY_PATH"] = str(self.sim)
            environment["GPUPOOL_SIM_MEMORY"] = "8GiB"
        if mode in (POOL, UNFENCED):
            environment["LD_PRELOAD"] = str(self.preload(mode))
        if mode != PLAIN:
            environment["GPUPOOL_STATS_PATH"] = str(reports / "%p.json")
            environment["GPUPOOL_STATS_PAGES"] = str(self.pages)
        environment.update(settings)
        return environment

    def run(self, mode, command, settings=None, timeout=60, **options):
        """Runs a program with or without the preload. `settings` are environment variables."""
        reports = self.work / f"run{next(self._numbers)}"
        reports.mkdir()
        outcome = self.call(list(map(str, command)), self.environment(mode, settings or {}, reports), timeout, **options)
        for file in sorted(reports.iterdir()):
            try:
                outcome.reports.append(json.loads(file.read_text()))
            except ValueError as error:
                raise Failed(f"a report that is not JSON: {error}") from error
        return outcome

    def start(self, mode, command, settings=None):
        """A program that the check talks to: standard input and output are pipes."""
        reports = self.work / f"run{next(self._numbers)}"
        reports.mkdir()
        return subprocess.Popen(list(map(str, command)), env=self.environment(mode, settings or {}, reports), text=True, bufsize=1,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, start_new_session=True)

    def call(self, command, environment, timeout, **options):
        """Runs to the end or to the time limit: then SIGABRT, on which Catch2 and Python say where they were, then SIGKILL."""
        start = time.monotonic()
        try:
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, errors="replace", start_new_session=True, **options)
        except OSError as error:
            return Outcome(127, "", str(error), 0.0, [])
        out, err, status = "", "", f"none after {timeout} s"
        for next_signal, patience in ((None, timeout), (signal.SIGABRT, 5), (signal.SIGKILL, 10)):
            try:
                if next_signal:
                    os.killpg(process.pid, next_signal)
                out, err = process.communicate(timeout=patience)
                status = status if next_signal else process.returncode
                break
            except (subprocess.TimeoutExpired, ProcessLookupError):
                continue
        seconds = time.monotonic() - start
        command = list(map(str, command))
        shown = " ".join(word if len(word) < 200 else word[:200] + "..." for word in command)
        self.log.write(f"$ {shown}\n# status {status}, {seconds:.1f} s\n{out[-4000:]}{err[-4000:]}\n")
        return Outcome(status, out, err, seconds, [])

    def together(self, jobs, workers):
        """Calls every job (a function without arguments), `workers` at a time; their results in order."""
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            return list(pool.map(lambda job: job(), jobs))


def amount(count):
    """Bytes for a table: MiB, or bytes below one."""
    return f"{count / MIB:,.0f} MiB" if count >= MIB else f"{count} B"
