"""podman as it works for root on a machine without much else: storage of our own, no network, and a runtime that is handed no limits it
cannot set. An image is made of a root (roots.py) and has whatever that was furnished with.
"""
import os
import pathlib
import subprocess

WRAPPER = """#!/usr/bin/env python3
# runc, without the resource limits that podman writes for pods and that this machine may not allow.
import json, os, sys
words = sys.argv[1:]
if "create" in words and "--bundle" in words:
    file = words[words.index("--bundle") + 1] + "/config.json"
    with open(file) as stream:
        config = json.load(stream)
    config["process"].pop("rlimits", None)
    with open(file, "w") as stream:
        json.dump(config, stream)
os.execvp("runc", ["runc", *words])
"""


class Podman:
    def __init__(self, folder):
        folder = pathlib.Path(folder)
        runtime = folder / "runc-without-limits"
        runtime.write_text(WRAPPER)
        runtime.chmod(0o755)
        self.options = ["--root", folder / "storage", "--runroot", folder / "run", "--storage-driver", "overlay", "--cgroup-manager", "cgroupfs",
                        "--events-backend", "file", "--runtime", runtime]

    def command(self, *words):
        """(exit status, output, error output)"""
        done = subprocess.run(["podman", *map(str, [*self.options, *words])], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", check=False)
        return done.returncode, done.stdout, done.stderr

    def must(self, *words):
        status, output, errors = self.command(*words)
        if status != 0:
            raise SystemExit(f"podman {words[0]}: {errors}")
        return output

    def run(self, image, words, *options, **variables):
        environment = [word for name, value in variables.items() for word in ("-e", f"{name}={value}")]
        return self.command("run", "--rm", "--network", "none", *options, *environment, image, *words)

    def image_of(self, root, name, *changes):
        """The root's files as an image, without what is mounted there."""
        tar = subprocess.Popen(["tar", "-C", str(root.folder), "--exclude=./proc/*", "--exclude=./sys/*", "-c", "."], stdout=subprocess.PIPE)
        done = subprocess.run(["podman", *map(str, self.options), "import", *[word for change in changes for word in ("--change", change)], "-", name],
                              stdin=tar.stdout, capture_output=True, text=True, check=False)
        if tar.wait() or done.returncode:
            raise SystemExit(f"podman import: {done.stderr}")

    def remove(self):
        """Everything of ours, the storage's mounts included."""
        self.command("pod", "rm", "--all", "--force")
        self.command("rm", "--all", "--force")
        self.command("rmi", "--all", "--force")
        self.command("volume", "prune", "--force")
        os.sync()
