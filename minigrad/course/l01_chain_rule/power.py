"""The backward function of a power with a whole exponent."""

from __future__ import annotations

import numpy as np

from minigrad.course.l01_chain_rule import lesson
from minigrad.course.l01_chain_rule.common import BY_DIFFERENCES, DROPPED, check_linear
from minigrad.grader.gradients import check_gradients
from minigrad.grader.samples import SHAPES, numbers, views
from minigrad.grader.tester import Tester

pow_backward = lesson.exercise(
    "pow_backward",
    difficulty=2,
    minutes=10,
    returns="one array: dx",
    hints=(
        "x ** n has the derivative n * x ** (n - 1). Which x make trouble, and for which n?",
        "n = 0: the output is 1 whatever x is. What is the slope of a constant? "
        "And what does 0.0 ** -1 give?",
        "Treat n = 0 by itself, with zeros of dy's shape. Never divide by x.",
    ),
)


def powered(x, n):
    """Return x to the n, 1 for a negative n."""
    return x ** max(n, 0)


@pow_backward.mistake("dropped_upstream", DROPPED)
def _(dy, x, n):
    return n * powered(x, n - 1)


@pow_backward.mistake("no_factor", "How does the slope of x ** 3 compare with x ** 2?")
def _(dy, x, n):
    return dy * powered(x, n - 1)


@pow_backward.mistake("no_decrease", "The slope of x ** 2 is no parabola. What power?")
def _(dy, x, n):
    return dy * n * x**n


@pow_backward.mistake("off_by_one", "For n = 1 the slope is 1. And yours?")
def _(dy, x, n):
    return dy * (n - 1) * powered(x, n - 1)


@pow_backward.mistake("absolute", "It is right where x > 0. Which step loses the sign of x?")
def _(dy, x, n):
    return dy * n * np.abs(x) ** max(n - 1, 0)


@pow_backward.mistake("nan")
def _(dy, x, n):
    return dy * n * x**n / x


@pow_backward.mistake("nan")
def _(dy, x, n):
    return dy * n * x ** (n - 1.0)


@pow_backward.mistake("nan")
def _(dy, x, n):
    return dy * n * np.exp((n - 1) * np.log(x))


def check_pow(t: Tester, x: np.ndarray, n: int) -> None:
    """Ask pow_backward for its gradient and check it."""
    dy = numbers(t.random, x.shape)
    got = t.call("pow_backward", dy, x, n)
    check_gradients(
        t,
        (got,),
        lambda x: x**n,
        (x,),
        dy,
        names=("dx",),
        attempt=BY_DIFFERENCES,
        mistakes=t.mistakes(dy, x, n),
    )


@pow_backward.check(points=1)
def positive_x(t: Tester) -> None:
    """It is right for positive x and n from 2 to 5."""
    for n, shape in zip((2, 3, 5, 4, 2, 6, 3, 4, 2, 3), SHAPES, strict=True):
        check_pow(t, numbers(t.random, shape, low=0.2), n)


@pow_backward.check(points=1)
def negative_x(t: Tester) -> None:
    """It is right for negative x."""
    for n, x in zip((2, 3, 4), views(numbers(t.random, (2, 3), low=0.2)), strict=True):
        check_pow(t, -x, n)
    for n in (5, 6, 7, 12):
        check_pow(t, -numbers(t.random, (3,), low=0.2), n)


@pow_backward.check(points=1)
def zero_and_constants(t: Tester) -> None:
    """It is right where x is 0, and for n = 1 and n = 0."""
    for n in (2, 1, 0, 3):
        for shape in SHAPES:
            x = numbers(t.random, shape)
            x[np.abs(x) < 1] = 0.0
            check_pow(t, x, n)
    dy, x = np.array([1.5, -0.5, 0.0, 2.0]), np.array([1e-4, 0.0, 2.0, -1.5])
    for n in (0, 1, 2, 4, 20):
        check_linear(t, ("dx",), (n * x ** max(n - 1, 0),), dy, x, n)
