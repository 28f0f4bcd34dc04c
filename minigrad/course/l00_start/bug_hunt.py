"""The bug hunt: a step that is right only for ordinary numbers."""

from __future__ import annotations

import math

import numpy as np

from minigrad.course.l00_start.lesson import lesson
from minigrad.grader.formula import Formula
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

slope = lesson.exercise(
    "slope",
    difficulty=3,
    minutes=15,
    returns="the derivative of f at x",
    hints=(
        "The step is a millionth. Is x + eps always another number than x?",
        "Floats have 53 bits: between 1 and 2 they are 2e-16 apart, around 1e10 already 2e-6. "
        "Print x + eps - x for x = 1, 1e6, 1e9, 1e12.",
        "Let the step grow with |x|, but never below a small constant, so that it works at 0 too: "
        "something like c * max(1.0, abs(x)), with c between 1e-6 and 1e-4.",
    ),
)
PLANTED_STEP = 1e-6


def planted_slope(x: float) -> float:
    """Return what the planted defect gives for f(x) = x * x."""
    left, right = x - PLANTED_STEP, x + PLANTED_STEP
    return (right * right - left * left) / (2 * PLANTED_STEP)


@slope.check(points=2)
def diagnosis(t: Tester) -> None:
    """BUG names an x for which the slope as it came is wrong."""
    bug = t.get("BUG")
    where = t.runner.line_of("BUG")
    expected = '("x", a number), such as ("x", 2.0)'
    well_formed = isinstance(bug, tuple | list) and len(bug) == 2 and bug[0] == "x"
    if not well_formed or isinstance(bug[1], bool) or not isinstance(bug[1], int | float):
        untouched = well_formed and bug[1] is None
        t.fail(
            "untouched" if untouched else "form",
            expected,
            show(bug),
            "Try slope(lambda x: x * x, x) for x of many sizes and compare with 2 * x."
            if untouched
            else 'First the form: write the text "x" and your number, as a pair.',
            where=where,
        )
    x = float(bug[1])
    t.given = f"slope as it came, f(x) = x * x, x = {show(x)}"
    if not math.isfinite(x) or abs(x) > 1e100 or (x != 0 and abs(x) < 1e-100):
        t.fail(
            "extreme",
            "an x whose square is an ordinary number",
            show(x),
            "x * x itself overflows or vanishes here; look at less extreme numbers.",
            where=where,
        )
    got = planted_slope(x)
    error = abs(got - 2 * x) / abs(2 * x) if x else abs(got)
    if error <= 0.1:
        t.fail(
            "not_wrong",
            "a slope that is off by more than 10 %",
            f"{show(got, 12)}, off by {100 * error:.2g} %",
            "It is nearly right there. Does the error grow or shrink with x?",
            where=where,
        )


def power(t: Tester, n: int) -> tuple[Formula, Formula]:
    """Return a random multiple of x to the n, with its derivative."""
    a = float(t.random.uniform(0.5, 2.5))
    return t.formula(f"{{a}}*x**{n}", a=a), t.formula(f"{n}*{{a}}*x**{n - 1}", a=a)


def check_sizes(t: Tester, low: float, high: float, key: str, attempt: str) -> None:
    """Ask for the slope at random points between two powers of ten, of both signs."""
    for number, exponent in enumerate(np.linspace(low, high, 8)):
        # On a square alone any step would do, but for rounding.
        f, derivative = power(t, 3 - number % 2)
        x = float(f"{t.random.choice([-1.0, 1.0]) * t.random.uniform(0.8, 1.2) * 10**exponent:.4g}")
        got = t.call("slope", f, x)
        expected = float(derivative.value(x))
        wrong = (
            []
            if got is None or not isinstance(got, int | float | np.generic)
            else [Mistake(key, got, attempt)]
        )
        t.close(got, expected, rtol=1e-3, attempt=attempt, mistakes=wrong)


@slope.check(points=3)
def every_size(t: Tester) -> None:
    """It is right for large and for ordinary numbers, and finite at 0."""
    check_sizes(t, 8, 12, "large_x", "How far apart are neighbouring floats near this x?")
    check_sizes(t, -2, 2, "small_x", "Is the step small beside x, and yet far above its rounding?")
    f, _ = power(t, 2)
    got = t.call("slope", f, 0.0)
    t.close(got, 0.0, atol=1e-6, attempt="How long is your step when x is 0?")
