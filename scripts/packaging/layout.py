"""What an artefact holds: files in memory with the path that they get, and the archives made of them, byte for byte the same
whenever and wherever they are made.

An Entry's path is relative to the place that the artefact is unpacked in. Archives are sorted, owned by root, and bear one time.
"""
import collections
import gzip
import io
import tarfile
import time
import zipfile

Entry = collections.namedtuple("Entry", "path content mode")

PROGRAM, FILE = 0o755, 0o644


def under(prefix, entries):
    return [entry._replace(path=f"{prefix}/{entry.path}") for entry in entries]


def tar_gz(target, entries, epoch):
    """Folders are written out too: an unpacker must not guess their modes."""
    folders = sorted({entry.path[:end] for entry in entries for end in range(len(entry.path)) if entry.path[end] == "/"})
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path, content, mode in sorted([(folder, None, PROGRAM) for folder in folders] + [tuple(entry) for entry in entries]):
            info = tarfile.TarInfo(path)
            info.mtime, info.mode, info.uname, info.gname = epoch, mode, "root", "root"
            if content is None:
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    target.write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0))


def zip_file(target, entries, epoch):
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry in entries:
            info = zipfile.ZipInfo(entry.path, time.gmtime(epoch)[:6])
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = (0o100000 | entry.mode) << 16
            archive.writestr(info, entry.content, compresslevel=9)


def write_tree(folder, entries):
    for entry in entries:
        file = folder / entry.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(entry.content)
        file.chmod(entry.mode)
