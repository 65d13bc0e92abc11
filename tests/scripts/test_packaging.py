"""The archives that scripts/package makes: the same bytes every time, and what they hold works where it is unpacked.

The tree packed here is a small one with a shell script as the command; scripts/test-images runs the real one.
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

from tree import ROOT, run

sys.path.insert(0, str(ROOT / "scripts" / "packaging"))
sys.path.append(str(ROOT / ".deps" / "python"))

import deb  # noqa: E402
import libraries  # noqa: E402
import papers  # noqa: E402
import wheel  # noqa: E402
from components import Component  # noqa: E402
from layout import FILE, PROGRAM, Entry, tar_gz, under, write_tree  # noqa: E402

EPOCH = 1700000000
TREE = [Entry("bin/gpupool", b'#!/bin/sh\necho "$(dirname "$0")" "$@"\n', PROGRAM), Entry("lib/libgpupool.so", b"front", FILE),
        Entry("share/gpupool/sbom.spdx.json", b"{}", FILE), Entry("share/doc/gpupool/NOTICES", b"notices", FILE),
        Entry("share/doc/gpupool/LICENSE", b"licence", FILE)]
PARTS = [(Component("planted++", "", "", "MIT", "https://example.com", "core"), "1.2", "be nice")]


class Packaging(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def twice(self, make):
        """Made in two folders under two masks: the same bytes. The second file."""
        made = []
        for name, mask in (("one", 0o022), ("another", 0o077)):
            (self.folder / name).mkdir()
            before = os.umask(mask)
            try:
                made.append(make(self.folder / name))
            finally:
                os.umask(before)
        self.assertEqual(made[0].read_bytes(), made[1].read_bytes())
        return made[1]

    def test_the_tarball(self):
        def make(folder):
            tar_gz(folder / "a.tar.gz", under("gpupool-1", TREE), EPOCH)
            return folder / "a.tar.gz"

        with tarfile.open(self.twice(make)) as tar:
            members = {member.name: member for member in tar}
        self.assertEqual(members["gpupool-1/bin/gpupool"].mode, PROGRAM)
        self.assertTrue(members["gpupool-1/lib"].isdir())
        self.assertEqual({(member.uid, member.mtime) for member in members.values()}, {(0, EPOCH)})

    def test_the_wheel_gives_the_command(self):
        made = self.twice(lambda folder: wheel.write(folder, "1.2.3", "x86_64", "2.17", TREE, "# read me", EPOCH))
        self.assertEqual(made.name, "gpupool-1.2.3-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl")
        target = self.folder / "site"
        installed = run(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", target, made)
        if "No module named pip" in installed.stdout:
            self.skipTest("no pip")
        self.assertEqual(installed.returncode, 0, installed.stdout)
        ran = run(sys.executable, "-m", "gpupool", "run", "x y", env={**os.environ, "PYTHONPATH": str(target)})
        self.assertEqual(ran.stdout, f"{target}/gpupool/bin run x y\n")
        self.assertEqual((target / "gpupool" / "lib" / "libgpupool.so").read_bytes(), b"front")
        self.assertTrue((target / "bin" / "gpupool").exists())

    @unittest.skipUnless(shutil.which("dpkg-deb"), "no dpkg-deb")
    def test_the_debian_package(self):
        made = self.twice(lambda folder: deb.write(folder, "1.2.3", "aarch64", "2.17", TREE, EPOCH))
        self.assertEqual(made.name, "gpupool_1.2.3_arm64.deb")
        self.assertIn("Depends: libc6 (>= 2.17)", run("dpkg-deb", "--info", made).stdout)
        listing = run("dpkg-deb", "--contents", made).stdout
        for path in ("-rwxr-xr-x root/root.* ./usr/bin/gpupool", "-rw-r--r-- root/root.* ./usr/lib/gpupool/libgpupool.so",
                     "-rw-r--r-- root/root.* ./usr/share/doc/gpupool/copyright"):
            self.assertRegex(listing, path)

    def test_notices_quote_every_licence(self):
        text = papers.notices(PARTS, "our own terms")
        for expected in ("planted++ 1.2, MIT", "be nice", "our own terms"):
            self.assertIn(expected, text)

    def test_the_bill_of_materials(self):
        text = papers.sbom("1.2.3", "x86_64", TREE[:2], PARTS, EPOCH)
        document = json.loads(text)
        self.assertEqual([one["name"] for one in document["packages"]], ["gpupool", "planted++"])
        self.assertEqual(document["files"][1]["checksums"][1]["checksumValue"], hashlib.sha256(b"front").hexdigest())
        try:
            from spdx_tools.spdx.parser.parse_anything import parse_file
            from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
        except ImportError:
            self.skipTest("no spdx-tools")
        file = self.folder / "a.spdx.json"
        file.write_text(text)
        self.assertEqual([one.validation_message for one in validate_full_spdx_document(parse_file(str(file)))], [])

    def test_lists_of_source_archives(self):
        self.assertEqual(libraries.source_list("deb http://example.com stable main\n"), "deb-src http://example.com stable main\n")
        self.assertEqual(libraries.source_list("Types: deb\n"), "Types: deb-src\n")
        self.assertEqual(libraries.source_list("Suites: stable\n"), "Suites: stable\n")

    def test_a_tree_on_disk_has_its_modes(self):
        write_tree(self.folder / "tree", TREE)
        self.assertEqual(subprocess.check_output([self.folder / "tree" / "bin" / "gpupool", "a"], text=True).split()[1], "a")


if __name__ == "__main__":
    unittest.main()
