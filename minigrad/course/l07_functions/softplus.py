"""A smooth relu as a Function."""

from __future__ import annotations

import numpy as np

from minigrad.course.l07_functions import lesson
from minigrad.course.l07_functions.common import (
    DROPPED,
    check_first,
    check_second,
    check_two_calls,
)
from minigrad.grader.samples import SHAPES, numbers
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
        "minigrad.log_softmax",
        "minigrad.Variable.log_softmax",
        "minigrad.softmax",
        "minigrad.Variable.softmax",
        "minigrad.nn.Softmax",
        "minigrad.cross_entropy",
        "minigrad.ops.activations.Softplus",
        "minigrad.ops.rows.SoftmaxRow",
        "minigrad.ops.rows.LogSoftmaxRow",
        "minigrad.ops.rows.LogSumExpRow",
        "minigrad.ops.rows.CrossEntropyRow",
        "minigrad.ops.losses.BceWithLogits",
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
    """Return log(1 + exp(x))."""
    return np.logaddexp(0, x)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return the slope of softplus."""
    return np.exp(-np.logaddexp(0, -x))


def slope(x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """Return the gradient of softplus."""
    return dy * sigmoid(x)


def check(t: Tester, x: np.ndarray, dy: np.ndarray) -> None:
    """Check value and gradient at x."""
    s, e = sigmoid(x), np.exp(-np.abs(x))
    check_first(
        t,
        x,
        dy,
        value(x),
        slope(x, dy),
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
            Mistake("dropped_upstream", s, DROPPED),
            Mistake(
                "slope_of_slope",
                dy * s * (1 - s),
                "This is the slope of the sigmoid. And that of softplus?",
            ),
            Mistake("sign", dy * (1 - s), "For a large x, y grows like x. Is your slope 1 there?"),
            Mistake("relu_slope", dy * (x > 0), "This is the slope of relu: a step. y is smooth."),
            Mistake("added", dy + s, "What arrives and the local derivative are multiplied."),
            Mistake(
                "at_output", dy * sigmoid(value(x)), "The slope was taken at y. It belongs to x."
            ),
        ],
    )


@softplus.check(points=2)
def ordinary_numbers(t: Tester) -> None:
    """Value and gradient are right for ordinary numbers of any shape and a random dy."""
    for shape in SHAPES:
        check(t, numbers(t.random, shape), numbers(t.random, shape))


@softplus.check(points=2)
def extremes(t: Tester) -> None:
    """Value and gradient are right and finite from -1000 to 1000, and at 0."""
    for x in (1000.0, -1000.0, 0.0, -40.0, 800.0, 12.0, -12.0, 18.0, -18.0, 200.0, -200.0):
        check(t, np.array([x]), numbers(t.random, (1,)))


@softplus.check(points=2)
def second_order(t: Tester) -> None:
    """backward can be differentiated: the second derivative is right, and finite at extremes."""
    points = [numbers(t.random, shape) for shape in ((2,), (), (2, 3))]
    for x in (*points, np.array([-1000.0, 1000.0]), np.array([0.0, -18.0, 18.0])):
        dy, v = (numbers(t.random, x.shape) for _ in range(2))
        s = sigmoid(x)
        check_second(t, x, dy, v, dy * v * s * sigmoid(-x), v * s)


@softplus.check(points=1)
def two_calls(t: Tester) -> None:
    """Two calls before either goes backward keep what is theirs."""
    check_two_calls(t, numbers(t.random, (2,)), numbers(t.random, (2,)) - 5, slope)
