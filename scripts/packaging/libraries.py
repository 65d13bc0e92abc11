"""The libraries that go into the portable artefacts, made for one processor: .deps/portable/<arch> is the prefix in which
cmake/portable/toolchain.cmake looks.

Headers and scripts are those of the installed packages. zlib and zstd are compiled from the distribution's own source
packages, which apt-get fetches and checks with the keys that the machine has for its archive; its list of sources is derived from
the machine's own, in a folder of ours, so that nothing about the machine changes.
"""
import pathlib
import re
import shutil
import subprocess
import tarfile

from components import COMPONENTS

HEADERS = ("spdlog", "fmt", "nlohmann", "CLI")
FOLDERS = {"/usr/share/cmake/nlohmann_json": "share/cmake/nlohmann_json", "/usr/share/javascript/dygraphs": "usr/share/javascript/dygraphs"}
VERSION = "version-of-the-source-package"


def run(*command, **options):
    subprocess.run([str(word) for word in command], check=True, stdin=subprocess.DEVNULL, **options)


def source_list(line):
    """A line of a list of package archives, as one of source archives."""
    line = re.sub(r"^deb ", "deb-src ", line)
    return re.sub(r"^Types:[^\n]*", "Types: deb-src", line)


def fetch_sources(folder):
    """Unpacks the upstream part of each source package into <folder>/<name>."""
    wanted = sorted({component.source for component in COMPONENTS if component.source})
    if all((folder / name).is_dir() for name in wanted):
        return
    work = folder / "fetch"
    shutil.rmtree(work, ignore_errors=True)
    (work / "parts").mkdir(parents=True)
    (work / "lists" / "partial").mkdir(parents=True)
    etc = pathlib.Path("/etc/apt")
    for place in (etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))):
        if place.is_file() and place.suffix in (".list", ".sources"):
            text = "".join(source_list(line) for line in place.read_text().splitlines(keepends=True))
            (work / "parts" / place.name).write_text(text)
    options = ("-q", "-o", "Dir::Etc::sourcelist=/dev/null", "-o", f"Dir::Etc::sourceparts={work / 'parts'}",
               "-o", f"Dir::State::lists={work / 'lists'}", "-o", "APT::Sandbox::User=root")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(["apt-get", *options, "update"], stdin=subprocess.DEVNULL, check=False, **quiet)  # some archives have no sources
    for name in wanted:
        (work / name).mkdir()
        versions = subprocess.run(["apt-cache", *options, "madison", name], check=True, capture_output=True, text=True).stdout
        candidates = [row.split("|")[1].strip() for row in versions.splitlines() if row.endswith("Sources")]
        for version in dict.fromkeys(candidates):  # the newest first; an archive may list one that it no longer holds
            fetched = subprocess.run(["apt-get", *options, "source", "--download-only", f"{name}={version}"], cwd=work / name,
                                     stdin=subprocess.DEVNULL, check=False, **quiet)
            if fetched.returncode == 0:
                break
        else:
            raise SystemExit(f"package: apt-get has no source package {name}")
        [archive] = (file for file in (work / name).iterdir() if re.search(r"\.orig\.tar\.(xz|gz|bz2)$", file.name))
        with tarfile.open(archive) as tar:
            tar.extractall(work / name / "tree")
        [tree] = (work / name / "tree").iterdir()
        shutil.rmtree(folder / name, ignore_errors=True)
        (tree / VERSION).write_text(version)
        tree.rename(folder / name)
    shutil.rmtree(work)


def version_of(root, component):
    """What NOTICES and the SBOM say."""
    if component.source:
        return (root / ".deps" / "portable" / "sources" / component.source / VERSION).read_text()
    if component.package:
        return subprocess.run(["dpkg-query", "-W", "-f", "${Version}", component.package], check=True, capture_output=True, text=True).stdout
    return "zig " + subprocess.run([root / ".deps" / "zig" / "ziglang" / "zig", "version"], check=True, capture_output=True, text=True).stdout.strip()


def licence_of(root, component):
    """The text that has to travel with the binary."""
    if component.package:
        return pathlib.Path(f"/usr/share/doc/{component.package}/copyright").read_text(errors="replace")
    return (root / ".deps" / "zig" / "ziglang" / "lib" / "libcxx" / "LICENSE.TXT").read_text()


def linked_folders(folder, names):
    """For copytree, which would follow them: one of them leads to itself."""
    return [name for name in names if (path := pathlib.Path(folder) / name).is_symlink() and path.is_dir()]


def provide(root, arch):
    """Makes the prefix unless it is there already."""
    prefix = root / ".deps" / "portable" / arch
    if (prefix / "complete").exists():
        return
    sources = root / ".deps" / "portable" / "sources"
    sources.mkdir(parents=True, exist_ok=True)
    fetch_sources(sources)
    shutil.rmtree(prefix, ignore_errors=True)
    for source, target in {**{f"/usr/include/{name}": f"include/{name}" for name in HEADERS}, **FOLDERS}.items():
        shutil.copytree(source, prefix / target, ignore=linked_folders)
    build = root / "build-portable" / f"libraries-{arch}"
    run("cmake", "-S", root / "cmake" / "portable", "-B", build, "-G", "Ninja", "--log-level=WARNING", "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_TOOLCHAIN_FILE={root / 'cmake' / 'portable' / 'toolchain.cmake'}", f"-DGPUPOOL_ARCH={arch}",
        f"-DSOURCES={sources}", f"-DCMAKE_INSTALL_PREFIX={prefix}")
    run("cmake", "--build", build, "--target", "install", stdout=subprocess.DEVNULL)
    (prefix / "complete").touch()
