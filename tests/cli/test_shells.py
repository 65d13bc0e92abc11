"""The completions in the shells themselves, and the man page before those who judge man pages. What is not installed is
skipped, one by one.

    test_shells.py COMMAND
"""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

COMMAND = os.path.abspath(sys.argv.pop(1))
DEADLINE_SECONDS = 60  # generous: nothing here is a measurement

# What is typed, and what is offered then: all of these, and none of those.
WANTED = [
    ("gpupool si", ["size"], ["run"]),
    ("gpupool run --head", ["--headroom"], ["--json"]),
    ("gpupool run --strategy ", ["best_fit", "passthrough"], ["run", "trace.csv"]),
    ("gpupool size --set pool.ha", ["pool.handle="], ["stats.path="]),
    ("gpupool help --as ", ["fish", "markdown"], ["trace.csv"]),
    ("gpupool help re", ["report", "replay"], ["run"]),
    ("gpupool report tra", ["trace.csv"], ["trim"]),
    ("gpupool report --html tra", ["trace.csv"], []),
    ("gpupool run -- gpupool-tes", ["gpupool-test-program"], []),
    ("gpupool run -- ls tra", ["trace.csv"], ["trim"]),
    ("gpupool trim ", [], ["trace.csv"]),
]


def told(words):
    return subprocess.run([COMMAND, *words], capture_output=True, text=True, check=True).stdout


class Shells(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        (self.folder / "trace.csv").write_text("")
        program = self.folder / "bin" / "gpupool-test-program"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        (program.parent / "gpupool").symlink_to(program)
        self.environment = {"PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(self.folder), "TERM": "dumb", "LC_ALL": "C.UTF-8"}

    def need(self, *programs):
        for program in programs:
            if not shutil.which(program):
                self.skipTest(f"no {program}")

    def check(self, offered):
        for typed, all_of, none_of in WANTED:
            with self.subTest(typed=typed):
                words = offered(typed)
                for word in all_of:
                    self.assertIn(word, words)
                for word in none_of:
                    self.assertNotIn(word, words)

    def test_bash(self):
        self.need("bash")
        (self.folder / "gpupool.bash").write_text(told(["help", "--as", "bash"]))

        def offered(typed):
            words = typed.split(" ")
            script = f"source ./gpupool.bash; COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; " \
                     "_gpupool; printf '%s\\n' \"${COMPREPLY[@]}\""
            return subprocess.run(["bash", "--norc", "-c", script], cwd=self.folder, env=self.environment, capture_output=True,
                                  text=True, check=True).stdout.split()

        self.check(offered)

    def test_fish(self):
        self.need("fish")
        script = self.folder / "gpupool.fish"
        script.write_text(told(["help", "--as", "fish"]))

        def offered(typed):
            ended = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C '{typed}'"], cwd=self.folder,
                                   env=self.environment, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            return [line.split("\t")[0] for line in ended.stdout.splitlines()]

        self.check(offered)

    def test_zsh(self):
        self.need("zsh")
        (self.folder / "_gpupool").write_text(told(["help", "--as", "zsh"]))
        process, side = pty.fork()
        if process == 0:
            os.chdir(self.folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], self.environment)

        text = ""

        def until(pattern):
            nonlocal text
            end = time.monotonic() + DEADLINE_SECONDS
            while not re.search(pattern, text):
                self.assertLess(time.monotonic(), end, text)
                if select.select([side], [], [], 0.05)[0]:
                    text += os.read(side, 65536).decode(errors="replace")
            seen, text = text, ""
            return seen

        def type_in(keys):
            os.write(side, keys.encode())

        # What compadd is given is kept, as bash would do, and told after each completion between two marks.
        type_in("PS1=; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D; setopt no_beep; unsetopt list_beep\n"
                "compadd() { local -a got; builtin compadd -O got \"$@\"; offered+=($got); builtin compadd \"$@\" }\n"
                "told() { print; print -r -- \"<\" $offered \">\"; offered=() }\n"
                "look() { offered=(); zle complete-word; told; BUFFER=; }\n"
                "zle -N look; bindkey '^O' look; zle -C complete-word .complete-word _main_complete; print rea''dy\n")
        until("ready")

        def offered(typed):
            type_in(typed + "\x0f")
            return re.search(r"< (.*?)>", until(r"<( [^>]*)?>"), re.S)[1].split()

        try:
            self.check(offered)
        finally:
            os.close(side)
            os.waitpid(process, 0)

    def test_man_page(self):
        page = self.folder / "gpupool.1"
        page.write_text(told(["help", "--as", "man"]))
        judges = 0
        if shutil.which("groff"):
            judges += 1
            judged = subprocess.run(["groff", "-man", "-ww", "-Tascii", "-z", page], capture_output=True, text=True)
            self.assertEqual((judged.returncode, judged.stderr), (0, ""))
        if shutil.which("mandoc"):
            judges += 1
            judged = subprocess.run(["mandoc", "-T", "lint", page], capture_output=True, text=True)
            # Two builds of one source are alike, so it has no date.
            self.assertEqual([line for line in judged.stdout.splitlines() if "missing date" not in line], [])
        if not judges:
            self.skipTest("neither groff nor mandoc")


unittest.main(verbosity=2)
