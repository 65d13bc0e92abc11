"""What people read, as it was: the text of each verb, in golden/NAME.txt. What changes from run to run is replaced by a word in
capitals before the two are compared.

    test_golden.py COMMAND NO_DRIVER_FOLDER [FRONT DRIVER_FOLDER NVML_FOLDER PROGRAM]
    test_golden.py --write COMMAND ...      writes them anew: look at the difference before it is kept
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

WRITE = "--write" in sys.argv
COMMAND, NO_DRIVER, *DRIVER = [os.path.abspath(word) for word in sys.argv[1:] if word != "--write"]
GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"

# Name, words, and what is in the environment besides PATH. Everything runs in the folder of the golden files.
CASES = [
    ("help", "--help", {}),
    ("help-size", "help size", {}),
    ("report-one", "report rank0.json", {}),
    ("report-ranks", "report rank0.json rank1.json rank2.json", {}),
    ("report-trace", "report small.csv", {}),
    ("replay", "replay small.csv", {}),
    ("replay-set", "replay small.csv --set pool.handle=2MiB --set pool.size=32MiB --set pool.strategy=best_fit", {}),
    ("replay-compare", "replay small.csv --compare best_fit,auto_growth,pytorch,pytorch:2MiB,pytorch_expandable,paddle_auto_growth", {}),
    ("size-trace", "size small.csv --card 1GiB", {}),
    ("size-traces", "size small.csv small.csv --margin 20% --target-waste 50%", {}),
    ("config", "config", {"GPUPOOL_POOL_SIZE": "8GiB"}),
    ("config-wrong", "config --config wrong.json", {"GPUPOOL_POOL_MXA": "1GiB"}),
    ("config-check", "config --check wrong.json", {}),
    ("wrong-words", "size --sice 1GiB", {}),
    ("wrong-value", "report --html", {}),
    ("wrong-compare", "replay small.csv --compare nobody", {}),
    ("wrong-margin", "size small.csv --margin 200%", {}),
]
ON_A_CARD = [
    ("cdi", "cdi --set pool.size=8GiB", {}),
    ("doctor", "doctor", {}),
    ("doctor-wrong", "doctor", {"GPUPOOL_POOL_SIEZ": "1GiB", "LD_PRELOAD": "/nowhere/libgpupool.so", "TF_GPU_ALLOCATOR": "own",
                                "PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}),
    ("size-trace-here", "size small.csv", {}),
    ("doctor-program", "doctor -- PROGRAM plain", {"GPUPOOL_POOL_SIZE": "1GiB"}),
    ("size-program", "size --card 1GiB -- PROGRAM plain", {}),
    ("size-ranks", "size --unify -- sh -c 'RANK=0 PROGRAM plain; RANK=1 PROGRAM quick_exit; true'", {"TF_GPU_ALLOCATOR": "own"}),
]


class Golden(unittest.TestCase):
    maxDiff = None

    def check(self, name, words, variables):
        words = [word.replace("PROGRAM", DRIVER[3]) if DRIVER else word for word in shlex.split(words)]
        environment = {"PATH": f"{self.programs}:/usr/bin:/bin", "LD_LIBRARY_PATH": NO_DRIVER, **variables}
        ended = subprocess.run([COMMAND, *words], cwd=GOLDEN, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        text = self.steady(f"$ gpupool {' '.join(shlex.quote(word) for word in words)}\n{ended.stdout}{ended.stderr}[status {ended.returncode}]\n")
        file = GOLDEN / f"{name}.txt"
        if WRITE:
            file.write_text(text)
        self.assertEqual(text, file.read_text() if file.exists() else "")

    def steady(self, text):
        known = {COMMAND: "COMMAND", str(self.programs): "PROGRAMS", **dict(zip(DRIVER, ("FRONT", "DRIVER", "NVML", "PROGRAM")))}
        if DRIVER:
            known[os.path.dirname(DRIVER[0]) + "/libgpupool_core.so"] = "CORE"
            known['"' + os.path.dirname(DRIVER[0]) + '"'] = '"FOLDER OF FRONT"'
        for path in sorted(known, key=len, reverse=True):
            text = text.replace(path, known[path])
        for pattern, word in (
                (r"(pool_ns +)\d[\d.]* ms +", r"\1TIME "),
                (r"(requests_per_second +)\d+ +", r"\1RATE "),
                (r"\(process \d+", "(process PID"),
                (r"(version |gpupool )\d+\.\d+\.\d+", r"\1VERSION"),
                (r"(?m)^(note|warning|ok) +(limits|child) .*\n", ""),  # of this machine
                (r"(?m)^ERROR: ld\.so: .*\n", ""),
        ):
            text = re.sub(pattern, word, text)
        return text

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.programs = pathlib.Path(holder.name)
        python = self.programs / "python3"
        python.write_text("#!/bin/sh\necho torch 2.11.0\necho tensorflow 2.20.0\n")
        python.chmod(0o755)

    def test_without_a_driver(self):
        for case in CASES:
            with self.subTest(case[0]):
                self.check(*case)

    @unittest.skipUnless(DRIVER, "no simulated driver")
    def test_on_a_card(self):
        for name, words, variables in ON_A_CARD:
            with self.subTest(name):
                # Programs of a moment are seen at work or not, so that what they leave of a card is not always the same.
                cards = ":" + (NO_DRIVER if words.startswith("size --") else DRIVER[2])
                self.check(name, words, {"LD_LIBRARY_PATH": DRIVER[1] + cards, "GPUPOOL_SIM_MEMORY": "4GiB", **variables})


unittest.main(argv=sys.argv[:1], verbosity=2)
