"""The Kubernetes recipes render to what is kept here, and hold to the published schemas of four Kubernetes versions.

    tests/deploy/test_kubernetes.py            as a test
    tests/deploy/test_kubernetes.py --write    writes what is kept: golden/example.yaml, and the plain policy beside the chart

Rendered by kubectl and by Helm's own library; checked by kubernetes-validate. What is not installed is skipped, by name.
"""
import pathlib
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KUBERNETES = ROOT / "scripts" / "deploy" / "kubernetes"
GOLDEN = pathlib.Path(__file__).resolve().parent / "golden" / "example.yaml"
POLICY = KUBERNETES / "policy" / "policy.yaml"
HEADING = "# The chart's policy as Helm renders it for Kubernetes 1.36 and newer, for clusters without Helm: kubectl apply -f policy.yaml\n"
GROUP = "admissionregistration.k8s.io/"
VERSIONS = {"v1beta1": ("1.34.0", "1.35.0"), "v1": ("1.36.0", "1.37.0")}  # of Kubernetes, by the policy's API that they serve

sys.path.insert(0, str(ROOT / ".deps" / "python"))
try:
    import helm_python.chart as helm
except ImportError:
    helm = None
try:
    import kubernetes_validate
    import yaml
except ImportError:
    kubernetes_validate = None


def kustomized():
    return subprocess.run(["kubectl", "kustomize", str(KUBERNETES / "example")], check=True, capture_output=True, text=True).stdout


def can_kustomize():
    return shutil.which("kubectl") and subprocess.run(["kubectl", "kustomize", "--help"], capture_output=True, check=False).returncode == 0


def rendered(version, **values):
    parts = helm.Chart.load(KUBERNETES / "chart").render({"apiVersion": GROUP + version, **values})
    return "".join(text.strip() + "\n" if text.strip().startswith("---") else f"---\n{text.strip()}\n" for _, text in sorted(parts.items()))


class Kubernetes(unittest.TestCase):
    maxDiff = None

    def valid(self, text, version):
        documents = [document for document in yaml.safe_load_all(text) if document]
        self.assertTrue(documents)
        for document in documents:
            kubernetes_validate.validate(document, version, strict=True)

    @unittest.skipUnless(can_kustomize(), "no kubectl that knows kustomize")
    def test_the_component(self):
        self.assertEqual(kustomized(), GOLDEN.read_text())

    @unittest.skipUnless(helm, "no helm-python-sdk")
    def test_the_plain_policy_is_the_charts(self):
        self.assertEqual(HEADING + rendered("v1"), POLICY.read_text())

    @unittest.skipUnless(helm, "no helm-python-sdk")
    def test_values_reach_the_policy(self):
        text = rendered("v1", image="registry.example/planted:7", environment={"PLANTED": "a:b"}, namespaces=["one", "two"])
        for expected in ('image: "registry.example/planted:7"', 'name: "PLANTED", value: "a:b"', "namespace: one", "namespace: two"):
            self.assertIn(expected, text)

    @unittest.skipUnless(kubernetes_validate, "no kubernetes-validate")
    def test_the_example_is_valid(self):
        for versions in VERSIONS.values():
            for version in versions:
                with self.subTest(version):
                    self.valid(GOLDEN.read_text(), version)

    @unittest.skipUnless(kubernetes_validate, "no kubernetes-validate")
    def test_the_policy_is_valid(self):
        for api, versions in VERSIONS.items():
            for version in versions:
                with self.subTest(version):
                    self.valid(POLICY.read_text().replace(GROUP + "v1\n", f"{GROUP}{api}\n"), version)

    @unittest.skipUnless(kubernetes_validate, "no kubernetes-validate")
    def test_a_wrong_manifest_is_not(self):
        with self.assertRaises(Exception):
            self.valid(GOLDEN.read_text().replace("mountPath:", "mountpath:"), "1.36.0")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        GOLDEN.write_text(kustomized())
        POLICY.write_text(HEADING + rendered("v1"))
    else:
        unittest.main()
