"""What the verbs write for programs is what docs/schemas says. Skipped (77) without Python's jsonschema."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

SYSTEM_PYTHON = "/usr/bin/python3"  # the one that has the distribution's jsonschema
try:
    import jsonschema
except ImportError:
    if os.path.realpath(sys.executable) != os.path.realpath(SYSTEM_PYTHON) and os.path.exists(SYSTEM_PYTHON):
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])
    print("skipped: no jsonschema")
    sys.exit(77)

COMMAND = os.path.abspath(sys.argv.pop(1))
PROGRAM, DRIVER = (sys.argv.pop(1), sys.argv.pop(1)) if len(sys.argv) > 2 else (None, None)
HERE = pathlib.Path(__file__).parent
SCHEMAS = HERE.parents[1] / "docs" / "schemas"
TRACE = str(HERE.parent / "data" / "traces" / "gpt_varlen.csv.gz")
RANKS = [str(HERE / "golden" / f"rank{rank}.json") for rank in range(3)]


def run(*words, **more):
    environment = {"PATH": os.environ["PATH"], **more}
    return subprocess.run([COMMAND, *words], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)


class Json(unittest.TestCase):
    def check(self, schema, text):
        schema = json.loads((SCHEMAS / f"{schema}.schema.json").read_text())
        jsonschema.Draft7Validator.check_schema(schema)
        value = json.loads(text)
        jsonschema.validate(value, schema)
        return schema, value

    def test_report(self):
        schema, value = self.check("report", run("report", *RANKS, "--json").stdout)
        self.check("report", run("report", TRACE, "--json").stdout)
        for spoil in (lambda v: v.pop("cards"), lambda v: v["pools"][0].update(waste=2), lambda v: v["pools"][0].update(Odd=1)):
            spoilt = json.loads(json.dumps(value))
            spoil(spoilt)
            with self.assertRaises(jsonschema.ValidationError):
                jsonschema.validate(spoilt, schema)

    def test_replay(self):
        self.check("replay", run("replay", TRACE, "--json").stdout)
        self.check("replay-compare", run("replay", TRACE, "--json", "--compare", "auto_growth,pytorch").stdout)

    def test_every_verb_with_json_has_a_schema(self):
        for line in run("help", "--as", "bash").stdout.splitlines():
            verb, options = line.strip().partition(") options=")[::2]
            if '--json"' in options or "--json " in options:
                self.assertTrue((SCHEMAS / f"{verb}.schema.json").exists(), verb)

    def test_config(self):
        self.check("config", run("config", "--json", GPUPOOL_POOL_SIZE="8GiB").stdout)

    def test_faults_of_a_configuration(self):
        _, value = self.check("config-check", run("config", "--check", str(HERE / "golden" / "wrong.json"), "--json").stdout)
        self.assertFalse(value["ok"])
        self.assertTrue(all(fault["line"] > 0 and fault["problem"] for fault in value["faults"]))
        self.assertTrue(any(fault["nearest"] for fault in value["faults"]))
        example = next((HERE.parents[1] / "config" / "examples").glob("*.json"))
        self.assertEqual(self.check("config-check", run("config", "--check", str(example), "--json").stdout)[1]["faults"], [])

    def test_doctor(self):
        self.check("doctor", run("doctor", "--json").stdout)

    def test_size(self):
        self.check("size", run("size", TRACE, "--json", "--card", "80GiB").stdout)

    def test_examples_are_valid_for_the_schema_of_the_configuration(self):
        schema = json.loads(run("config", "--schema").stdout)
        examples = sorted((HERE.parents[1] / "config" / "examples").glob("*.json"))
        self.assertGreaterEqual(len(examples), 4)
        for example in examples:
            jsonschema.validate(json.loads(example.read_text()), schema)
            self.assertEqual(run("config", "--check", str(example)).returncode, 0, example)

    def test_what_init_writes_is_valid_for_it_and_comments_hide_nothing(self):
        schema = json.loads(run("config", "--schema").stdout)
        with tempfile.TemporaryDirectory() as folder:
            file = folder + "/c.json"
            self.assertEqual(run("config", "--init", file).returncode, 0)
            value = json.loads(pathlib.Path(file).read_text())
        jsonschema.validate(value, schema)
        value["devices"] = {"$why": 1, "0": {"$why": [], "pool": {"$max": {}, "max": "9GiB"}}}
        jsonschema.validate(value, schema)
        for spoil in (lambda v: v.update(size="1GiB"), lambda v: v["pool"].update({"x$": ""}), lambda v: v["pool"].update(size=-1)):
            spoilt = json.loads(json.dumps(value))
            spoil(spoilt)
            with self.assertRaises(jsonschema.ValidationError):
                jsonschema.validate(spoilt, schema)

    @unittest.skipUnless(PROGRAM, "no simulated driver")
    def test_a_live_process(self):
        self.check("top", run("top", "--json", GPUPOOL_STATS_PAGES="/nonexistent").stdout)
        with tempfile.TemporaryDirectory() as folder:
            here = {"LD_LIBRARY_PATH": DRIVER, "GPUPOOL_SIM_MEMORY": "4GiB", "GPUPOOL_STATS_PAGES": folder}
            words = [COMMAND, "run", "--set", "stats.summary=off", "--", PROGRAM, "holder"]
            holder = subprocess.Popen(words, env={"PATH": os.environ["PATH"], "CASE_FOLDER": folder, "CASE_LIVE": "64", "CASE_AGAIN": "0", **here})
            while not os.path.exists(folder + "/held"):
                self.assertIsNone(holder.poll())
                time.sleep(0.01)
            _, value = self.check("top", run("top", "--json", **here).stdout)
            [process] = value["processes"]
            self.check("exit-report", json.dumps({name: process[name] for name in process if name not in ("page", "passed_live", "rates")}))
            _, value = self.check("trim", run("trim", str(holder.pid), "--json", **here).stdout)
            self.assertTrue(value["answered"])
            pathlib.Path(folder, "done").write_text("")
            self.assertEqual(holder.wait(60), 0)

    @unittest.skipUnless(PROGRAM, "no simulated driver")
    def test_a_process(self):
        with tempfile.TemporaryDirectory() as folder:
            file = folder + "/report.json"
            counted = run("size", "--unify", "--json", "--", PROGRAM, "plain", LD_LIBRARY_PATH=DRIVER, GPUPOOL_SIM_MEMORY="4GiB")
            self.check("size", counted.stdout)
            run("run", "--stats", file, "--", PROGRAM, "plain", LD_LIBRARY_PATH=DRIVER, GPUPOOL_SIM_MEMORY="4GiB")
            _, value = self.check("exit-report", pathlib.Path(file).read_text())
            self.assertEqual({len(point) for point in value["curve"]}, {len(value["curve_columns"])})
            self.check("report", run("report", file, "--json").stdout)
            for strategy in ("auto_growth", "passthrough"):
                trace = f"{folder}/{strategy}.gpt"
                run("run", "--strategy", strategy, "--trace", trace, "--", PROGRAM, "plain", LD_LIBRARY_PATH=DRIVER, GPUPOOL_SIM_MEMORY="4GiB")
                _, value = self.check("report", run("report", trace, "--json").stdout)
                self.assertEqual(value["pools"][0].get("hit_rate"), None)
                self.assertEqual("hit_rate" in value["pools"][0], strategy == "auto_growth")
                self.check("report", run("report", trace, file, "--json").stdout)


unittest.main(verbosity=2)
