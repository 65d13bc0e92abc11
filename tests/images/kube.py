"""The pod of the Kubernetes example under `podman play kube`: rendered by kubectl, with the images of this machine, its card left out (the
driver is simulated), and the claim as a volume of podman's.
"""
import subprocess

import yaml

from checks import PROGRAM, SIMULATED, leftover
from containers import IMAGE, INSTALLER, mounted
from roots import INSTALLED


def manifest(example):
    """The pod and what it refers to, out of the rendered job."""
    rendered = subprocess.run(["kubectl", "kustomize", str(example)], check=True, capture_output=True, text=True).stdout
    documents = list(yaml.safe_load_all(rendered))
    job = next(one for one in documents if one["kind"] == "Job")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "training", "labels": job["metadata"]["labels"]}, "spec": job["spec"]["template"]["spec"]}
    for container in pod["spec"]["initContainers"]:
        container["image"] = f"localhost/{INSTALLER}:latest"
    [train] = pod["spec"]["containers"]
    train.update(image=f"localhost/{IMAGE}:latest", command=["/bin/sh", "-c", f"{PROGRAM}; {PROGRAM} kill; exit 0"])
    train["resources"].pop("limits")
    train["env"].append({"name": "LD_LIBRARY_PATH", "value": SIMULATED})
    told = {"POOL_NODE_NAME": "node", "POOL_POD_NAME": "training"}  # by the kubelet, which also fills them in; podman does neither
    for variable in train["env"]:
        if variable["name"] in told:
            variable.pop("valueFrom")
            variable["value"] = told[variable["name"]]
        for name, value in told.items():
            variable["value"] = variable["value"].replace(f"$({name})", value)
    for container in (*pod["spec"]["initContainers"], train):
        container["imagePullPolicy"] = "Never"
    kept = [one for one in documents if one["kind"] in ("ConfigMap", "PersistentVolumeClaim")]
    return yaml.safe_dump_all([*kept, pod])


def check_kube(world):
    """The init container brings the libraries, the ConfigMap the configuration, and the report lands on the claim; that of a killed
    process too, once it is taken out of its page."""
    file = world.folder / "pod.yaml"
    file.write_text(manifest(world.example))
    world.podman.must("play", "kube", "--network", "none", file)
    world.podman.command("wait", "training-train")
    _, output, errors = world.podman.command("logs", "training-train")
    if "program: right" not in output or "gpupool: device 0" not in errors:
        yield f"the container said {output!r} and {errors!r}"
    claim = ("-v", "gpupool-reports:/claim", "--user", "1000")
    listing = world.podman.run(IMAGE, ["/bin/ls", "/claim"], *claim)[1].split()
    if len(listing) != 2 or not listing[0].startswith("gpupool-1000-") or not listing[1].startswith("node-training-0-"):
        yield f"on the claim: {listing}"
    report = [f"{INSTALLED}/bin/gpupool", "report", "--leftover", "--json"]
    yield from leftover(world.podman.run(IMAGE, report, *claim, *mounted(world), GPUPOOL_STATS_PAGES="/claim"))
    world.podman.command("play", "kube", "--down", file)
