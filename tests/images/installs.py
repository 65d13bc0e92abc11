"""The Debian package and the wheel, as somebody installs, uses and removes them: each yields one sentence for each thing that is wrong.

The package is installed by dpkg in a root of another distribution, the wheel by pip in a fresh venv. All artefacts of one processor hold
the same libraries and command as the tarball, so that what is shown of that one holds for them.
"""
import io
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile

from checks import PROGRAM, RIGHT, SIMULATED

BINARIES = ("bin/gpupool", "lib/libgpupool.so", "lib/libgpupool_core.so")
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
IN_PACKAGE = {"lib/": "lib/gpupool/"}
DPKG = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}
IDENTIFIED = re.compile(r"^gpupool: version (\S+), process \d+: .*device 0", re.MULTILINE)


def artefact(dist, pattern):
    found = sorted(dist.glob(pattern))
    if len(found) != 1:
        sys.exit(f"{len(found)} of {pattern} in {dist}; run scripts/package")
    return found[0]


def package_of(dist, arch):
    return artefact(dist, f"gpupool_*_{DEBIAN[arch]}.deb")


def wheel_of(dist, arch):
    return artefact(dist, f"gpupool-*_{arch}.whl")


def of_the_tarball(dist, arch):
    with tarfile.open(artefact(dist, f"gpupool-*-linux-{arch}.tar.gz")) as tar:
        members = {member.name.partition("/")[2]: member for member in tar if member.isfile()}
        return {name: tar.extractfile(members[name]).read() for name in BINARIES}


def of_the_package(dist, arch):
    done = subprocess.run(["dpkg-deb", "--fsys-tarfile", package_of(dist, arch)], check=True, stdout=subprocess.PIPE)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        return {name: tar.extractfile("./usr/" + name.replace("lib/", IN_PACKAGE["lib/"])).read() for name in BINARIES}


def of_the_wheel(dist, arch):
    with zipfile.ZipFile(wheel_of(dist, arch)) as archive:
        return {name: archive.read(f"gpupool/{name}") for name in BINARIES}


def same_binaries(dist, arch):
    def check_same(_):
        """The package and the wheel hold the tarball's binaries."""
        for kind, binaries in (("package", of_the_package(dist, arch)), ("wheel", of_the_wheel(dist, arch))):
            for name, content in of_the_tarball(dist, arch).items():
                if binaries[name] != content:
                    yield f"{name} of the {kind} is not that of the tarball"
    return check_same


def used(run, version, *command):
    """What is wrong with the command as it was installed, and with a program that it runs."""
    if (said := run(*command, "--version"))[:2] != (0, f"gpupool {version}\n"):
        yield f"{command} --version: {said}"
    outcome = run(*command, "run", "--strategy", "auto_growth", "--", PROGRAM, LD_LIBRARY_PATH=SIMULATED, GPUPOOL_VERBOSE="1")
    if outcome[:2] != RIGHT or "gpupool: device 0" not in outcome[2]:
        yield f"{command} run: {outcome}"
    if IDENTIFIED.findall(outcome[2]) != [version]:
        yield f"GPUPOOL_VERBOSE: {outcome[2]}"


def deb(dist):
    package = package_of(dist, "x86_64")
    version = package.name.split("_")[1]

    def check_deb(root):
        """dpkg installs it, other users use it, and nothing stays behind."""
        root.put(package, "/opt/gpupool.deb")
        root.run("/usr/bin/dpkg", "--purge", "gpupool", **DPKG)
        before = listing(root.folder)
        if (said := root.run("/usr/bin/dpkg", "--install", "/opt/gpupool.deb", **DPKG))[0] != 0:
            yield f"dpkg --install: {said}"
        if (said := root.run("/usr/bin/dpkg", "--verify", "gpupool", **DPKG)) != (0, "", ""):
            yield f"dpkg --verify: {said}"
        yield from used(lambda *words, **variables: root.run(*words, user=1000, **variables), version, "/usr/bin/gpupool")
        loaded = root.run(PROGRAM, user=1000, LD_PRELOAD="/usr/lib/gpupool/libgpupool.so", LD_LIBRARY_PATH=SIMULATED)
        if loaded[:2] != RIGHT or "gpupool: device 0" not in loaded[2]:
            yield f"LD_PRELOAD: {loaded}"
        if (said := root.run("/usr/bin/dpkg", "--purge", "gpupool", **DPKG))[0] != 0:
            yield f"dpkg --purge: {said}"
        if left := listing(root.folder) ^ before:
            yield f"left behind, or taken away: {sorted(left)}"
    return check_deb


def listing(folder):
    """Every path below, but what dpkg writes down for itself."""
    own = ("var/lib/dpkg/", "var/log/", "proc/")
    return {path for path in (str(one.relative_to(folder)) for one in pathlib.Path(folder).rglob("*")) if not path.startswith(own)}


def wheel(dist, work):
    file = wheel_of(dist, "x86_64")
    version = file.name.split("-")[1]

    def check_wheel(root):
        """pip installs it into a fresh venv, the command and the module work there, and nothing stays behind."""
        venv = work / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        python = venv / "bin" / "python"

        def pip(*words):
            return subprocess.run([sys.executable, "-m", "pip", "--python", python, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  check=False)
        before = listing(venv)
        if (done := pip("install", "--quiet", "--no-index", "--no-deps", file)).returncode != 0:
            yield f"pip install: {done.stderr}"
        yield from used(root.run, version, str(venv / "bin" / "gpupool"))
        yield from used(root.run, version, str(python), "-m", "gpupool")
        library = root.run(str(python), "-c", "import gpupool; print(gpupool.library)")[1].strip()
        loaded = root.run(PROGRAM, LD_PRELOAD=library, LD_LIBRARY_PATH=SIMULATED)
        if loaded[:2] != RIGHT or "gpupool: device 0" not in loaded[2]:
            yield f"gpupool.library: {loaded}"
        if (done := pip("uninstall", "--yes", "gpupool")).returncode != 0:
            yield f"pip uninstall: {done.stderr}"
        if left := listing(venv) ^ before:
            yield f"left behind, or taken away: {sorted(left)}"
    return check_wheel


def elsewhere(dist, work):
    def check_layouts(root):
        """The command of another processor finds its libraries in the package's layout and in the wheel's."""
        subprocess.run(["dpkg-deb", "--extract", package_of(dist, "aarch64"), work / "package"], check=True)
        with zipfile.ZipFile(wheel_of(dist, "aarch64")) as archive:
            archive.extractall(work / "wheel")
        for command in (work / "package" / "usr" / "bin" / "gpupool", work / "wheel" / "gpupool" / "bin" / "gpupool"):
            command.chmod(0o755)
            said = root.run(str(command), "cdi")
            if said[0] != 0 or "libgpupool.so" not in said[1]:
                yield f"{command} cdi: {said}"
    return check_layouts
