"""The traces that scripts/synthetic-traces makes up: the same seed gives the same bytes, and every free has its request."""
import gzip
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "synthetic-traces"


def made(folder, *options):
    subprocess.run([sys.executable, "-B", SCRIPT, folder, *options], check=True)
    return {file.name: file.read_bytes() for file in pathlib.Path(folder).iterdir()}


class SyntheticTraces(unittest.TestCase):
    def test_equal_seeds_give_equal_files_and_others_do_not(self):
        with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b, tempfile.TemporaryDirectory() as c:
            first = made(a, "--only", "graphs,adversarial")
            self.assertEqual(sorted(first), ["adversarial.csv.gz", "graphs.csv.gz"])
            self.assertEqual(first, made(b, "--only", "graphs,adversarial"))
            self.assertNotEqual(first["graphs.csv.gz"], made(c, "--only", "graphs", "--seed", "2")["graphs.csv.gz"])

    def test_every_free_has_its_request(self):
        with tempfile.TemporaryDirectory() as folder:
            for data in made(folder, "--only", "serving,two_streams,detection").values():
                live = set()
                for line in gzip.decompress(data).decode().splitlines():
                    fields = line.split(",")
                    if fields[0] == "a":
                        self.assertGreater(int(fields[2]), 0)
                        live.add(fields[1])
                    else:
                        live.remove(fields[1])

    def test_an_unknown_kind_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-B", SCRIPT, folder, "--only", "nothing"], capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("no kind is called nothing", done.stderr)


unittest.main()
