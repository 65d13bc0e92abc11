"""Pods under `podman play kube`: that of the Kubernetes example, rendered by kubectl, and one as the policy makes it. With the images of this
machine, the card left out (the driver is simulated), and the claim as a volume of podman's.
"""
import subprocess
import time

import yaml

from checks import PROGRAM, SIMULATED, leftover
from containers import IMAGE, INSTALLER, both_loaded, mounted, pooled
from roots import INSTALLED

CLAIM = ("-v", "gpupool-reports:/claim", "--user", "1000")
SWITCHES = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "switches"}, "data": {"torch": "backend:cudaMallocAsync"}}


def adapted(name, spec, commands):
    """The pod with images of this machine and these commands."""
    told = {"POOL_NODE_NAME": "node", "POOL_POD_NAME": name}  # by the kubelet, which also fills them in; podman does neither
    for container in (*spec["initContainers"], *spec["containers"]):
        container.update(image=f"localhost/{INSTALLER if container['name'] == 'gpupool-install' else IMAGE}:latest", imagePullPolicy="Never")
        container.pop("resources", None)
        if container["name"] in commands:
            container["command"] = commands[container["name"]]
    for container in spec["containers"]:
        for variable in container["env"]:
            if variable["name"] in told:
                variable.pop("valueFrom")
                variable["value"] = told[variable["name"]]
            for key, value in told.items():
                if "value" in variable:
                    variable["value"] = variable["value"].replace(f"$({key})", value)
        container["env"].append({"name": "LD_LIBRARY_PATH", "value": SIMULATED})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def play(world, documents):
    file = world.folder / "pod.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    world.podman.must("play", "kube", "--network", "none", file)
    return file


def on_the_claim(world):
    return world.podman.run(IMAGE, ["/bin/ls", "/claim"], *CLAIM)[1].split()


def reported_leftover(world):
    report = [f"{INSTALLED}/bin/gpupool", "report", "--leftover", "--json"]
    yield from leftover(world.podman.run(IMAGE, report, *CLAIM, *mounted(world), GPUPOOL_STATS_PAGES="/claim"))


def check_kube(world):
    """The init container brings the libraries, the ConfigMap the configuration, and the report lands on the claim; that of a killed
    process too, once it is taken out of its page."""
    rendered = subprocess.run(["kubectl", "kustomize", str(world.example)], check=True, capture_output=True, text=True).stdout
    documents = list(yaml.safe_load_all(rendered))
    job = next(one for one in documents if one["kind"] == "Job")
    pod = adapted("training", job["spec"]["template"]["spec"], {"train": ["/bin/sh", "-c", f"{PROGRAM}; {PROGRAM} kill; exit 0"]})
    file = play(world, [*(one for one in documents if one["kind"] in ("ConfigMap", "PersistentVolumeClaim")), pod])
    world.podman.command("wait", "training-train")
    yield from pooled(world.podman.command("logs", "training-train"))
    listing = on_the_claim(world)
    if len(listing) != 2 or not listing[0].startswith("gpupool-1000-") or not listing[1].startswith("node-training-0-"):
        yield f"on the claim: {listing}"
    yield from reported_leftover(world)
    world.podman.command("play", "kube", "--down", file)
    world.podman.command("volume", "rm", "--all")


def check_admitted(world):
    """A pod as the policy leaves it, evicted while one container works: SIGTERM, and SIGKILL after the time of grace. What that one has
    counted is on the claim; the other has ended before, and written its report; the image's preload is still there."""
    admitted = yaml.safe_load((world.golden / "admitted-full.yaml").read_text())
    commands = {"fetch": ["/bin/true"], "train": ["/bin/sh", "-c", f"cat /proc/self/maps; exec {PROGRAM} wait"], "tensorboard": [PROGRAM]}
    policy = list(yaml.safe_load_all(world.policy.read_text()))
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "gpupool-reports"}}
    kept = [one for one in policy if one and one["kind"] == "ConfigMap"]
    file = play(world, [*kept, SWITCHES, claim, adapted("full", admitted["spec"], commands)])
    world.podman.command("wait", "full-tensorboard")
    yield from pooled(world.podman.command("logs", "full-tensorboard"))
    for _ in range(600):
        working = world.podman.command("logs", "full-train")
        if "program: waiting" in working[1] or world.podman.command("inspect", "--format", "{{.State.Running}}", "full-train")[1] != "true\n":
            break
        time.sleep(0.1)
    yield from both_loaded(working)
    world.podman.command("pod", "stop", "--time", "1", "full")
    listing = on_the_claim(world)
    if len(listing) != 2 or not listing[0].startswith("gpupool-1000-") or not listing[1].startswith("node-full-0-"):
        yield f"on the claim: {listing}"
    yield from reported_leftover(world)
    world.podman.command("play", "kube", "--down", file)
    world.podman.command("volume", "rm", "--all")
