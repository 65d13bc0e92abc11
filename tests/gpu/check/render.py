"""The results of a run as a section of a page: newest first, below the page's marker line; their pictures beside it."""
import json
import re

from . import chart
from .result import markdown

MARKER = "<!-- runs, newest first -->"

# Folders that only the machine of the run has, before a path of ours or of the work folder.
OWN_PLACES = re.compile(r"(?<![\w.])/[\w./-]*?/(?=(?:tests|device|pool|preload|config|scripts|build)/)|/\S*/gpu-check-\w+/")


def section(results):
    lines = [f"## {results['when'][:10]}, {results['machine']['card']}", ""]
    lines += [f"- {key}: {value}" for key, value in results["machine"].items() if key != "card"]
    lines += [f"- gpupool: {results['commit']}", f"- command: `{results['command']}`, {results['seconds']:.0f} s", ""]
    lines += ["| check | result | seconds |", "| --- | --- | --- |"]
    for name, check in results["checks"].items():
        lines.append(f"| {check['title']} (`{name}`) | {'passed' if check['passed'] else '**failed**'} | {check['seconds']:.0f} |")
    for check in results["checks"].values():
        lines += ["", f"### {check['title']}", ""]
        lines += ["\n".join(markdown(table) for table in check["tables"])]
        lines += [f"- Failed: {' '.join(OWN_PLACES.sub('', text).split())[:400]}" for text in check["failures"]]
        lines += [f"- {note}" for note in check["notes"]]
    text = OWN_PLACES.sub("", "\n".join(lines))
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text.rstrip() + "\n"


def render(results_file, page):
    """Puts the section into the page."""
    text = page.read_text()
    if MARKER not in text:
        raise SystemExit(f"{page} has no line {MARKER}")
    results = json.loads(results_file.read_text())
    page.write_text(text.replace(MARKER, MARKER + "\n\n" + section(results).rstrip(), 1))
    for check in results["checks"].values():
        for name, drawn in check.get("charts", {}).items():
            (page.parent / f"{name}.svg").write_text(chart.svg(drawn["title"], drawn["unit"], drawn["bars"]))
