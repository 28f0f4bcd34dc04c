"""Shows a result as a card: HTML in a notebook, the same text elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from minigrad.grader.report import (
    SIGNS,
    Style,
    asked,
    begin_elsewhere,
    next_step,
    printed_lines,
    sign_of,
    text,
    untouched_line,
    what_is_open,
)
from minigrad.grader.result import CheckResult, ExerciseResult, Result

# JupyterLab's variables suit light and dark themes; the literal colours are for other pages.
PASSED = "var(--jp-success-color1, #2e7d32)"
FAILED = "var(--jp-error-color1, #c62828)"
BORDER = "var(--jp-border-color1, #bdbdbd)"
QUIET = "var(--jp-ui-font-color2, #757575)"


class Card:
    """The value of `check`. A cell that ends with it shows it; `card.result` has the values."""

    def __init__(
        self, result: Result, note: str = "", links: Mapping[str, str] | None = None
    ) -> None:
        self.result = result
        self.note = note
        self.links = links or {}

    @property
    def passed(self) -> bool:
        """Return whether every check passed."""
        return self.result.passed

    def __repr__(self) -> str:
        parts = (text(self.result, Style(plain=True)), what_is_open(self.result), self.note)
        return "\n".join(filter(None, parts))

    def _repr_html_(self) -> str:
        is_lesson = len(self.result.exercises) > 1
        body = "".join(
            _untouched(exercise)
            if is_lesson and exercise.is_untouched
            else _exercise(exercise, begin_elsewhere(exercise, self.result))
            for exercise in self.result.exercises
        )
        if is_lesson:
            body += f"<div><b>{escape(what_is_open(self.result))}</b></div>"
        body += link_row(self.links)
        step = next_step(self.result, 'hint("{id}")')
        foot = f"{step} · seed {self.result.seed}"
        note = f" · {self.note}" if self.note else ""
        colour = PASSED if self.passed else FAILED
        return (
            f'<div style="border:1px solid {BORDER};border-left:5px solid {colour};'
            'border-radius:4px;padding:8px 14px;max-width:62em">'
            f'{body}<div style="color:{QUIET};font-size:90%">{escape(foot + note)}</div></div>'
        )


def link_row(links: Mapping[str, str]) -> str:
    """Return links, keyed by their text, as one line of HTML; "" for none."""
    items = (f'<a href="{file}">{escape(text)}</a>' for text, file in links.items())
    return f"<div>{' · '.join(items)}</div>" if links else ""


def _exercise(exercise: ExerciseResult, note: str) -> str:
    stars = Style(plain=True).stars(exercise.difficulty)
    head = (
        f"<b>{escape(exercise.id)}</b> {stars} about {exercise.minutes} min · "
        f"<b>{exercise.points} of {exercise.of} points</b> "
        f'<span style="color:{QUIET}">graded in {exercise.seconds:.2f} s</span>'
    )
    rows = [f"<div>{escape(note)}</div>"] if note else []
    for check in exercise.checks:
        rows.append(_row(check, exercise))
        if check is exercise.speaking:
            rows.append(_message(check, exercise.id))
    return f'<div>{head}</div><div style="margin:4px 0 8px 0">{"".join(rows)}</div>'


def _untouched(exercise: ExerciseResult) -> str:
    line = escape(untouched_line(exercise, Style(plain=True)))
    return f'<div style="color:{QUIET};margin-bottom:4px">{line}</div>'


def _row(check: CheckResult, exercise: ExerciseResult) -> str:
    sign = sign_of(check, exercise)
    colour = {"passed": PASSED, "failed": FAILED}.get(sign, QUIET)
    quiet = f";margin-left:1.3em;color:{QUIET}" if sign == "follows" else ""
    return (
        f'<div style="padding-left:3.3em;text-indent:-3.3em{quiet}">'
        f'<span style="color:{colour};font-weight:bold;display:inline-block;width:1em;'
        f'text-indent:0">{SIGNS[sign]}</span> '
        f"{check.points}/{check.of} &nbsp;{escape(asked(check, exercise))}</div>"
    )


def _message(check: CheckResult, exercise_id: str) -> str:
    cell = "padding:1px 12px 1px 0;vertical-align:top;text-align:left;white-space:pre-wrap"
    parts = check.message.parts() if check.message else []
    if printed := printed_lines(check, exercise_id):
        parts.append(("Printed", "\n".join(printed)))
    if not parts:
        return ""
    rows = "".join(
        f'<tr style="background:transparent"><td style="{cell};color:{QUIET}">{label}</td>'
        f'<td style="{cell};font-family:monospace">{escape(part)}</td></tr>'
        for label, part in parts
    )
    return f'<table style="margin:4px 0 6px 18px;border-collapse:collapse">{rows}</table>'
