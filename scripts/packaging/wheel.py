"""The Python wheel: one package `gpupool` that holds the tree of the tarball and a main() that becomes the command.

It needs no Python of any version or kind beyond a 3: nothing in it is an extension module. The command finds its libraries beside
itself, wherever pip puts the package.
"""
import base64
import hashlib

from layout import FILE, Entry, under, zip_file

INIT = '''"""gpupool as a Python package: `python -m gpupool run -- python train.py`. The command and its libraries lie in this folder."""
import os

folder = os.path.dirname(os.path.abspath(__file__))
library = os.path.join(folder, "lib", "libgpupool.so")
'''

MAIN = '''"""Becomes the command, with the same arguments."""
import os
import sys

from gpupool import folder


def main():
    command = os.path.join(folder, "bin", "gpupool")
    if not os.access(command, os.X_OK):  # some unpackers drop the mode
        os.chmod(command, 0o755)
    os.execv(command, ["gpupool", *sys.argv[1:]])


if __name__ == "__main__":
    main()
'''

METADATA = """Metadata-Version: 2.1
Name: gpupool
Version: {version}
Summary: One best-fit pool of device memory for any CUDA program, without changing it
License: Apache-2.0
Requires-Python: >=3.7
Classifier: Operating System :: POSIX :: Linux
Classifier: License :: OSI Approved :: Apache Software License
Description-Content-Type: text/markdown

{readme}"""


def tags(arch, glibc):
    return ".".join([f"manylinux_{glibc.replace('.', '_')}_{arch}", *([f"manylinux2014_{arch}"] if glibc == "2.17" else [])])


def write(folder, version, arch, glibc, tree, readme, epoch):
    platforms = tags(arch, glibc)
    info = f"gpupool-{version}.dist-info"
    wheel = "Wheel-Version: 1.0\nGenerator: gpupool\nRoot-Is-Purelib: false\n"
    wheel += "".join(f"Tag: py3-none-{platform}\n" for platform in platforms.split("."))
    entries = under("gpupool", [entry for entry in tree if entry.path.startswith(("bin/", "lib/", "share/gpupool/"))])
    entries += [Entry("gpupool/__init__.py", INIT.encode(), FILE), Entry("gpupool/__main__.py", MAIN.encode(), FILE),
                Entry(f"{info}/METADATA", METADATA.format(version=version, readme=readme).encode(), FILE),
                Entry(f"{info}/WHEEL", wheel.encode(), FILE),
                Entry(f"{info}/entry_points.txt", b"[console_scripts]\ngpupool = gpupool.__main__:main\n", FILE)]
    entries += [entry._replace(path=f"{info}/licenses/{entry.path.rpartition('/')[2]}")
                for entry in tree if entry.path.endswith(("/LICENSE", "/NOTICES"))]
    entries.sort()
    record = f"{info}/RECORD"
    rows = [f"{entry.path},sha256={base64.urlsafe_b64encode(hashlib.sha256(entry.content).digest()).rstrip(b'=').decode()},"
            f"{len(entry.content)}" for entry in entries]
    entries.append(Entry(record, "".join(row + "\n" for row in [*rows, f"{record},,"]).encode(), FILE))
    target = folder / f"gpupool-{version}-py3-none-{platforms}.whl"
    zip_file(target, entries, epoch)
    return target
