"""The backward function of a product."""

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
from minigrad.grader.message import show
from minigrad.grader.samples import alike, numbers
from minigrad.grader.tester import Tester

mul_backward = lesson.exercise(
    "mul_backward",
    difficulty=1,
    minutes=5,
    returns="two arrays: da, db",
    hints=(
        "Hold b still and move a by a little: by how much does a * b move? "
        "That is the local derivative with respect to a.",
        "Each of the two gradients is dy times a local derivative, and each local derivative is "
        "one of the factors.",
        "da is dy times the other factor, b; db is dy times a. Return them in this order.",
    ),
)


ORDER = "The gradient of a comes first. Which factor belongs to it?"


@mul_backward.mistake("dropped_upstream", DROPPED)
def _(dy, a, b):
    return b, a


@mul_backward.mistake("swapped", ORDER)
def _(dy, a, b):
    return dy * a, dy * b


@mul_backward.mistake("swapped", ORDER)
def _(dy, a, b):
    return a, b


@mul_backward.mistake("added", "These are the gradients of a + b. And of a product?")
def _(dy, a, b):
    return dy, dy


@mul_backward.mistake("added", MULTIPLIED)
def _(dy, a, b):
    return dy + b, dy + a


@mul_backward.mistake("count")
def _(dy, a, b):
    return dy * b


@mul_backward.mistake("changed_input")
def _(dy, a, b):
    da = dy * b
    dy *= a
    return da, dy


@mul_backward.mistake("shape")
def _(dy, a, b):
    return (dy * b).sum(), (dy * a).sum()


@mul_backward.mistake("none")
def _(dy, a, b):
    _ = dy * b, dy * a


def check_mul(t: Tester, dy: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """Ask mul_backward for its two gradients and check them."""
    got = t.call("mul_backward", dy, a, b)
    da, db = t.pair(got, 2, "da, db")
    check_gradients(
        t,
        (da, db),
        np.multiply,
        (a, b),
        dy,
        names=("da", "db"),
        attempt=BY_DIFFERENCES,
        mistakes=t.mistakes(dy, a, b),
    )


@mul_backward.check(points=1)
def with_dy_of_one(t: Tester) -> None:
    """It is right where dy is 1 everywhere."""
    for a, b in alike(t.random, 2, dtypes=DTYPES):
        check_mul(t, np.ones_like(a), a, b)


@mul_backward.check(points=1)
def with_any_dy(t: Tester) -> None:
    """It is right for any dy, of any shape."""
    for dy, a, b in alike(t.random, 3, dtypes=DTYPES):
        check_mul(t, dy, a, b)
    dy, a, b = (numbers(t.random, (3,)) for _ in range(3))
    dy[1] = 0.0
    check_mul(t, dy, a, b)
    check_linear(t, ("da", "db"), (b, a), dy, a, b)


@mul_backward.check(points=1, only_with=("with_any_dy",))
def zeros_and_squares(t: Tester) -> None:
    """It is right where factors are 0, where both are one array, and for arrays that come again."""
    dy, x = numbers(t.random, (4,)), numbers(t.random, (4,))
    with_zeros = x * [0.0, 1.0, 0.0, 1.0]
    check_mul(t, dy, with_zeros, with_zeros[::-1])
    check_mul(t, dy, x, x)
    arrays, others = ([numbers(t.random, (3,)) for _ in range(3)] for _ in range(2))
    shown = ", ".join(map(show, others))
    given = f"mul_backward({shown}), three arrays that had other values in a call before"
    _, again = t.drive("called_again", "mul_backward", arrays, others, given=given)
    dy, a, b = others
    for got, right, name in zip(
        t.pair(again, 2, "da, db"), (dy * b, dy * a), ("da", "db"), strict=True
    ):
        attempt = "The values of this call count. What do you keep from the call before?"
        t.close(got, right, rtol=1e-9, atol=0, attempt=attempt, what=name)
