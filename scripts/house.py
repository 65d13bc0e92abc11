"""What the gates share: the folders of the house, its files, and how findings are told.

A gate is a program scripts/check-NAME that looks at the tree (its own, or the one named by --root), prints one line
"file:line: what is wrong" for each finding, and exits with 1 if there was any. Build folders and what lies beside the
house are not looked at. tests/scripts/test_gates.py shows each gate failing on a planted fault.
"""
import argparse
import pathlib
import sys

FOLDERS = ("config", "pool", "live", "device", "preload", "cli", "tests", "scripts", "docs")
OTHER_PLACES = ("cmake", ".ci")

SKIPPED = 77  # exit status that ctest shows as "Skipped"


def root_of_arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    return parser.parse_args().root.resolve()


def files(root):
    """Every file of the house, as paths relative to the root, in order; the files of the root folder itself come first."""
    found = sorted(path for path in root.iterdir() if path.is_file())
    for place in (*FOLDERS, *OTHER_PLACES):
        found += sorted(path for path in (root / place).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return [path.relative_to(root) for path in found]


def finish(gate, findings):
    for finding in findings:
        print(finding)
    print(f"{gate}: {len(findings)} findings" if findings else f"{gate}: clean")
    sys.exit(1 if findings else 0)
