"""The MutatingAdmissionPolicy, its expressions evaluated and applied to the pods of pods/ (admission.py), without an API server.

    tests/deploy/test_admission.py            as a test
    tests/deploy/test_admission.py --write    writes what is kept: golden/admitted-*.yaml
"""
import copy
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
POLICY = ROOT / "scripts" / "deploy" / "kubernetes" / "policy" / "policy.yaml"
PODS = ("bare", "full")
VERSIONS = ("1.34.0", "1.35.0", "1.36.0", "1.37.0")

sys.path.insert(0, str(ROOT / ".deps" / "python"))
try:
    import admission
    import kubernetes_validate
    import yaml
except ImportError:
    admission = None


def policy():
    return next(one for one in yaml.safe_load_all(POLICY.read_text()) if one and one["kind"] == "MutatingAdmissionPolicy")


def pod(name):
    return yaml.safe_load((HERE / "pods" / f"{name}.yaml").read_text())


def golden(name):
    return HERE / "golden" / f"admitted-{name}.yaml"


def admitted(name, version=VERSIONS[-1]):
    return admission.admitted(policy(), pod(name), version)


@unittest.skipUnless(admission, "no cel-python, jsonpatch or kubernetes-validate")
class Admission(unittest.TestCase):
    maxDiff = None

    def test_what_becomes_of_the_pods(self):
        for name in PODS:
            for version in VERSIONS:
                with self.subTest(name, version=version):
                    result = admitted(name, version)
                    self.assertEqual(yaml.safe_dump(result), golden(name).read_text())
                    kubernetes_validate.validate(result, version, strict=True)

    def test_nothing_of_the_pod_is_lost(self):
        before, after = pod("full")["spec"], admitted("full")["spec"]
        [train, other] = after["containers"]
        variables = {one["name"]: one.get("value") for one in train["env"]}
        self.assertEqual(variables["LD_PRELOAD"], "/opt/gpupool/lib/libgpupool.so:/usr/lib/x86_64-linux-gnu/libm.so.6")
        self.assertIn(before["containers"][0]["env"][2], train["env"])
        self.assertEqual([one["value"] for one in other["env"] if one["name"] == "GPUPOOL_CONFIG"], ["/data/mine.json"])
        for kind in ("volumes", "initContainers"):
            self.assertEqual(after[kind][0], before[kind][0])

    def test_what_a_path_names_is_set_before_it(self):
        names = [one["name"] for one in admitted("full")["spec"]["containers"][0]["env"]]
        for told in ("POOL_NODE_NAME", "POOL_POD_NAME"):
            self.assertLess(names.index(told), names.index("GPUPOOL_STATS_PATH"))

    def test_pods_that_are_left_alone(self):
        once = admitted("full")
        self.assertIsNone(admission.admitted(policy(), once, VERSIONS[-1]), "injected twice")
        without = pod("bare")
        without["metadata"]["labels"] = {}
        self.assertIsNone(admission.admitted(policy(), without, VERSIONS[-1]))
        hidden = pod("bare")
        hidden["spec"]["containers"][0]["env"] = [{"name": "LD_PRELOAD", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}]
        self.assertIsNone(admission.admitted(policy(), hidden, VERSIONS[-1]))

    def refused(self, old, new):
        planted = copy.deepcopy(policy())
        configuration = planted["spec"]["mutations"][0]["applyConfiguration"]
        self.assertIn(old, configuration["expression"])
        configuration["expression"] = configuration["expression"].replace(old, new, 1)
        with self.assertRaises(admission.Refused):
            admission.admitted(planted, pod("bare"), VERSIONS[-1])

    def test_what_a_server_refuses(self):
        context = "Object.spec.initContainers.securityContext"
        self.refused("readOnlyRootFilesystem: true,", f'capabilities: {context}.capabilities{{drop: ["ALL"]}},')
        self.refused("readOnlyRootFilesystem: true,", "readOnlyRootfilesystem: true,")
        self.refused(f"seccompProfile: {context}.seccompProfile", "seccompProfile: Object.spec.seccompProfile")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        for each in PODS:
            golden(each).write_text(yaml.safe_dump(admitted(each)))
    else:
        unittest.main()
