"""The bug hunt: a step that is right only for ordinary numbers."""

from __future__ import annotations

import sys

import numpy as np

from minigrad.course.l00_start import lesson
from minigrad.grader.formula import Formula
from minigrad.grader.message import show
from minigrad.grader.tester import Tester

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
    """Return the slope that the planted defect gives for f(x) = x * x."""
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
    least, most = sys.float_info.min, sys.float_info.max
    if not (x == 0 or least <= x * x <= most):
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


POWERS = (Formula("x**2"), Formula("2*x")), (Formula("x**3"), Formula("3*x**2"))


def reach(t: Tester, f: Formula, x: float) -> float:
    """Return the distance between the points that the slope at x is measured from."""
    given = t.given
    t.call("slope", f, x)
    points = t.evaluated_at[0] or [x]
    t.given = given
    return float(max(points) - min(points))


def check_slopes(t: Tester, *sizes: float) -> None:
    """Check the slopes of the powers at these points; messages compare the step with the floats."""
    for x in sizes:
        for f, derivative in POWERS:  # for a square alone any step is right, but for rounding
            got = t.call("slope", f, x)
            points = t.evaluated_at[0] or [x]
            if strange := [one for one in points if np.ndim(one) or np.iscomplexobj(one)]:
                attempt = "f takes one float: math.sin, say. At which two floats is it enough?"
                t.fail("no_float", "f called at floats", f"f called at {show(strange[0])}", attempt)
            apart, spacing = max(points) - min(points), float(np.spacing(abs(x)))
            too_small = apart < 1e6 * spacing
            attempt = (
                f"You called f at points {apart:.2g} apart; neighbouring floats are "
                f"{spacing:.2g} apart near this x. Is your step "
                + ("far above that?" if too_small else "small beside x?")
            )
            if not too_small and apart < 1e-3 * abs(x):
                attempt = (
                    f"Your points, {apart:.2g} apart, are well placed. What becomes of the slope?"
                )
            key = "step_too_small" if too_small else "step_too_large"
            if not t.evaluated_at[0]:
                key, attempt = "f_not_called", "You did not call f here. What else knows its slope?"
            elif too_small and x < 0 and (other := reach(t, f, -x)) > 2 * apart:
                key = "step_of_sign"
                attempt = (
                    f"At {show(-x)} your two points are {other:.2g} apart, at {show(x)} only "
                    f"{apart:.2g}. What does the sign of x do to your step?"
                )
            t.close(got, float(derivative.value(x)), rtol=1e-3, key=key, attempt=attempt)


@slope.check(points=3)
def every_size(t: Tester) -> None:
    """It is right for large and for ordinary numbers, and finite at 0 and near it."""
    check_slopes(t, 1e9, -1e12, 3e5, 1e12)
    check_slopes(
        t, 1.0, -1.0, -0.01, 7.5, -100.0, 0.01, 0.010075, 4e3, -0.1, 0.3, 4e4, 3e6, -1e8, 5e10
    )
    for f, right in ((Formula("sin(x)"), np.cos(2.5)), (Formula("3 - x"), -1.0)):
        got = t.call("slope", f, 2.5)
        t.close(got, float(right), rtol=0.05, attempt="Not every f is a power: ask f itself.")
    for x in (0.0, -0.0, 1e-9, -1e-310, 5e-324):
        for f, _ in POWERS:
            got = t.call("slope", f, x)
            t.close(got, 0.0, atol=np.inf, attempt=f"How long is your step when x is {x:g}?")
