"""A smooth maximum as a Function of two arguments."""

from __future__ import annotations

import numpy as np

from minigrad.course.l07_functions import lesson
from minigrad.course.l07_functions.common import (
    DROPPED,
    check_first,
    check_second,
    check_two_calls,
)
from minigrad.grader.tester import Mistake, Tester

log_sum_exp = lesson.exercise(
    "LogSumExp",
    difficulty=3,
    minutes=20,
    returns="a Function: y from forward, two gradients from backward",
    needs="engine",
    answers=(
        "minigrad.logsumexp",
        "minigrad.Variable.logsumexp",
        "minigrad.log_softmax",
        "minigrad.Variable.log_softmax",
        "minigrad.softmax",
        "minigrad.Variable.softmax",
        "minigrad.nn.Softmax",
        "minigrad.cross_entropy",
        "minigrad.ops.rows.SoftmaxRow",
        "minigrad.ops.rows.LogSoftmaxRow",
        "minigrad.ops.rows.LogSumExpRow",
        "minigrad.ops.rows.CrossEntropyRow",
    ),
    hints=(
        "exp(1000) is inf, exp(0) is 1. Subtract something from every entry before exp, and add "
        "it again after log. What makes the largest exponent 0?",
        "y = m + log(sum(exp(x - m))), m the largest entry along the axis. In backward, y and dy "
        "lack the axis that x has; mg.unsqueeze puts it back. softmax is exp(x - y).",
        "Keep ctx.axis = axis and save x and y. backward: p = mg.exp(x - mg.unsqueeze(y, "
        "ctx.axis)), and two results: mg.unsqueeze(dy, ctx.axis) times p for x, None for axis.",
    ),
)


def value(x: np.ndarray, axis: int) -> np.ndarray:
    """Return log(sum(exp(x)))."""
    m = x.max(axis=axis, keepdims=True)
    return np.log(np.exp(x - m).sum(axis=axis)) + m.squeeze(axis)


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    """Return exp(x - y)."""
    return np.exp(x - np.expand_dims(value(x, axis), axis))


def slope(x: np.ndarray, dy: np.ndarray, axis: int) -> np.ndarray:
    """Return the gradient."""
    return np.expand_dims(dy, axis) * softmax(x, axis)


def random_case(t: Tester, shape: tuple[int, ...], axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Return x and dy, rounded as messages show them; no two entries of x are equal."""
    grid = np.round(np.arange(-2, 2, 0.1), 1)
    x = t.random.choice(grid, shape, replace=False)
    dy = np.round(t.random.uniform(0.4, 2, value(x, axis).shape), 1)
    return x, dy


def check(t: Tester, x: np.ndarray, dy: np.ndarray, axis: int) -> None:
    """Check value and gradient at x."""
    p, up = softmax(x, axis), np.expand_dims(dy, axis)
    m = x.max(axis=axis)
    check_first(
        t,
        x,
        dy,
        value(x, axis),
        up * p,
        numbers=(axis,),
        values=[
            Mistake("not_added", value(x, axis) - m, "What was subtracted first is added last."),
            Mistake("max", m, "This is the largest entry. Where are the others?"),
            Mistake("mean", value(x, axis) - np.log(x.shape[axis]), "A sum, and not a mean."),
        ],
        gradients=[
            Mistake("dropped_upstream", p, DROPPED),
            Mistake(
                "not_normalised",
                up * np.exp(x - np.expand_dims(m, axis)),
                "Along the axis, dx / dy should add up to 1. What are your exponentials divided "
                "by?",
            ),
            Mistake("one_hot", up * (x == np.expand_dims(m, axis)), "This is the slope of max."),
            Mistake(
                "jacobian",
                p * (up - np.sum(p * up, axis=axis, keepdims=True)),
                "This is the gradient of softmax. Asked for is that of the number before it.",
            ),
        ],
    )


@log_sum_exp.check(points=2)
def one_row(t: Tester) -> None:
    """Value and gradient are right for one row, and backward gives two results."""
    for n in (2, 3):
        check(t, *random_case(t, (n,), 0), 0)


@log_sum_exp.check(points=2)
def any_axis(t: Tester) -> None:
    """Value and gradient are right along any axis of any shape, for two calls in a row, too."""
    for shape, axis in (
        ((2, 3), 1),
        ((2, 2), 1),
        ((2, 3), 0),
        ((3, 2), -1),
        ((1, 3), 1),
        ((3, 1), 1),
        ((2, 3, 2), 1),
        ((2, 1, 3), -1),
        ((2, 3, 2), -3),
        ((0, 3), 1),
        ((3, 0), 0),
    ):
        check(t, *random_case(t, shape, axis), axis)
    # the same shapes, so that the engine accepts even what the other call kept
    x1, x2 = (random_case(t, (2, 2), 0)[0] for _ in range(2))
    for axes in ((1, 1), (0, 1)):
        check_two_calls(t, x1, x2, slope, [[axis] for axis in axes])


@log_sum_exp.check(points=2)
def extremes(t: Tester) -> None:
    """Value and gradient are right and finite for entries from -1000 to 1000."""
    dy = np.round(t.random.uniform(0.5, 2, 1), 1)
    for row in ([1000.0, 999.0], [-1000.0, -1000.0], [-1000.0, 0.0, 1000.0]):
        check(t, np.array([t.random.permutation(row)]), dy, 1)
    check(t, np.array([[1000.0, 998.0], [-1000.0, -1001.0]]), np.array([1.0, 2.0]), 1)


@log_sum_exp.check(points=2)
def second_order(t: Tester) -> None:
    """backward can be differentiated: the second derivative is right, and finite at extremes."""
    for number, (shape, axis) in enumerate((((2,), 0), ((2, 2), 0), ((2, 3), 1))):
        x, dy = random_case(t, shape, axis)
        if number == 2:
            x = np.array([[1000.0, 999.0, -1000.0], [-1000.0, -1000.0, -999.0]])
        v = np.round(t.random.uniform(-2, 2, x.shape), 1)
        p, up = softmax(x, axis), np.expand_dims(dy, axis)
        along = np.sum(p * v, axis=axis, keepdims=True)
        constant = "exp(x - y): both depend on x. Which of the two does your backward treat as a "
        check_second(
            t,
            x,
            dy,
            v,
            up * p * (v - along),
            along.squeeze(axis),
            numbers=(axis,),
            mistakes=[
                Mistake("half_constant", up * p * v, f"{constant}number?"),
                Mistake("half_constant", -up * p * along, f"{constant}number?"),
            ],
        )
