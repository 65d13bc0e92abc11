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
    "cdi --image": ["cdi", "--image", "{}"],
    "cdi --config": ["cdi", "--config", "{}"],
    "run --config": ["run", "--config", "{}", "--", "true"],
}
NO_TRACE = ("report", "replay", "size")


NOBODY = 65534


class BadInput(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    addresses = 2 << 30  # that a command may have
    largest_file = resource.RLIM_INFINITY

    def become(self):
        resource.setrlimit(resource.RLIMIT_AS, (self.addresses, self.addresses))
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.largest_file, self.largest_file))

    def nobody(self):
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)

    def run_as(self, words):
        try:
            return subprocess.run([COMMAND, *words], cwd=self.folder, env={"PATH": os.environ["PATH"]}, timeout=60,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, preexec_fn=self.become)
        except PermissionError:
            self.skipTest("another user may not run the command where it lies")

    def file_of_all(self, name, content):
        """A file that another user can read; made beside the folder, which may be closed."""
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        path = pathlib.Path(holder.name, name)
        path.write_bytes(content)
        path.parent.chmod(0o755)
        return path

    def refused(self, verb, path, status=3):
        words = [word.format(path) for word in READERS[verb]]
        with self.subTest(verb=verb, path=str(path)):
            ended = self.run_as(words)
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

    def test_no_permission(self):
        path = self.file("secret", b"{}")
        path.chmod(0)
        if os.geteuid() == 0:  # who may read everything, and becomes someone who may not
            self.folder.chmod(0o777)
            self.become = self.nobody
        for verb in READERS:
            self.refused(verb, path)
        self.folder.chmod(0o555)
        report = self.file_of_all("rank.json", REPORT)
        for words in (["report", report, "--html", "page.html"], ["config", "--init", "c.json"], ["size", "--write", "n.json", "--", "true"]):
            ended = self.run_as(words)
            self.assertEqual(ended.returncode, 5, ended)
            self.assertRegex(ended.stderr, r"^gpupool: \w+: error: \w+\.\w+: Permission denied\n$")

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
                   "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "nested": b"[" * 100000, "zeros": b"\0" * 4096, "wide": b"x" * 100000, "controls": b"\x1b[31m\n"}
        for name, content in foreign.items():
            path = self.file(name, content)
            for verb in NO_TRACE:
                ended = self.refused(verb, path)
                if ended:
                    self.assertNotIn("\x1b", ended.stderr)

    def test_endless(self):
        for verb in READERS:
            self.refused(verb, "/dev/zero")

    def test_a_bomb_of_zeros(self):
        path = self.folder / "bomb.gz"
        with gzip.open(path, "wb", compresslevel=1) as bomb:
            for _ in range(64):
                bomb.write(b"\0" * (1 << 20))
        for verb in NO_TRACE:
            self.refused(verb, path)

    def test_huge(self):
        for name, start in (("huge.json", b"{"), ("huge.csv", b"a,1,1000,0\n"), ("huge.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\xff")):
            path = self.file(name, start)
            os.truncate(path, 10 << 30)  # takes no room on the disk
            for verb in READERS:
                self.refused(verb, path)

    def test_a_pipe_without_a_writer(self):
        path = self.folder / "pipe"
        os.mkfifo(path)
        for verb in READERS:
            self.refused(verb, path)
        self.assertTrue(stat.S_ISFIFO(path.stat().st_mode))

    def test_little_memory(self):
        self.addresses = 24 << 20
        trace = HERE.parent / "data" / "traces" / "ernie.csv.gz"
        for words in (["report", trace], ["replay", trace], ["size", trace], ["report", trace, "--html", "page.html"]):
            ended = self.run_as(words)
            self.assertEqual((ended.returncode, ended.stdout), (3, ""), ended)
            self.assertEqual(ended.stderr, f"gpupool: {words[0]}: error: not enough memory on this host\n")
        self.assertFalse((self.folder / "page.html").exists())

    def test_full_disks(self):
        """On a file system of 64 KiB, for which one has to be root, and may mount."""
        small = self.folder / "small"
        small.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "gpupool-test", small], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest("nothing can be mounted here")
        self.addCleanup(subprocess.run, ["umount", small], check=True)
        trace = HERE.parent / "data" / "traces" / "gpt_varlen.csv.gz"
        (small / "fill").write_bytes(b"x" * (60 << 10))
        for words in (["report", trace, "--html", small / "page.html"], ["config", "--init", small / "c.json"]):
            ended = self.run_as(words)
            self.assertEqual((ended.returncode, ended.stderr), (5, f"gpupool: {words[0]}: error: {words[-1]}: No space left on device\n"))
            self.assertEqual(sorted(one.name for one in small.iterdir()), ["fill"])
        ended = subprocess.run([COMMAND, "size", "--", "true"], env={"PATH": os.environ["PATH"], "TMPDIR": str(small)}, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 5, ended)
        self.assertRegex(ended.stderr, r"a temporary folder is needed \(TMPDIR\): .*: No space left on device\n$")
        self.assertEqual(sorted(one.name for one in small.iterdir()), ["fill"])

    def test_outputs_are_never_replaced(self):
        taken = self.file("taken", b"precious")
        link = self.folder / "link"
        link.symlink_to(self.folder / "elsewhere")
        report = self.file("rank.json", REPORT)
        trace = self.file("trace.csv", b"a,1,1000,0\n")
        for path in (taken, link, pathlib.Path("/nonexistent/file"), pathlib.Path("/")):
            for words in (["report", report, "--html", path], ["size", trace, "--write", path], ["config", "--init", path],
                          ["size", "--write", path, "--", "touch", self.folder / "started"]):
                with self.subTest(words=words):
                    ended = subprocess.run([COMMAND, *words], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
                    self.assertEqual(ended.returncode, 5, ended)
                    self.assertEqual(len(ended.stderr.splitlines()), 1, ended.stderr)
        self.assertEqual(taken.read_bytes(), b"precious")
        self.assertFalse((self.folder / "elsewhere").exists())
        self.assertFalse((self.folder / "started").exists())

    def test_a_limit_on_the_size_of_files_is_told(self):
        self.largest_file = 8192
        ended = self.run_as(["report", self.file("rank.json", REPORT), "--html", PAGE])
        self.assertEqual(ended.returncode, 5, ended)
        self.assertIn(f"{PAGE}: File too large", ended.stderr)
        self.assertFalse((self.folder / PAGE).exists())

    def test_a_full_disk_is_told(self):
        for words in (["report", self.file("rank.json", REPORT)], ["config"], ["help", "--as", "man"]):
            with open("/dev/full", "w") as full:
                ended = subprocess.run([COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(ended.returncode, 5)
            self.assertIn("standard output: No space left on device", ended.stderr)


unittest.main(verbosity=2)
