"""Draws Markdown's formulas as pictures, so that a page shows them without network or script.

matplotlib typesets them in its own fonts; they take the colour of the surrounding text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape

CODE = re.compile(r"(```.*?```|~~~.*?~~~|``.+?``|`[^`\n]+`)", re.DOTALL)
FORMULA = re.compile(
    r"\$\$(?P<display>.+?)\$\$|\$(?P<inline>[^\s$](?:[^$\n]|\n(?!\n))*?)\$(?!\d)", re.S
)
SYNONYMS = {r"\tfrac": r"\frac", r"\dfrac": r"\frac", r"\lVert": r"\|", r"\rVert": r"\|"}
UNIT = 100.0  # points of the drawing to one em
LETTERS = {1: "M", 2: "L", 3: "Q", 4: "C", 79: "Z"}
PAIRS = {1: 1, 2: 1, 3: 2, 4: 3, 79: 1}


def replace(markdown: str, show: Callable[[str, bool], str]) -> str:
    """Replace each formula outside code by `show(text, is_display)`."""

    def shown(match: re.Match) -> str:
        text = match["display"] or match["inline"]
        return show(" ".join(text.split()), match["display"] is not None)

    parts = CODE.split(markdown)
    parts[::2] = [FORMULA.sub(shown, part) for part in parts[::2]]
    return "".join(parts)


def draw(formula: str, is_display: bool = False) -> str:
    """Return a formula as SVG, or as code if matplotlib cannot typeset it."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    text = formula
    for name, known in SYNONYMS.items():
        text = text.replace(name, known)
    if is_display:
        text = text.replace(r"\frac", r"\dfrac")
    font = FontProperties(size=UNIT, math_fontfamily="cm")
    paths = TextToPath()
    try:
        width, height, depth = paths.get_text_width_height_descent(f"${text}$", font, ismath=True)
        vertices, codes = paths.get_text_path(font, f"${text}$", ismath=True)
    except ValueError:
        return f"<code>{escape(formula)}</code>"
    label = escape(formula, quote=True)
    box = f"0 {-(height - depth):.1f} {max(width, 1):.1f} {max(height, 1):.1f}"
    svg = (
        f'<svg class="formula" role="img" aria-label="{label}" viewBox="{box}" '
        f'style="width:{width / UNIT:.3f}em;height:{height / UNIT:.3f}em;'
        f'vertical-align:{-depth / UNIT:.3f}em"><path fill="currentColor" '
        f'd="{_data(vertices, codes)}"/></svg>'
    )
    return f'<div class="display">{svg}</div>' if is_display else svg


def _data(vertices, codes) -> str:
    """Return a matplotlib path as SVG path data, where the y axis points down."""
    parts, place = [], 0
    while place < len(codes):
        code = int(codes[place])
        n = PAIRS[code]
        if code == 79:
            parts.append("Z")
        else:
            points = vertices[place : place + n]
            parts.append(LETTERS[code] + " ".join(f"{x:.1f} {-y:.1f}" for x, y in points))
        place += n
    return "".join(parts)
