"""Asks for predictions: predict, measure, look at the difference. Records them, never grades.

In a notebook the learner answers by a button or in a field (`asking.py`). Until then the measured
answer stays hidden, so that *Run All Cells* spoils nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from numbers import Real
from typing import Any

from minigrad.course.asking import ask
from minigrad.grader import progress
from minigrad.grader.folder import CourseError, find_folder


class Prediction:
    """A prediction that waits for its measurement; `predict` makes it, `reveal` compares."""

    def __init__(self, name: str, question: str, said: Any, choices: Sequence[Any] = ()) -> None:
        self.name = name
        self.question = question
        self.said = said
        self.choices = choices
        self.measured: Any = None
        self.right: bool | None = None
        self._verdict = ""
        self._factor = 3.0
        self._shown: list[Any] = []  # the displays in notebooks: every change updates each

    def reveal(self, measured: Any, *, factor: float = 3.0) -> Prediction:
        """Compare with the measurement: a number is right within `factor`, a text if equal."""
        self.measured, self._factor = measured, factor
        self._settle()
        return self

    def say(self, said: Any) -> None:
        """Predict this; a text that is a number counts as the number.

        Raises:
            CourseError: it is neither a number nor one of the choices.
        """
        self.said = _chosen(said, self.choices)
        self._settle()

    def _settle(self) -> None:
        """Judge, save and show the prediction, as far as is known."""
        if self.said is not ... and self.measured is not None:
            self.right, self._verdict = _judge(self.said, self.measured, self._factor)
        if self.said is not ...:
            _remember(self)
        for place in self._shown:
            place.update(self._bundle(), raw=True)

    def _lines(self) -> list[str]:
        """Return the lines below the question."""
        measured = f"Measured: {_show(self.measured)}."
        if self.right is not None:
            return [f"You said {_show(self.said)}. {measured} {self._verdict}"]
        if self.said is not ...:
            return [f"You say {_show(self.said)}. Now measure."]
        choices = [" or ".join(map(str, self.choices)) + "?"] if self.choices else []
        return choices + ([] if self.measured is None else [measured])

    def __repr__(self) -> str:
        lines = [self.question, *self._lines()]
        if self.said is ... and self.measured is not None:
            lines[-1] += " (You made no prediction.)"
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return HTML for reading without a kernel; fold a measurement that nobody predicted."""
        lines = [escape(line) for line in self._lines()]
        if self.said is ... and self.measured is not None:
            lines[-1] = f"<details><summary>the answer</summary>{lines[-1]}</details>"
        return self._framed("".join(f"<div>{line}</div>" for line in lines))

    def _framed(self, body: str) -> str:
        colours = {
            None: "var(--jp-brand-color1, #1976d2)",
            True: "var(--jp-success-color1, #2e7d32)",
            False: "var(--jp-warn-color1, #ef6c00)",
        }
        return (
            f'<div class="prediction" style="border-left:5px solid {colours[self.right]};'
            f'padding:6px 14px;max-width:62em"><b>{escape(self.question)}</b>{body}</div>'
        )

    def _ipython_display_(self) -> None:
        from IPython.display import display

        self._shown.append(display(self._bundle(), raw=True, display_id=True))

    def _bundle(self, note: str = "") -> dict[str, Any]:
        """Return the display formats for a notebook; `note` says why an answer was refused."""
        data = {"text/plain": repr(self), "text/html": self._repr_html_()}
        if self.right is not None:
            return data
        if not note and self.said is not ...:
            note = "Run on, to measure it. Until then you can change your mind."
        elif not note and self.measured is not None:
            note = "It is measured. Answer, and you see."
        return ask(self._framed(""), self.choices, self.said, note, self._take) | data

    def _take(self, said: Any) -> None:
        try:
            self.say(said)
        except CourseError as error:
            for place in self._shown:
                place.update(self._bundle(str(error)), raw=True)


def predict(
    name: str, question: str, said: Any = ..., *, choices: Sequence[Any] = ()
) -> Prediction:
    """Ask for a prediction before the measurement.

    In a notebook the answer is a click or a number in a field, and is remembered. In a script it is
    the third argument.

    Args:
        name: such as `"00.best_eps"`; it begins with the lesson.
        question: one sentence.
        said: the prediction, a number or one of the choices; `...` if none was made yet.
        choices: the possible answers; if empty, the answer is a number.

    Raises:
        CourseError: `said` is neither.
    """
    if said is not ...:
        prediction = Prediction(name, question, _chosen(said, choices), choices)
        _remember(prediction)
        return prediction
    return Prediction(name, question, _remembered(name, question, choices), choices)


def _chosen(said: Any, choices: Sequence[Any]) -> Any:
    """Return a prediction in a comparable form; raise CourseError if it has none."""
    if not choices:
        return _checked(said)
    for choice in choices:
        if str(choice) == str(said).strip():
            return choice
    raise CourseError(f"{said!r:.40} is none of {', '.join(map(str, choices))}")


def _remembered(name: str, question: str, choices: Sequence[Any]) -> Any:
    """Return the earlier answer to this question, `...` if none still fits."""
    try:
        entry = progress.load(find_folder().state)["predictions"].get(name, {})
        return _chosen(entry["said"], choices) if entry.get("question") == question else ...
    except CourseError:
        return ...


def _checked(said: Any) -> Any:
    """Return a number; raise CourseError if it cannot be compared with a measurement."""
    advice = "Write a number, such as 12 or 1e-6."
    if isinstance(said, str):
        text = said.strip()
        try:
            said = int(text) if text.lstrip("+-").isdecimal() else float(text)
        except ValueError:
            raise CourseError(f"{text!r:.40} is no number. {advice}") from None
    if not isinstance(said, Real):
        raise CourseError(f"{said!r:.40} cannot be compared with a measurement. {advice}")
    if not math.isfinite(said):
        raise CourseError(f"{said} cannot be the result of a measurement. {advice}")
    return said if isinstance(said, int) else float(said)


def summary(lesson: str = "") -> str:
    """Return how many predictions were right, and list the wrong ones."""
    try:
        entries = progress.load(find_folder().state)["predictions"]
    except CourseError:
        entries = {}
    entries = {name: entry for name, entry in entries.items() if name.startswith(lesson)}
    judged = [entry for entry in entries.values() if entry["right"] is not None]
    if not judged:
        return "No predictions yet: say what you expect, in the cells that ask for it."
    n_right = sum(entry["right"] for entry in judged)
    lines = [f"{n_right} of {len(judged)} predictions were right."]
    for entry in sorted(judged, key=lambda entry: entry["right"]):
        if not entry["right"]:
            said, measured = _show(entry["said"]), entry["measured"]
            lines.append(f"- {entry['question']} You said {said}; it was {measured}.")
    return "\n".join(lines)


def _judge(said: Any, measured: Any, factor: float) -> tuple[bool, str]:
    if not all(isinstance(value, int | float) for value in (said, measured)):
        right = str(said).strip().lower() == str(measured).strip().lower()
        return right, "Right." if right else "Not what happened. Why?"
    if said == measured or said <= 0 or measured <= 0:
        return said == measured, "Right." if said == measured else "Not what happened. Why?"
    ratio = max(said / measured, measured / said)
    if ratio <= factor:
        return True, f"Right, within a factor of {ratio:.2g}."
    powers = f", {math.log10(ratio):.1f} powers of ten" if ratio >= 10 else ""
    return False, f"Off by a factor of {ratio:.2g}{powers}."


def _show(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _remember(prediction: Prediction) -> None:
    def change(data: dict[str, Any]) -> None:
        data["predictions"][prediction.name] = {
            "question": prediction.question,
            "said": prediction.said,
            "measured": _show(prediction.measured),
            "right": prediction.right,
        }

    try:
        progress.update(find_folder().state, change)
    except (CourseError, OSError):
        return  # outside a course or in a read-only one, a prediction is shown but not saved
