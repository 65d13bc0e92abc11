"""What scripts/test-images and scripts/test-containers share: the tree of the tarball, the programs, and how findings are told."""
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import checks
import roots

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGES = ROOT / "tests" / "images"
ZIG = ROOT / ".deps" / "zig" / "ziglang" / "zig"
COMPILERS = {"glibc": [ZIG, "cc", "-target", "x86_64-linux-gnu.2.17", "-ldl"], "musl": [ZIG, "cc", "-target", "x86_64-linux-musl", "-dynamic"],
             "aarch64": [ZIG, "cc", "-target", "aarch64-linux-gnu.2.17", "-ldl"],
             "the current": ["cc", "-Wl,--no-as-needed", "-ldl"]}
PROGRAMS = ("program", "shell", "id")


def add_options(parser):
    parser.add_argument("--dist", type=pathlib.Path, default=ROOT / "dist", help="what scripts/package made")
    parser.add_argument("--driver", type=pathlib.Path, default=ROOT / "build-portable" / "x86_64" / "lib" / "simcuda" / "libcuda.so.1")
    parser.add_argument("--roots", type=pathlib.Path, default=ROOT / ".deps" / "roots", help="where the roots are, or will be made")


def compile_programs(folder, library):
    folder.mkdir(parents=True)
    for words in (*([f"{name}.c", "-o", folder / name] for name in PROGRAMS),
                  ["driver.c", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", folder / "libcuda.so.1"]):
        command = [*COMPILERS[library], "-O1", IMAGES / words[0], *words[1:]]
        subprocess.run([str(word) for word in command], check=True, stdin=subprocess.DEVNULL)
    return folder


def furnish(root, tree, programs, driver):
    """Puts everything where the checks look for it."""
    shutil.rmtree(root.path(roots.PLACE), ignore_errors=True)
    root.install(tree)
    for name in PROGRAMS:
        root.put(programs / name, f"{roots.PLACE}/{name}", 0o4755 if name == "id" else 0o755)
    root.put(programs / "libcuda.so.1", f"{checks.SMALL}/libcuda.so.1")
    root.put(driver, f"{checks.SIMULATED}/libcuda.so.1")
    for front in (checks.ALONE, checks.BROKEN):
        root.put(tree / "lib" / "libgpupool.so", front)
    root.path(checks.BROKEN).with_name("libgpupool_core.so").write_text("no library\n")
    for front, changes in zip(checks.STALE, stale(tree)):
        for name in ("libgpupool.so", "libgpupool_core.so"):
            library = root.path(front).with_name(name)
            library.parent.mkdir(parents=True, exist_ok=True)
            library.write_bytes(changes.get(name, (tree / "lib" / name).read_bytes()))


def stale(tree):
    """For each of checks.STALE the library that is not of the tree's build: the tree's own, with another string in the place of one."""
    front, core = ((tree / "lib" / name).read_bytes() for name in ("libgpupool.so", "libgpupool_core.so"))
    yield {"libgpupool_core.so": core.replace(b"\0cuMemFreeAsync\0", b"\0cuMemFreeLater\0")}
    yield {"libgpupool.so": re.sub(rb"\0\d+\.\d+\.\d+\0", lambda version: re.sub(rb"\d", b"9", version[0]), front)}


def built(build, work):
    """The same tree, of a build folder."""
    for name in ("bin/gpupool", "lib/libgpupool.so", "lib/libgpupool_core.so"):
        (work / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(build / name, work / "tree" / name)
    return work / "tree"


def unpacked(dist, work, arch="x86_64"):
    """The tree of the tarball for this processor, in a new folder."""
    work.mkdir(exist_ok=True)
    archives = sorted(dist.glob(f"gpupool-*-linux-{arch}.tar.gz"))
    if len(archives) != 1:
        sys.exit(f"{len(archives)} tarballs in {dist}; run scripts/package")
    with tarfile.open(archives[0]) as tar:
        tar.extractall(work)
    [tree] = (path for path in work.iterdir() if path.name.startswith("gpupool-"))
    return tree


def told(where, check, subject):
    """Runs one check and says how it went; the findings."""
    found = list(check(subject))
    name = check.__name__.removeprefix("check_")
    print(f"{where:>10}  {'FAILED' if found else 'ok':<6}  {name}", flush=True)
    return [f"{where}: {name}: {one}" for one in found]


def finish(script, wrong):
    for one in wrong:
        print(one)
    print(f"{script}: {len(wrong)} findings" if wrong else f"{script}: all is right")
    sys.exit(1 if wrong else 0)
