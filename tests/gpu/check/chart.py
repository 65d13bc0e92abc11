"""Bars on a scale of powers of ten, as a picture that a page can show."""
import html
import math

WIDTH, TOP, STEP, LEFT, RIGHT = 620, 44, 28, 210, 80
OURS, OTHERS = "#2da44e", "#8c959f"


def text(x, y, words, anchor="start", size=12):
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}">{html.escape(words)}</text>'


def svg(title, unit, bars):
    """`bars`: name, value and whether it is ours, the least first in the picture. No value may be 0 or less."""
    bars = sorted(bars, key=lambda bar: bar[1])
    least, most = math.floor(math.log10(bars[0][1])), math.ceil(math.log10(bars[-1][1]))
    height = TOP + STEP * len(bars) + 34

    def at(value):
        return LEFT + (math.log10(value) - least) / max(most - least, 1) * (WIDTH - LEFT - RIGHT)

    parts = [text(8, 20, title, size=14)]
    for power in range(least, most + 1):
        x = at(10**power)
        parts += [f'<line x1="{x:g}" y1="{TOP - 8}" x2="{x:g}" y2="{height - 26}" stroke="#dddddd"/>',
                  text(x, height - 10, f"{10**power:g} {unit}", "middle", 11)]
    for row, (name, value, ours) in enumerate(bars):
        y = TOP + STEP * row
        parts += [text(LEFT - 8, y + 14, name, "end"), f'<rect x="{LEFT}" y="{y}" width="{at(value) - LEFT:.1f}" height="18" fill="{OURS if ours else OTHERS}"/>',
                  text(at(value) + 6, y + 14, f"{value:g}")]
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
                      '<rect width="100%" height="100%" fill="#ffffff"/>', *parts, "</svg>", ""])
