"""Makes a learner's portfolio: one HTML file that loads nothing, with curves, tiles and their code.

The text of a learner (a name, code, file names) is escaped, and the page forbids scripts.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from minigrad import __version__
from minigrad.course.book import sheet, style
from minigrad.course.charts import Curve, chart
from minigrad.course.own_run import ELSEWHERE, Memory, Report, Run, is_elsewhere, label_of
from minigrad.course.parts import PARTS
from minigrad.course.scores import Standing
from minigrad.course.shares import rows_of
from minigrad.grader.spec import Lesson
from minigrad.viz.units import format_bytes

GENERATOR = "minigrad portfolio"
MARK = re.compile(rf'<meta name="generator" content="{GENERATOR} ([0-9a-f]{{64}})">')
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
DARK = "screen and (prefers-color-scheme: dark)"  # paper is white


@dataclass(frozen=True)
class Shown:
    """A capstone: what it trains, what is said of its runs, and its curves by engine."""

    exercise_id: str
    title: str
    command: str
    said: Mapping[str, str]
    curves: Mapping[str, Sequence[Sequence[tuple[float, float]]]]
    xlabel: str = ""
    ylabel: str = ""


@dataclass
class Portfolio:
    """What the page shows.

    Attributes:
        name: whose it is, "" if that is not said.
        lessons: each with how its exercises stand.
        report: the training on all parts; None if there was none.
        missing: why there was none.
        code: the source of each part that ran, and of each capstone, by exercise.
        capstones: those of the course.
    """

    name: str
    lessons: list[tuple[Lesson, list[Standing]]]
    report: Report | None = None
    missing: str = ""
    code: dict[str, str] = field(default_factory=dict)
    capstones: list[Shown] = field(default_factory=list)


def page(portfolio: Portfolio) -> str:
    """Return the page; it carries a hash of itself, by which `is_untouched` knows it."""
    title = f"The engine of {portfolio.name}" if portfolio.name else "My engine"
    body = "".join(
        (
            _opening(portfolio, title),
            _wall(portfolio),
            _training(portfolio),
            _memory(portfolio.report.memory) if portfolio.report else "",
            _capstones(portfolio.capstones),
            _code(portfolio),
            f"<footer>Made by <code>minigrad portfolio</code>, minigrad {escape(__version__)}, on "
            f"{time.strftime('%Y-%m-%d')}. This file loads nothing and runs no script.</footer>",
        )
    )
    light, dark = _sheets()
    text = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{{mark}}<title>{escape(title)}</title><style>{light}</style>"
        f'<style media="{DARK}">{dark}</style><style>{sheet("portfolio")}</style></head>\n'
        f"<body><main>{body}</main></body></html>\n"
    )
    before, after = text.split("{mark}", 1)
    return f"{before}{_mark(before + after)}{after}"


def is_untouched(text: str) -> bool:
    """Return whether `page` has made this text, and nobody has changed it since."""
    mark = MARK.search(text)
    return mark is not None and mark[0] == _mark(text.replace(mark[0], "", 1))


def _mark(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return f'<meta name="generator" content="{GENERATOR} {digest}">'


def _sheets() -> tuple[str, str]:
    """Return the styles for light and dark; those of code only where Pygments is installed."""
    try:
        return style("book", "default"), style("dark", "github-dark")
    except ImportError:
        return sheet("book"), sheet("dark")


def _opening(portfolio: Portfolio, title: str) -> str:
    every = [one for _, some in portfolio.lessons for one in some]
    points, of = sum(one.points for one in every), sum(one.exercise.points for one in every)
    solved = sum(one.is_solved for one in every)
    return (
        f"<h1>{escape(title)}</h1>"
        '<p class="lead">An engine for automatic differentiation is a program that trains neural '
        "networks: it records what is computed, and computes gradients backwards. In the course "
        "minigrad one writes its parts, and digits are learned with them. Here is what I wrote.</p>"
        f'<p class="lead">{solved} of {len(every)} exercises solved, {points} of {of} points.</p>'
    )


def _wall(portfolio: Portfolio) -> str:
    parts = [one for _, some in portfolio.lessons for one in some if one.is_part]
    lit = sum(one.is_lit for one in parts)
    return (
        f"<h2>The wall: {lit} of {len(parts)} parts are mine</h2>"
        "<p>A lit tile is a part that has passed its tests, and has run in the engine.</p>"
        f'<ul class="wall">{"".join(_tile(one, portfolio.code) for one in parts)}</ul>'
    )


def _tile(standing: Standing, code: Mapping[str, str]) -> str:
    one = standing.exercise
    name = f"{escape(one.lesson.number)} {escape(one.name)}"
    name = f'<a href="#{_anchor(one.id)}">{name}</a>' if one.id in code else name
    kind, sign = (' class="lit"', "■ runs") if standing.is_lit else ("", "□ not yet")
    place = f" · {escape(label_of(one.id))}" if one.id in PARTS else ""
    return f"<li{kind}><b>{name}</b>{sign}{place}</li>"


def _training(portfolio: Portfolio) -> str:
    head = "<h2>Digits, on my engine</h2>"
    report = portfolio.report
    if report is None or report.eager is None or not report.eager.ids:
        why = portfolio.missing or "None of the parts has run yet."
        return f'{head}<p class="missing">{escape(why)}</p>'
    run, n = report.eager, report.eager.steps
    picture = chart(
        [
            Curve([*enumerate(run.reference[:n], 1)], "other"),
            Curve([*enumerate(run.mine[:n], 1)], "mine"),
        ],
        "training step",
        "loss",
        f"the loss of {n} steps, with my parts and without: from {run.mine[0]:.3f} to "
        f"{run.mine[n - 1]:.3f}",
    )
    calls, seconds = sum(run.calls.values()), sum(run.times.values())
    total = calls + sum(run.own.values())
    text = (
        f"{head}<p>{len(run.ids)} parts at once: of {total:,} calls that the training made to "
        f"parts of the engine, {calls:,} ran my code ({calls / total:.0%}), and of the time "
        f"{seconds / run.seconds:.0%}. The losses are those of minigrad's own parts.</p>"
        f"<figure>{picture}<figcaption>The thin line is my engine, the thick one minigrad's own: "
        f"{run.mine[n - 1]:.6f} and {run.reference[n - 1]:.6f} after {n} steps.</figcaption>"
        f"</figure>{_table(run)}"
    )
    for what, other in report.others.items():
        if other.ids:
            names = escape(" and ".join(other.ids))
            text += f"<p>{names}: {other.steps} {what}, with the same losses.</p>"
    for one, why in report.left_out.items():
        text += f'<p class="missing">Left out: {escape(one)}: {escape(why)}</p>'
    return text


def _table(run: Run) -> str:
    heads = ("part", "whose", "calls", "of calls", "of time")
    rows = []
    for part, whose, calls, of_calls, of_time in rows_of(run):
        whose = "mine" if whose == "yours" else whose
        cells = [f"<td>{escape(part)}</td><td>{escape(whose)}</td>"]
        cells += [f'<td class="number">{text}</td>' for text in (f"{calls:,}", of_calls, of_time)]
        rows.append(f"<tr{' class=sum' if part == 'together' else ''}>{''.join(cells)}</tr>")
    kinds = ["", "", *[' class="number"'] * 3]
    head = "".join(f"<th{kind}>{text}</th>" for kind, text in zip(kinds, heads, strict=True))
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _memory(memory: Memory) -> str:
    if not memory.bytes_in_use:
        return ""
    kib = [(at, nbytes / 1024) for at, nbytes in enumerate(memory.bytes_in_use)]
    peak = format_bytes(max(memory.bytes_in_use))
    largest = ", ".join(f"{format_bytes(nbytes)} by {op}" for op, nbytes in memory.at_peak)
    picture = chart(
        [Curve(_steps(kib))],
        "allocations and releases, in order",
        "KiB in use",
        f"the bytes in use while the network trains; at most {peak}",
        area=True,
    )
    return (
        f"<h2>Memory</h2><figure>{picture}<figcaption>Two steps of this training: forward, memory "
        f"fills with what the backward pass will need; backward, it empties. At most {peak} are in "
        f"use; the largest then: {escape(largest)}.</figcaption></figure>"
    )


def _steps(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the corners of the staircase through these points."""
    corners: list[tuple[float, float]] = []
    for x, y in points:
        if corners:
            corners.append((x, corners[-1][1]))
        corners.append((x, y))
    return corners


def _capstones(capstones: list[Shown]) -> str:
    if not capstones:
        return ""
    texts = ["<h2>Capstones</h2><p>Trainings of my own design, with five seeds each.</p>"]
    for one in capstones:
        texts.append(f"<h3>{escape(one.title)}</h3>")
        curves = [Curve(points, "thin") for points in one.curves.get("reference", ())]
        curves += [Curve(points, "mine") for points in one.curves.get("mine", ())]
        if curves:
            said = f"{one.title}: {len(curves)} trainings"
            texts.append(
                f"<figure>{chart(curves, one.xlabel, one.ylabel, said)}<figcaption>Blue: on my "
                "engine; grey: on minigrad's own.</figcaption></figure>"
            )
        rows = [
            f"<tr><td>{'my engine' if which == 'mine' else 'minigrad'}</td>"
            f"<td>{escape(said)}</td></tr>"
            for which, said in one.said.items()
        ]
        texts.append(
            f'<div class="wide"><table class="runs"><tbody>{"".join(rows)}</tbody></table></div>'
        )
        if not one.curves.get("mine"):
            texts.append(
                f'<p class="missing">Not run on my engine yet: <code>{escape(one.command)} --mine'
                "</code> trains it.</p>"
            )
    return "".join(texts)


def _code(portfolio: Portfolio) -> str:
    if not portfolio.code:
        return ""
    texts = ["<h2>My code</h2><p>Each function with its helpers, as it ran.</p>"]
    report = portfolio.report
    runs = report.runs if report else []
    for exercise_id, source in portfolio.code.items():
        where = "Trains a capstone, above"
        if exercise_id in PARTS:
            calls = sum(run.calls.get(exercise_id, 0) for run in runs)
            where = f"Runs as {label_of(exercise_id)}"
            if is_elsewhere(exercise_id):
                where += f", in {ELSEWHERE[PARTS[exercise_id][0]][0]}"
            where += f"; called {calls:,} times above" if calls else ""
        texts.append(
            f'<h3 id="{_anchor(exercise_id)}">{escape(exercise_id)}</h3>'
            f'<p class="where">{escape(where)}.</p>{highlighted(source)}'
        )
    return "".join(texts)


def highlighted(source: str) -> str:
    """Return code as HTML; in colours where Pygments is installed."""
    try:
        from pygments import highlight
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import PythonLexer
    except ImportError:
        return f'<div class="highlight"><pre>{escape(source)}</pre></div>'
    return highlight(source, PythonLexer(), HtmlFormatter())


def _anchor(exercise_id: str) -> str:
    return f"part-{escape(exercise_id)}"
