"""A process at work under the preload, seen by `gpupool top` on a terminal and by a collector, and asked for memory.

    test_live.py COMMAND FRONT DRIVER_FOLDER PROGRAM
"""
import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

COMMAND, FRONT, DRIVER, PROGRAM = map(os.path.abspath, sys.argv[1:5])
DEADLINE_SECONDS = 60  # generous: nothing here is a measurement
ON_A_CARD = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": DRIVER, "GPUPOOL_SIM_MEMORY": "4GiB"}


class Holder:
    """A program that holds 256 MiB of a card of 4 GiB and makes no call until it is told to end."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        path = self.folder.name
        self.environment = {"PATH": "/usr/bin:/bin", "GPUPOOL_STATS_PAGES": path + "/pages"}
        os.mkdir(path + "/pages")
        environment = {**self.environment, "LD_PRELOAD": FRONT, "LD_LIBRARY_PATH": DRIVER, "GPUPOOL_SIM_MEMORY": "4GiB",
                       "GPUPOOL_STATS_SUMMARY": "off", "RANK": "5", "CASE_FOLDER": path, "CASE_LIVE": "256", "CASE_AGAIN": "0"}
        self.program = subprocess.Popen([PROGRAM, "holder"], env=environment)
        wait_for(lambda: os.path.exists(path + "/held"))
        return self

    def __exit__(self, *_):
        open(self.folder.name + "/done", "w").close()
        self.status = self.program.wait(DEADLINE_SECONDS)
        self.folder.cleanup()

    def command(self, *words):
        return subprocess.run([COMMAND, *words], env=self.environment, capture_output=True, text=True, timeout=DEADLINE_SECONDS)


def wait_for(condition):
    end = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(condition)
        time.sleep(0.01)


def runs(pid):
    """Whether the process is there, and not just not waited for."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Terminal:
    """`gpupool WORDS` on a pseudo-terminal of 120 columns and 20 lines; keeps all it writes."""

    def __init__(self, environment, *words):
        self.text = ""
        ready, go = os.pipe()
        self.pid, self.side = pty.fork()
        if self.pid == 0:
            os.read(ready, 1)
            os.execve(COMMAND, [COMMAND, *words], {"TERM": "xterm", "LC_ALL": "C", **environment})
        self.resize(20, 120)
        self.modes = termios.tcgetattr(self.side)
        os.write(go, b"x")
        os.close(ready)
        os.close(go)

    def resize(self, lines, columns):
        fcntl.ioctl(self.side, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self):
        if not select.select([self.side], [], [], 0.02)[0]:
            return True
        try:
            got = os.read(self.side, 65536)
        except OSError:
            return False
        self.text += got.decode(errors="replace")
        return bool(got)

    def until(self, pattern):
        """What was written since the last call, up to a match of the pattern."""
        def seen():
            self.read()
            return re.search(pattern, self.text, re.S)
        wait_for(seen)
        text, self.text = self.text, ""
        return text

    def press(self, keys):
        os.write(self.side, keys.encode())

    def end(self):
        """Its status, as the shell would say it, negative for a signal."""
        while self.read():
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class OpenMetrics:
    """A strict reader of the text format: what a family may be called, its one TYPE, UNIT and HELP, its samples, labels, the end."""

    NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*$")
    SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{(.*)\} (-?[0-9.e+-]+)$")
    LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')

    def __init__(self, text):
        self.types, self.units, self.samples = {}, {}, {}
        assert text.endswith("# EOF\n") and text.count("# EOF") == 1
        family = None
        for line in text.split("\n")[:-2]:
            if line.startswith("# "):
                kind, name, rest = line[2:].split(" ", 2)
                assert self.NAME.match(name), line
                if kind == "TYPE":
                    assert name not in self.types and rest in ("gauge", "counter"), line
                    family = name
                    self.types[name] = rest
                elif kind == "UNIT":
                    assert name == family and name.endswith("_" + rest), line
                    self.units[name] = rest
                else:
                    assert kind == "HELP" and name == family and rest, line
                continue
            name, labels, value = self.SAMPLE.match(line).groups()
            assert name == family + ("_total" if self.types[family] == "counter" else ""), line
            found, at = {}, 0
            while at < len(labels):
                label = self.LABEL.match(labels, at)
                assert label and label[1] not in found, line
                found[label[1]] = label[2]
                at = label.end()
            key = (name, tuple(sorted(found.items())))
            assert key not in self.samples, line
            self.samples[key] = float(value)

    def value(self, name, **labels):
        return [value for (sample, has), value in self.samples.items() if sample == name and labels.items() <= dict(has).items()]


class Live(unittest.TestCase):
    def test_a_collector_gets_valid_openmetrics(self):
        with Holder() as holder:
            metrics = OpenMetrics(holder.command("top", "--openmetrics").stdout)
            self.assertEqual(metrics.types["gpupool_live_bytes"], "gauge")
            self.assertEqual(metrics.units["gpupool_pool_seconds"], "seconds")
            self.assertEqual(metrics.types["gpupool_requests"], "counter")
            self.assertEqual(metrics.value("gpupool_live_bytes", pid=str(holder.program.pid), rank="5"), [256 << 20])
            self.assertEqual(metrics.value("gpupool_requests_total", device="0"), [8])
        OpenMetrics(holder.command("top", "--openmetrics").stdout)  # nobody there: valid as well

    def test_prometheus_own_parsers_take_it(self):
        sys.path.append("/usr/lib/python3/dist-packages")  # where the distribution has it, whichever Python this is
        try:
            from prometheus_client import parser
            from prometheus_client.openmetrics import parser as openmetrics
        except ImportError:
            self.skipTest("no prometheus_client")
        with Holder() as holder:
            text = holder.command("top", "--openmetrics").stdout
            families = {family.name: family for family in openmetrics.text_string_to_metric_families(text)}
            self.assertEqual(families["gpupool_live_bytes"].unit, "bytes")
            self.assertEqual(families["gpupool_requests"].type, "counter")
            [live] = families["gpupool_live_bytes"].samples
            self.assertEqual((live.value, live.labels["pid"], live.labels["rank"]), (256 << 20, str(holder.program.pid), "5"))
            # What node exporter's textfile collector reads is the older format.
            older = {sample.name: sample.value for family in parser.text_string_to_metric_families(text) for sample in family.samples}
            self.assertEqual((older["gpupool_live_bytes"], older["gpupool_requests_total"]), (256 << 20, 8))
        self.assertEqual(list(openmetrics.text_string_to_metric_families(holder.command("top", "--openmetrics").stdout))[0].samples, [])

    def test_the_screen_shows_the_process_takes_keys_and_leaves(self):
        with Holder() as holder:
            screen = Terminal(holder.environment, "top", "--interval", "50ms")
            screen.until(rf"PID\*.*{holder.program.pid}.*256 MiB.*preload_core_pro")
            screen.press("s")
            screen.until(r"RANK\*")
            screen.press("S")
            screen.until(r"PID\*")
            screen.press("/nobody\n")
            screen.until('filter "nobody"')
            screen.press("/core\n")
            screen.until(str(holder.program.pid))
            screen.press("/no")
            screen.until("filter:")
            screen.resize(18, 110)
            screen.press("q\x7fbody\n")  # what is typed is the filter, whatever else happens
            screen.until('filter "nobody"')
            screen.press("/\x1b")
            screen.until(str(holder.program.pid))
            screen.press("t")
            screen.until(r"gave back \d")
            screen.press("q")
            screen.end()
            top = holder.command("top", "--once").stdout
            self.assertRegex(top, rf"{holder.program.pid} .*256 MiB")

    def test_a_terminal_that_only_prints_gets_the_table_once(self):
        with Holder() as holder:
            for name in ("dumb", ""):
                with self.subTest(TERM=name):
                    screen = Terminal({**holder.environment, "TERM": name}, "top")
                    screen.end()
                    self.assertRegex(screen.text, rf"PID.*LIVE OVER TIME\s+{holder.program.pid} ")
                    self.assertNotIn("\x1b", screen.text)

    def test_the_screen_follows_the_size_of_the_terminal(self):
        with Holder() as holder:
            screen = Terminal(holder.environment, "top", "--interval", "50ms")
            screen.until(rf"{holder.program.pid}.*LIVE OVER TIME|LIVE OVER TIME.*{holder.program.pid}")
            screen.resize(6, 30)
            screen.until(r"PID\*(?:(?!LIVE OVER TIME).)*q quit")  # before it, one more of the old size perhaps
            screen.resize(20, 120)
            screen.until(r"PID\*.*LIVE OVER TIME")
            screen.press("q")
            screen.end()

    def test_the_terminal_is_as_before_however_the_screen_ends(self):
        with Holder() as holder:
            for way in ("q", "\x03", "/q\x03", 15, 3, 11):
                with self.subTest(way=way):
                    screen = Terminal(holder.environment, "top", "--interval", "50ms")
                    before = screen.modes
                    screen.until(str(holder.program.pid))
                    self.assertFalse(termios.tcgetattr(screen.side)[3] & termios.ECHO)
                    if isinstance(way, str):
                        screen.press(way)
                    else:
                        os.kill(screen.pid, way)
                    wait_for(lambda: termios.tcgetattr(screen.side)[3] & termios.ECHO)
                    self.assertEqual(termios.tcgetattr(screen.side)[:4], before[:4])
                    screen.until(r"\x1b\[\?1049l")
                    self.assertEqual(screen.end(), {3: -3, 11: -11}.get(way, 0))

    def test_colours_are_for_terminals_that_take_them(self):
        environment = {"PATH": "/usr/bin:/bin", "GPUPOOL_POOL_SIEZ": "1GiB"}
        for more, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)):
            with self.subTest(**more):
                screen = Terminal({**environment, **more}, "doctor")
                text = screen.until(r"note +limits|ok +child")
                screen.end()
                self.assertEqual("\x1b[33mwarning" in text, coloured)

    def test_a_terminal_that_cannot_be_drawn_on_gets_the_table_once(self):
        with Holder() as holder:
            screen = Terminal({**holder.environment, "TERM": "no-such-terminal"}, "top")
            screen.until(rf"this terminal cannot be drawn on; here is the table, once.*{holder.program.pid} ")
            self.assertEqual(screen.end(), 0)

    def test_size_shows_its_progress_on_a_terminal(self):
        screen = Terminal(ON_A_CARD, "size", "--steps", "20", "--", PROGRAM, "steps")
        screen.until(r"live \d+ MiB, reserved \d+ MiB, need so far 48 MiB, step \d+, \d+ s")
        screen.until(r"was stopped after --steps.*next time: pool.size=64MiB")
        screen.end()

    def test_size_survives_the_interrupt_that_ends_its_program(self):
        screen = Terminal(ON_A_CARD, "size", "--", PROGRAM, "steps")
        screen.until("need so far 48 MiB")
        screen.press("\x03")
        screen.until(r"ended with status 130.*next time: pool.size=64MiB")
        screen.end()

    def test_size_that_is_ended_ends_its_program_and_still_says_what_it_saw(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**ON_A_CARD, "TMPDIR": folder, "CASE_FOLDER": folder, "CASE_LIVE": "256", "CASE_AGAIN": "0"}
            size = subprocess.Popen([COMMAND, "size", "--", PROGRAM, "holder"], env=environment, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            wait_for(lambda: os.path.exists(folder + "/held"))
            size.send_signal(15)
            out, err = size.communicate(timeout=DEADLINE_SECONDS)
            self.assertIn("next time: pool.size=320MiB", out)
            self.assertIn("ended with status 143", err)
            self.assertEqual(size.returncode, 1)
            self.assertEqual(os.listdir(folder), ["held"])

    def test_what_size_stops_ends_as_a_whole(self):
        """A shell's background jobs ignore SIGINT; and SIGINT may be sent to the command alone."""
        jobs = [COMMAND, "size", "--", "sh", "-c", f"{PROGRAM} steps & echo $! >jobs; {PROGRAM} steps & echo $! >>jobs; wait"]
        for words, sent in ((["--steps", "3"], None), ([], signal.SIGTERM), ([], signal.SIGINT)):
            with self.subTest(words=words, sent=sent), tempfile.TemporaryDirectory() as folder:
                size = subprocess.Popen(jobs[:2] + words + jobs[2:], env=ON_A_CARD, cwd=folder, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
                started = pathlib.Path(folder) / "jobs"
                wait_for(lambda: started.exists() and len(started.read_text().split()) == 2)
                processes = [int(pid) for pid in started.read_text().split()]
                if sent:
                    wait_for(lambda: all(b"simcuda" in pathlib.Path(f"/proc/{pid}/maps").read_bytes() for pid in processes))
                    size.send_signal(sent)
                out, err = size.communicate(timeout=DEADLINE_SECONDS)
                self.assertGreaterEqual(size.returncode, 0, err)  # no signal ended it
                for pid in processes:
                    self.assertFalse(runs(pid), err)
                if not sent:
                    self.assertIn("next time: pool.size=64MiB", out)

    def test_an_idle_process_gives_memory_back(self):
        with Holder() as holder:
            pid = str(holder.program.pid)
            wait_for(lambda: OpenMetrics(holder.command("top", "--openmetrics").stdout).value("gpupool_reserved_bytes")[0] > 3 << 30)
            to = holder.command("trim", pid, "--to", "1GiB")
            self.assertEqual(to.returncode, 0, to.stderr)
            self.assertRegex(to.stdout, rf"process {pid} gave back [\d.]+ GiB")
            rest = holder.command("trim", pid, "--json")
            self.assertIn('"answered": true', rest.stdout)
            metrics = OpenMetrics(holder.command("top", "--openmetrics").stdout)
            self.assertLess(metrics.value("gpupool_reserved_bytes")[0], 400 << 20)
        self.assertEqual(holder.status, 0)

    def test_a_stopped_process_is_reported_as_not_answering(self):
        with Holder() as holder:
            holder.program.send_signal(19)
            threads = pathlib.Path(f"/proc/{holder.program.pid}/task")
            states = lambda: [(one / "stat").read_text().rpartition(")")[2].split()[0] for one in threads.iterdir()]
            wait_for(lambda: set(states()) == {"T"})
            try:
                answer = holder.command("trim", str(holder.program.pid))
                self.assertEqual(answer.returncode, 1)
                self.assertIn("did not answer in time", answer.stdout)
            finally:
                holder.program.send_signal(18)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
