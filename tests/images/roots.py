"""The roots that programs are run in: other distributions, made once by debootstrap, one of musl, and the one that is there.

A root is entered with chroot, and with mounts that end with the program, so nothing stays behind; that needs root. In the one
that is there, what the others have under /opt lies in a folder; it needs nothing.
"""
import ctypes
import os
import pathlib
import shutil
import subprocess
import tempfile

ARM = pathlib.Path("/usr/aarch64-linux-gnu")  # the C library of 64-bit ARM, as the cross compiler's package has it
RELEASES = {"bullseye": "2.31", "bookworm": "2.36", "trixie": "2.41"}
PLACE = "/opt/checks"  # where programs and drivers lie in a root
INSTALLED = "/opt/gpupool"

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000


class Root:
    def __init__(self, name, folder):
        self.name, self.folder = name, folder

    def path(self, inside):
        return pathlib.Path(f"{self.folder}{inside}")

    def run(self, *words, user=0, **variables):
        """(exit status, output, error output) of a program in the root, with an environment of these variables alone."""
        done = subprocess.run([str(word) for word in words], env={"PATH": "/usr/bin:/bin", "HOME": "/", **variables}, cwd="/",
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
                              preexec_fn=lambda: self.enter(user))
        return done.returncode, done.stdout, done.stderr

    def enter(self, user):
        """In the child: its own mounts, with a /proc; then the root, then the user."""
        folder = os.fsencode(self.folder)
        for failed in (LIBC.unshare(CLONE_NEWNS), LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None),
                       LIBC.mount(b"proc", folder + b"/proc", b"proc", 0, None)):
            if failed:
                raise OSError(ctypes.get_errno(), "cannot enter the root")
        os.chroot(folder)
        os.chdir("/")
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)

    def has(self, inside):
        return os.path.lexists(self.path(inside))

    def put(self, source, inside, mode=0o755):
        target = self.path(inside)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        target.chmod(mode)

    def install(self, tree):
        """The unpacked tarball, in the place of the one before."""
        shutil.rmtree(self.path(INSTALLED), ignore_errors=True)
        shutil.copytree(tree, self.path(INSTALLED), symlinks=True)


class Here(Root):
    """The current root, as whoever runs this."""

    def run(self, *words, user=None, **variables):
        return super().run(*map(self.here, words), user=user, **{name: self.here(value) for name, value in variables.items()})

    def here(self, text):
        for place in (PLACE, INSTALLED):
            text = text.replace(place, f"{self.folder}{place}")
        return text

    def enter(self, user):
        pass

    def has(self, inside):
        return os.path.lexists(self.here(inside))


class Emulated(Here):
    """The same for 64-bit ARM: each program under qemu, which does not follow it into another by exec."""

    def run(self, *words, user=None, **variables):
        settings = [word for name, value in variables.items() for word in ("-E", f"{name}={value}")]
        return super().run("/usr/bin/qemu-aarch64", "-L", str(ARM), *settings, *words)


def release(folder, name):
    place = folder / name
    if not (place / "complete").exists():
        shutil.rmtree(place, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["debootstrap", "--variant=minbase", "--include=python3-minimal", name, str(place)], check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        (place / "complete").touch()
    return Root(name, place)


def musl(folder):
    """musl's loader out of the distribution's package, and nothing else: what runs there is built for it."""
    place = folder / "musl"
    if not (place / "complete").exists():
        shutil.rmtree(place, ignore_errors=True)
        for name in ("proc", "tmp", "lib"):
            (place / name).mkdir(parents=True)
        with tempfile.TemporaryDirectory() as work:
            subprocess.run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", "musl"], cwd=work, check=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            [package] = pathlib.Path(work).glob("*.deb")
            subprocess.run(["dpkg-deb", "-x", str(package), work], check=True)
            [library] = pathlib.Path(work).rglob("libc.so")
            shutil.copy(library, place / "lib" / "ld-musl-x86_64.so.1")
        (place / "complete").touch()
    return Root("musl", place)
