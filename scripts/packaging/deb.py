"""The Debian package: the tree of the tarball under /usr, with the two libraries in a folder of their own, where the loader does not look."""
import hashlib
import os
import pathlib
import subprocess
import tempfile

from layout import FILE, Entry, under, write_tree

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

CONTROL = """Package: gpupool
Version: {version}
Architecture: {arch}
Maintainer: gpupool developers <gpupool@localhost>
Section: utils
Priority: optional
Depends: libc6 (>= {glibc})
Installed-Size: {size}
Description: one best-fit pool of device memory for any CUDA program
 Preloaded into a CUDA program, gpupool serves all of its requests for device
 memory from one pool that does not stay fragmented, and says at exit how well
 the memory was used. Programs that do not use CUDA are left alone.
"""


def moved(entry):
    path = entry.path
    if path.startswith("lib/"):
        path = "lib/gpupool/" + path.removeprefix("lib/")
    if path.endswith("/NOTICES"):
        return entry._replace(path=path.replace("/NOTICES", "/copyright"))
    return entry._replace(path=path)


def write(folder, version, arch, glibc, tree, epoch):
    entries = under("usr", [moved(entry) for entry in tree])
    control = CONTROL.format(version=version, arch=ARCHITECTURES[arch], glibc=glibc,
                             size=sum(len(entry.content) + 1023 for entry in entries) // 1024)
    sums = "".join(f"{hashlib.md5(entry.content).hexdigest()}  {entry.path}\n" for entry in sorted(entries))
    entries += [Entry("DEBIAN/control", control.encode(), FILE), Entry("DEBIAN/md5sums", sums.encode(), FILE)]
    target = folder / f"gpupool_{version}_{ARCHITECTURES[arch]}.deb"
    with tempfile.TemporaryDirectory() as work:
        root = pathlib.Path(work) / "root"
        root.mkdir()
        write_tree(root, entries)
        for path in sorted([root, *root.rglob("*")], reverse=True):
            if path.is_dir():
                path.chmod(0o755)
            os.utime(path, (epoch, epoch))
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", "-Zxz", root, target], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)})
    return target
