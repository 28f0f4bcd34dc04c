"""Predictions: predict, measure, look at the difference. They are recorded, never graded."""

from __future__ import annotations

import math
from html import escape
from numbers import Real
from typing import Any

from minigrad.grader import progress
from minigrad.grader.folder import CourseError, find_folder


class Prediction:
    """A prediction that waits for the measurement; `predict` makes it, `reveal` compares."""

    def __init__(self, name: str, question: str, said: Any) -> None:
        self.name = name
        self.question = question
        self.said = said
        self.measured: Any = None
        self.right: bool | None = None
        advice = "Put your own answer in place of ... and run the cell again."
        self._text = f"{question}\n"
        self._text += advice if said is ... else f"You say {_show(said)}. Now measure."

    def reveal(self, measured: Any, *, factor: float = 3.0) -> Prediction:
        """Compare with the measurement. Numbers are right within `factor`, texts if equal."""
        self.measured = measured
        answer = f"Measured: {_show(measured)}."
        if self.said is ...:
            self._text = f"{answer} (You made no prediction.)"
            return self
        self.right, verdict = _judge(self.said, measured, factor)
        self._text = f"You said {_show(self.said)}. {answer} {verdict}"
        _remember(self)
        return self

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        colours = {
            None: "var(--jp-brand-color1, #1976d2)",
            True: "var(--jp-success-color1, #2e7d32)",
            False: "var(--jp-warn-color1, #ef6c00)",
        }
        colour = colours[self.right]
        body = "<br>".join(escape(line) for line in self._text.splitlines())
        return (
            f'<div style="border-left:5px solid {colour};padding:6px 14px;max-width:62em">'
            f"{body}</div>"
        )


def predict(name: str, question: str, said: Any = ...) -> Prediction:
    """Make a prediction before the measurement.

    Args:
        name: such as `"00.best_eps"`; it begins with the lesson.
        question: one sentence.
        said: the prediction: a number, or one of the texts that the question offers; `...` if none
            was made yet.

    Raises:
        CourseError: `said` is neither.
    """
    said = _checked(said)
    prediction = Prediction(name, question, said)
    if said is not ...:
        _remember(prediction)
    return prediction


def _checked(said: Any) -> Any:
    """Return a prediction as it can be compared; raise CourseError if it cannot."""
    advice = "put a number, such as 1e-6, in place of the ..."
    if isinstance(said, str):
        try:
            float(said)
        except ValueError:
            return said
        raise CourseError(f"{said!r} is a text; write the number without quotes: {said}")
    if said is ... or isinstance(said, bool):
        return said
    if not isinstance(said, Real):
        raise CourseError(f"{said!r:.40} cannot be compared with a measurement; {advice}")
    if not math.isfinite(said):
        raise CourseError(f"{said} cannot be the result of a measurement; {advice}")
    return said if isinstance(said, int) else float(said)


def summary(lesson: str = "") -> str:
    """Return how many predictions were right, and those that were wrong."""
    try:
        entries = progress.load(find_folder().state)["predictions"]
    except CourseError:
        entries = {}
    entries = {name: entry for name, entry in entries.items() if name.startswith(lesson)}
    judged = [entry for entry in entries.values() if entry["right"] is not None]
    if not judged:
        return "No predictions yet: replace the ... in the prediction cells by what you expect."
    n_right = sum(entry["right"] for entry in judged)
    lines = [f"{n_right} of {len(judged)} predictions were right."]
    for entry in sorted(judged, key=lambda entry: entry["right"]):
        if not entry["right"]:
            lines.append(
                f"- {entry['question']} You said {entry['said']}; it was {entry['measured']}."
            )
    return "\n".join(lines)


def _judge(said: Any, measured: Any, factor: float) -> tuple[bool, str]:
    numbers = all(isinstance(value, int | float) and value > 0 for value in (said, measured))
    if not numbers:
        right = str(said).strip().lower() == str(measured).strip().lower()
        return right, "Right." if right else "Not what happened. Why?"
    ratio = max(said / measured, measured / said)
    if ratio <= factor:
        return True, f"Right, within a factor of {max(ratio, 1.0):.2g}."
    return False, f"Off by a factor of {ratio:.2g}, {abs(math.log10(ratio)):.1f} powers of ten."


def _show(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _remember(prediction: Prediction) -> None:
    def change(data: dict[str, Any]) -> None:
        data["predictions"][prediction.name] = {
            "question": prediction.question,
            "said": _show(prediction.said),
            "measured": _show(prediction.measured),
            "right": prediction.right,
        }

    try:
        progress.update(find_folder().state, change)
    except (CourseError, OSError):
        return  # outside a course, or in a read-only one, a prediction is only shown
