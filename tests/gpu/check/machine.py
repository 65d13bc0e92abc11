"""What a result has to say about the machine it comes from."""
import importlib.metadata
import os
import platform
import subprocess

from . import bench as b

MODULES = ("torch", "torchvision", "transformers", "triton", "jax", "cupy-cuda13x", "cupy-cuda12x", "cupy", "numba", "numba-cuda")


def said(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, cwd=b.ROOT).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def processor():
    try:
        with open("/proc/cpuinfo") as lines:
            return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
    except OSError:
        return "unknown"


def versions():
    for module in MODULES:
        try:
            yield f"{module} {importlib.metadata.version(module)}"
        except importlib.metadata.PackageNotFoundError:
            pass


def machine(bench):
    if bench.sim:
        card, driver = "simulated", "simulated"
    else:
        card = said("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader").replace("\n", "; ")
        driver = said("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").split("\n")[0]
    compiler = said(str(bench.cuda / "bin" / "nvcc"), "--version")
    return {
        "card": card or "unknown",
        "driver": driver or "unknown",
        "toolkit": compiler.splitlines()[-1] if compiler else "none",
        "processor": f"{processor()}, {os.cpu_count()} cores seen",
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", platform.system()),
        "python": f"{platform.python_version()}; " + ", ".join(versions()),
    }
