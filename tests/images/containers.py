"""What has to hold in containers: check_NAME(world) yields one sentence for each thing that is wrong.

A World is podman, an image with the programs of this folder and a simulated driver in it, the tree of the tarball, and a folder to
write to. The image's own LD_PRELOAD, where one is needed, is its libm.
"""
import json
import os
import pathlib
import time

from checks import FRONT, PROGRAM, RIGHT, SIMULATED
from roots import INSTALLED

IMAGE, PRELOADING, INSTALLER, SCRATCH = "checks", "checks-preloading", "gpupool-installer", "gpupool"
DRIVER = {"LD_LIBRARY_PATH": SIMULATED}
GROWTH = {"GPUPOOL_POOL_STRATEGY": "auto_growth"}
HARDENED = ("--read-only", "--user", "1000:1000", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
SPECIFICATIONS = pathlib.Path("/etc/cdi")
THEIRS = "/usr/lib/x86_64-linux-gnu/libm.so.6"
MAPS = ("/bin/cat", "/proc/self/maps")


def pooled(outcome):
    """What is wrong with a run that should have had a pool."""
    if outcome[:2] != RIGHT or "gpupool: device 0" not in outcome[2]:
        yield str(outcome)


def mounted(world):
    return ("-v", f"{world.tree}:{INSTALLED}:ro")


def check_mount(world):
    """A read-only bind mount and the variable."""
    yield from pooled(world.podman.run(IMAGE, [PROGRAM], *mounted(world), LD_PRELOAD=FRONT, **DRIVER, **GROWTH))


def check_quiet(world):
    """A container without a driver, and programs without CUDA, say nothing more."""
    for words in ([PROGRAM], ["/bin/bash", "-c", "echo a; exit 3"]):
        plain = world.podman.run(IMAGE, words, *mounted(world))
        preloaded = world.podman.run(IMAGE, words, *mounted(world), LD_PRELOAD=FRONT)
        if plain != preloaded:
            yield f"{words}: {plain} became {preloaded}"


def check_hardened(world):
    """Read-only root, a user that is not root, no capabilities, no new privileges, the default seccomp profile."""
    status = dict(line.split(":\t", 1) for line in world.podman.run(IMAGE, ["/bin/cat", "/proc/self/status"], *HARDENED)[1].splitlines())
    hardened = {"Seccomp": "2", "NoNewPrivs": "1", "CapEff": "0" * 16, "Uid": "1000\t1000\t1000\t1000"}
    if wrong := {name: status.get(name) for name, value in hardened.items() if status.get(name) != value}:
        yield f"the container is not hardened: {wrong}"
    yield from pooled(world.podman.run(IMAGE, [PROGRAM], *mounted(world), *HARDENED, LD_PRELOAD=FRONT, **DRIVER, **GROWTH))


def check_report(world):
    """The same user writes its report to a volume, named by host and rank."""
    reports = world.folder / "reports"
    reports.mkdir()
    os.chown(reports, 1000, 1000)
    yield from pooled(world.podman.run(IMAGE, [PROGRAM], *mounted(world), *HARDENED, "-v", f"{reports}:/reports", "--hostname", "pod", RANK="7",
                                       LD_PRELOAD=FRONT, GPUPOOL_STATS_PATH="/reports/%h-%r.json", **DRIVER, **GROWTH))
    if [file.name for file in reports.iterdir()] != ["pod-7.json"]:
        yield f"reports: {[file.name for file in reports.iterdir()]}"


def check_command(world):
    """`gpupool run` inside, in an image that preloads something: both are loaded."""
    words = [f"{INSTALLED}/bin/gpupool", "run", "--", *MAPS]
    yield from both_loaded(world.podman.run(PRELOADING, words, *mounted(world)))


def both_loaded(outcome):
    if outcome[0] != 0 or "libgpupool.so" not in outcome[1] or "libm.so.6" not in outcome[1]:
        yield f"not both are loaded: {outcome}"


def check_neighbours(world):
    """Containers with one folder of pages see each other's pools, and one gives back what it has free when another asks; without, they do not."""
    pages = world.folder / "pages"
    pages.mkdir(mode=0o777)
    pages.chmod(0o777)
    shared = ("--user", "1000", "-v", f"{pages}:/pages")
    world.podman.must("run", "--detach", "--name", "holder", "--network", "none", *mounted(world), *shared, "-e", "GPUPOOL_STATS_PAGES=/pages",
                      *(word for name, value in {**DRIVER, "LD_PRELOAD": FRONT}.items() for word in ("-e", f"{name}={value}")), IMAGE, PROGRAM, "wait")
    for _ in range(300):
        if "program: waiting" in world.podman.command("logs", "holder")[1]:
            break
        time.sleep(0.1)
    trim = [f"{INSTALLED}/bin/gpupool", "trim", "--json", "1"]
    asked = world.podman.run(IMAGE, trim, *mounted(world), *shared, GPUPOOL_STATS_PAGES="/pages")
    if asked[0] != 0 or json.loads(asked[1])["given"] < 64 << 20:
        yield f"trim from another container: {asked}"
    alone = world.podman.run(IMAGE, trim, *mounted(world), "--user", "1000")
    if alone[0] == 0:
        yield f"trim without the pages: {alone}"
    world.podman.command("rm", "--force", "--time", "0", "holder")


def check_image(world):
    """The image FROM scratch, mounted."""
    yield from pooled(world.podman.run(IMAGE, [PROGRAM], "--mount", f"type=image,source={SCRATCH},destination={INSTALLED}", LD_PRELOAD=FRONT, **DRIVER, **GROWTH))


def specification(world, *options):
    """Writes what the command says to where runtimes look; the one that was made for this check is removed again."""
    import subprocess
    text = subprocess.run([str(world.tree / "bin" / "gpupool"), "cdi", "--set", "pool.strategy=auto_growth", *options], check=True,
                          capture_output=True, text=True).stdout
    json.loads(text)
    world.specification.write_text(text)


def check_cdi(world):
    """Device all: as hardened as above, and as the program of another user."""
    specification(world)
    for hardened in ((), HARDENED):
        yield from pooled(world.podman.run(IMAGE, [PROGRAM], "--device", "gpupool.dev/pool=all", *hardened, **DRIVER))


def check_cdi_beside_a_preload(world):
    """Device all replaces the image's LD_PRELOAD, as the documents say; --preload keeps it, and so does device file."""
    specification(world)
    outcome = world.podman.run(PRELOADING, MAPS, "--device", "gpupool.dev/pool=all")
    if "libgpupool.so" not in outcome[1] or "libm.so.6" in outcome[1]:
        yield f"device all: {outcome}"
    yield from both_loaded(world.podman.run(PRELOADING, MAPS, "--device", "gpupool.dev/pool=file"))
    yield from pooled(world.podman.run(PRELOADING, [PROGRAM], "--device", "gpupool.dev/pool=file", *HARDENED, **DRIVER))
    specification(world, "--preload", THEIRS)
    yield from both_loaded(world.podman.run(PRELOADING, MAPS, "--device", "gpupool.dev/pool=all"))


CHECKS = (check_mount, check_quiet, check_hardened, check_report, check_command, check_neighbours, check_image, check_cdi, check_cdi_beside_a_preload)
