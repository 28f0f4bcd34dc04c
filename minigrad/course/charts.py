"""Draws small charts as SVG whose colours come from the page, so that they suit light and dark.

A page gives the colours by the classes `mine`, `other`, `thin`, `area`, `axis` and `grid`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 270
LEFT, RIGHT, TOP, BOTTOM = 64, 14, 14, 52  # margins
MOST_TICKS = 5


@dataclass(frozen=True)
class Curve:
    """One line of a chart. kind: 'mine', 'other' (broad) or 'thin'."""

    points: Sequence[tuple[float, float]]
    kind: str = "mine"


def chart(
    curves: Sequence[Curve], xlabel: str, ylabel: str, said: str, *, area: bool = False
) -> str:
    """Return a chart.

    Args:
        curves: those of one kind look alike; later ones are drawn above earlier ones.
        xlabel, ylabel: the axes.
        said: what the chart shows, for those who cannot see it.
        area: whether the space below the first curve is filled.
    """
    points = [point for curve in curves for point in curve.points if all(map(math.isfinite, point))]
    if not points:
        return ""
    xs, ys = _ticks([x for x, _ in points]), _ticks([y for _, y in points], from_zero=area)
    x_range, y_range = _range([x for x, _ in points], ()), _range([y for _, y in points], ys)

    def across(x: float) -> float:
        share = (x - x_range[0]) / (x_range[1] - x_range[0])
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def down(y: float) -> float:
        share = (y - y_range[0]) / (y_range[1] - y_range[0])
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    floor, parts = HEIGHT - BOTTOM, []
    for y in ys:
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{down(y)}" y2="{down(y)}"/>'
            f'<text x="{LEFT - 8}" y="{down(y) + 4}" text-anchor="end">{number(y)}</text>'
        )
    for x in xs:
        if x_range[0] <= x <= x_range[1]:
            parts.append(
                f'<text x="{across(x)}" y="{floor + 19}" text-anchor="middle">{number(x)}</text>'
            )
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{floor}" y2="{floor}"/>')
    for at, curve in enumerate(curves):
        places = [(across(x), down(y)) for x, y in curve.points if math.isfinite(x + y)]
        if not places:
            continue
        line = " ".join(f"{x},{y}" for x, y in places)
        if area and at == 0:
            ends = f"{places[0][0]},{floor} {line} {places[-1][0]},{floor}"
            parts.append(f'<polygon class="area" points="{ends}"/>')
        parts.append(f'<polyline class="{curve.kind}" points="{line}"/>')
    middle = (TOP + floor) / 2
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">'
        f'{escape(xlabel)}</text><text x="14" y="{middle}" text-anchor="middle" '
        f'transform="rotate(-90 14 {middle})">{escape(ylabel)}</text>'
    )
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(said)}">{"".join(parts)}</svg>'
    )


def number(value: float) -> str:
    """Return a number as short as it can be.

    >>> number(1500.0), number(0.25), number(2e6), number(-0.0)
    ('1,500', '0.25', '2,000,000', '0')
    """
    return f"{value or 0.0:,.0f}" if value == round(value) else f"{value:.6g}"


def _ticks(values: Sequence[float], *, from_zero: bool = False) -> list[float]:
    """Return round numbers that span the values.

    >>> _ticks([0.3, 2.4])
    [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
    """
    low, high = min(values), max(values)
    low = min(low, 0.0) if from_zero else low
    if high <= low:
        low, high = low - 0.5, low + 0.5
    rough = (high - low) / MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(n for n in (1, 2, 5, 10) if n * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def _range(values: Sequence[float], ticks: Sequence[float]) -> tuple[float, float]:
    low, high = min((*values, *ticks)), max((*values, *ticks))
    return (low, high) if high > low else (low - 0.5, high + 0.5)
