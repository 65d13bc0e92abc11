"""Every verb that reads a file, on every kind of file that is none: one line on standard error, the status that the manual
gives, nothing on standard output, nothing written, and an end in time.
"""
import gzip
import os
import pathlib
import resource
import stat
import subprocess
import sys
import tempfile
import unittest

COMMAND = os.path.abspath(sys.argv.pop(1))
HERE = pathlib.Path(__file__).parent
REPORT = (HERE / "golden" / "rank0.json").read_bytes()
TRACE = (HERE.parent / "data" / "traces" / "gpt_varlen.csv.gz").read_bytes()
PAGE = "page.html"

READERS = {
    "report": ["report", "{}"],
    "report --json": ["report", "{}", "--json"],
    "report --html": ["report", "{}", "--html", PAGE],
    "replay": ["replay", "{}"],
    "size": ["size", "{}", "--write", PAGE],
    "config --check": ["config", "--check", "{}"],
    "run --config": ["run", "--config", "{}", "--", "true"],
}
NO_TRACE = ("report", "replay", "size")


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))


class BadInput(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def refused(self, verb, path, status=3):
        words = [word.format(path) for word in READERS[verb]]
        with self.subTest(verb=verb, path=str(path)):
            ended = subprocess.run([COMMAND, *words], cwd=self.folder, env={"PATH": os.environ["PATH"]}, timeout=60,
                                   stdin=subprocess.DEVNULL, capture_output=True, text=True, preexec_fn=limits)
            lines = ended.stderr.splitlines()
            self.assertEqual(ended.returncode, status, ended)
            if status == 3:
                self.assertEqual(ended.stdout, "")
                self.assertEqual(len(lines), 1, ended.stderr)
                self.assertTrue(lines[0].startswith(f"gpupool: {verb.split()[0]}: error: "), lines)
                self.assertIn(str(path)[:40], lines[0])
            self.assertNotIn("terminate called", ended.stderr)
            self.assertFalse((self.folder / PAGE).exists())
            return ended

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def test_missing(self):
        for verb in READERS:
            self.refused(verb, "nowhere.json")

    def test_folder(self):
        for verb in READERS:
            self.refused(verb, "/")

    @unittest.skipIf(os.geteuid() == 0, "root may read everything")
    def test_no_permission(self):
        path = self.file("secret", b"{}")
        path.chmod(0)
        for verb in READERS:
            self.refused(verb, path)

    def test_empty(self):
        for verb in NO_TRACE:
            self.refused(verb, self.file("empty", b""))

    def test_cut_off(self):
        for verb in ("report", "report --json", "report --html"):
            self.refused(verb, self.file("cut.json", REPORT[: len(REPORT) // 2]))
        for verb in NO_TRACE:
            self.refused(verb, self.file("cut.csv.gz", TRACE[: len(TRACE) // 2]))

    def test_foreign(self):
        foreign = {"elf": pathlib.Path(COMMAND).read_bytes()[:65536], "text": b"hello\n", "json": b'{"a": 1}',
                   "nested": b"[" * 100000, "zeros": b"\0" * 4096, "wide": b"x" * 100000, "controls": b"\x1b[31m\n"}
        for name, content in foreign.items():
            path = self.file(name, content)
            for verb in NO_TRACE:
                ended = self.refused(verb, path)
                if ended:
                    self.assertNotIn("\x1b", ended.stderr)

    def test_endless(self):
        for verb in ("report", "config --check", "run --config"):
            self.refused(verb, "/dev/zero")

    def test_a_bomb_of_zeros(self):
        path = self.folder / "bomb.gz"
        with gzip.open(path, "wb", compresslevel=1) as bomb:
            for _ in range(64):
                bomb.write(b"\0" * (1 << 20))
        for verb in NO_TRACE:
            self.refused(verb, path)

    def test_huge(self):
        path = self.file("huge", b"{")
        os.truncate(path, 1 << 40)  # takes no room on the disk
        for verb in ("report", "config --check"):
            self.refused(verb, path)

    def test_a_pipe_without_a_writer(self):
        path = self.folder / "pipe"
        os.mkfifo(path)
        for verb in ("report", "report --html"):
            self.refused(verb, path)
        self.assertTrue(stat.S_ISFIFO(path.stat().st_mode))

    def test_outputs_are_never_replaced(self):
        taken = self.file("taken", b"precious")
        link = self.folder / "link"
        link.symlink_to(self.folder / "elsewhere")
        report = self.file("rank.json", REPORT)
        trace = self.file("trace.csv", b"a,1,1000,0\n")
        for path in (taken, link, pathlib.Path("/nonexistent/file"), pathlib.Path("/")):
            for words in (["report", report, "--html", path], ["size", trace, "--write", path], ["config", "--init", path]):
                with self.subTest(words=words):
                    ended = subprocess.run([COMMAND, *words], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
                    self.assertEqual(ended.returncode, 5, ended)
                    self.assertEqual(len(ended.stderr.splitlines()), 1, ended.stderr)
        self.assertEqual(taken.read_bytes(), b"precious")
        self.assertFalse((self.folder / "elsewhere").exists())

    def test_a_full_disk_is_told(self):
        for words in (["report", self.file("rank.json", REPORT)], ["config"], ["help", "--as", "man"]):
            with open("/dev/full", "w") as full:
                ended = subprocess.run([COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(ended.returncode, 5)
            self.assertIn("standard output: No space left on device", ended.stderr)


unittest.main(verbosity=2)
