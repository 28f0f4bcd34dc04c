"""The backward function of tanh, from its output."""

from __future__ import annotations

import numpy as np

from minigrad.course.l01_chain_rule import lesson
from minigrad.course.l01_chain_rule.common import (
    BY_DIFFERENCES,
    DROPPED,
    DTYPES,
    MULTIPLIED,
    check_linear,
)
from minigrad.grader.gradients import check_gradients
from minigrad.grader.samples import alike
from minigrad.grader.tester import Tester

tanh_backward = lesson.exercise(
    "tanh_backward",
    difficulty=2,
    minutes=8,
    returns="one array: dx",
    hints=(
        "The derivative of tanh(x) can be written with tanh(x) alone, without x.",
        "d tanh(x) / dx = 1 - tanh(x) ** 2. You are given y, which is tanh(x) already.",
        "dx is dy times (1 - y * y).",
    ),
)


STEEP = "Can tanh be steeper than the line y = x? Put y = 0 and y = 0.9 into yours."


@tanh_backward.mistake("dropped_upstream", DROPPED)
def _(dy, y):
    return 1 - y**2


@tanh_backward.mistake("twice", "y is tanh(x) already. What does your function do to it once more?")
def _(dy, y):
    return dy * (1 - np.tanh(y) ** 2)


@tanh_backward.mistake("sigmoid", "That is another function's rule: the sigmoid's.")
def _(dy, y):
    return dy * y * (1 - y)


@tanh_backward.mistake("no_square", "Near x = 0 this is right. And far from 0?")
def _(dy, y):
    return dy * (1 - y)


@tanh_backward.mistake("plus", STEEP)
def _(dy, y):
    return dy * (1 + y**2)


@tanh_backward.mistake("plus", STEEP)
def _(dy, y):
    return 1 + y**2


@tanh_backward.mistake(
    "roles", "Which of the two is tanh(x), and which arrives? They have changed places."
)
def _(dy, y):
    return (1 - dy**2) * y


@tanh_backward.mistake("added", MULTIPLIED)
def _(dy, y):
    return dy + (1 - y**2)


@tanh_backward.mistake(
    "brackets", "Which of the two is computed first here, the product or the difference?"
)
def _(dy, y):
    return dy - y**2


@tanh_backward.mistake("sign", "tanh rises everywhere. And your slope?")
def _(dy, y):
    return dy * (y**2 - 1)


@tanh_backward.mistake("inverse", "This is the slope of the inverse function.")
def _(dy, y):
    return dy / (1 - y**2)


@tanh_backward.mistake("value")
def _(dy, y):
    return dy * (1 - y**3)


@tanh_backward.check(points=3)
def from_the_output(t: Tester) -> None:
    """It is right for any x, of any shape, given only tanh(x), far from 0 as well."""
    far = np.array([1000.0, 2.0, 3.0, -2.0, 0.0]), np.array([20.0, -20.0, 4.0, 0.0, 1.5])
    flat = np.array([2.0, 3.0]), np.array([20.0, -20.0])  # tanh(20.0) is 1.0
    for dy, x in (*alike(t.random, 2, dtypes=DTYPES), far, flat):
        y = np.tanh(x)
        got = t.call("tanh_backward", dy, y)
        check_gradients(
            t,
            (got,),
            np.tanh,
            (x,),
            dy,
            names=("dx",),
            attempt=BY_DIFFERENCES,
            mistakes=t.mistakes(dy, y),
        )
    dy, y = far[0], np.tanh([20.0, -3.0, 0.0, -6.0, 0.2])
    check_linear(t, ("dx",), (1 - y * y,), dy, y)
