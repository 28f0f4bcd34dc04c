"""A smooth relu as a Function."""

from __future__ import annotations

import numpy as np

from minigrad.course.l07_functions.common import (
    DROPPED,
    check_first,
    check_second,
    check_two_calls,
)
from minigrad.course.l07_functions.lesson import lesson
from minigrad.grader.tester import Mistake, Tester

softplus = lesson.exercise(
    "Softplus",
    difficulty=2,
    minutes=15,
    returns="a Function: y from forward, one gradient from backward",
    needs="engine",
    answers=(
        "minigrad.softplus",
        "minigrad.nn.Softplus",
        "minigrad.logsumexp",
        "minigrad.Variable.logsumexp",
        "minigrad.bce_with_logits",
    ),
    hints=(
        "log(1 + exp(x)) overflows for a large x. Write it as x + log(1 + exp(-x)) there: which "
        "of the two forms is safe for which sign of x? And which slope formula never overflows?",
        "One form for both signs: max(x, 0) + log1p(exp(-|x|)). In backward, mg.sigmoid(x) is the "
        "slope, safe everywhere; multiply it by what arrives.",
        "forward: ctx.save_for_backward(x), then return mg.maximum(x, 0.0) + "
        "mg.log1p(mg.exp(-mg.abs(x))). backward: take x out of ctx.saved and return dy times "
        "mg.sigmoid(x).",
    ),
)


def value(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x))."""
    return np.logaddexp(0, x)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """The slope of softplus."""
    return np.exp(-np.logaddexp(0, -x))


def slope(x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """The gradient of softplus."""
    return dy * sigmoid(x)


def arrays(t: Tester, n: int, size: int = 3) -> list[np.ndarray]:
    """Return random arrays, rounded as they are shown; none of their entries is small."""
    return [
        np.round(t.random.choice([-1, 1], size) * t.random.uniform(0.3, 2, size), 2)
        for _ in range(n)
    ]


def check(t: Tester, x: np.ndarray, dy: np.ndarray, *, exactly: bool = False) -> None:
    """Check value and gradient at x."""
    s, e = sigmoid(x), np.exp(-np.abs(x))
    check_first(
        t,
        x,
        dy,
        value,
        slope=slope if exactly else None,
        values=[
            Mistake("relu", np.maximum(x, 0), "This is relu. Where is the term that smooths it?"),
            Mistake("no_one", np.logaddexp(0, -x), "The sign of x in exp: for a large x, y is x."),
            Mistake(
                "no_large_part",
                np.log1p(e),
                "Right for x < 0. For x > 0, what was split off has to be added again.",
            ),
            Mistake("sigmoid_value", s, "This is the slope. The value goes up without end."),
        ],
        gradients=[
            ("dropped_upstream", s, DROPPED),
            (
                "slope_of_slope",
                dy * s * (1 - s),
                "This is the slope of the sigmoid. And that of softplus?",
            ),
            ("sign", dy * (1 - s), "For a large x, y grows like x. Is your slope 1 there?"),
            ("relu_slope", dy * (x > 0), "This is the slope of relu: a step. y is smooth."),
            ("added", dy + s, "What arrives and the local derivative are multiplied."),
            ("at_output", dy * sigmoid(value(x)), "The slope was taken at y. It belongs to x."),
        ],
    )


@softplus.check(points=2)
def ordinary_numbers(t: Tester) -> None:
    """Value and gradient are right for ordinary numbers and a random dy."""
    for size in (2, 3):
        check(t, *arrays(t, 2, size))
    check(t, *(np.round(t.random.uniform(-2, 2, (2, 2)), 2) for _ in range(2)))


@softplus.check(points=2)
def extremes(t: Tester) -> None:
    """Value and gradient are right and finite from -1000 to 1000, and at 0."""
    for x in (1000.0, -1000.0, 0.0, -40.0, 800.0):
        check(t, np.array([x]), np.round(t.random.uniform(0.5, 2, 1), 2), exactly=True)


@softplus.check(points=2)
def second_order(t: Tester) -> None:
    """backward can be differentiated: the second derivative is right, and finite at extremes."""
    for number in range(3):
        x, dy, v = arrays(t, 3, 2)
        if number == 2:
            x = np.array([-1000.0, 1000.0])
        s = sigmoid(x)
        check_second(t, x, dy, v, dy * v * s * sigmoid(-x), v * s)


@softplus.check(points=1)
def two_calls(t: Tester) -> None:
    """Two calls before either goes backward keep what is theirs."""
    x1, x2, dy = arrays(t, 3, 2)
    check_two_calls(t, x1, x2 - 5, dy, slope)
