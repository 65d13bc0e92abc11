#!/usr/bin/env python3
"""Draws docs/images/memory.svg from docs/benchmarks/memory.csv: for each workload and allocator a bar of what was taken from
the card, its coloured part what the program's tensors held. `docs/images/draw.py --check` fails if the picture is not of these numbers.
"""
import csv
import html
import itertools
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
NUMBERS = HERE.parent / "benchmarks" / "memory.csv"
PICTURE = HERE / "memory.svg"

WIDTH, LEFT, RIGHT = 760, 150, 130  # of the picture, of the names, of the figures behind the bars
BAR, STEP, TITLE = 20, 28, 34
LIVE, RESERVED = "#2da44e", "#e16f24"


def text(x, y, words, size=13, anchor="start", extra=""):
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}"{extra}>{html.escape(words)}</text>'


def bar(x, y, width, colour):
    return f'<rect x="{x:g}" y="{y:g}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>'


def draw(rows):
    scale = (WIDTH - LEFT - RIGHT) / max(float(row["reserved_mib"]) for row in rows)
    parts, y = [], 0
    for workload, group in itertools.groupby(rows, key=lambda row: row["workload"]):
        y += TITLE
        parts.append(text(8, y - 10, workload, 14, extra=' font-weight="bold"'))
        for row in group:
            live, reserved = float(row["live_mib"]), float(row["reserved_mib"])
            parts += [text(LEFT - 10, y + 15, row["allocator"], anchor="end"),
                      bar(LEFT, y, live * scale, LIVE), bar(LEFT + live * scale, y, (reserved - live) * scale, RESERVED),
                      text(LEFT + reserved * scale + 8, y + 15, f"{reserved / 1024:.1f} GiB, {reserved / live:.2f} x")]
            y += STEP
    y += 12
    parts += [bar(LEFT, y, BAR, LIVE), text(LEFT + 28, y + 15, "held by tensors at the peak"),
              bar(LEFT + 250, y, BAR, RESERVED), text(LEFT + 278, y + 15, "taken from the card besides")]
    height = y + BAR + 10
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
                      'font-family="sans-serif">', '<rect width="100%" height="100%" fill="#ffffff"/>', *parts, "</svg>", ""])


def main():
    lines = [line for line in NUMBERS.read_text().splitlines() if not line.startswith("#")]
    picture = draw(list(csv.DictReader(lines)))
    if "--check" not in sys.argv:
        PICTURE.write_text(picture)
    elif PICTURE.read_text() != picture:
        sys.exit("draw: docs/images/memory.svg is not of docs/benchmarks/memory.csv; run docs/images/draw.py")


main()
