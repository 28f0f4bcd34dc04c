"""The backward function of a power with a whole exponent."""

from __future__ import annotations

import numpy as np

from minigrad.course.l01_chain_rule.common import BY_DIFFERENCES, DROPPED
from minigrad.course.l01_chain_rule.lesson import lesson
from minigrad.grader.gradients import check_gradients
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


def check_pow(t: Tester, x: np.ndarray, n: int) -> None:
    """Ask pow_backward for its gradient and check it."""
    dy = np.round(t.random.uniform(-2, 2, x.shape), 2)
    got = t.call("pow_backward", dy, x, n)
    with np.errstate(all="ignore"):
        powered = x ** max(n - 1, 0)
        wrong = [
            ("dropped_upstream", (n * powered,), DROPPED),
            ("no_factor", (dy * powered,), "How does the slope of x ** 3 compare with x ** 2?"),
            ("no_decrease", (dy * n * x**n,), "The slope of x ** 2 is no parabola. What power?"),
            ("off_by_one", (dy * (n - 1) * powered,), "For n = 1 the slope is 1. And yours?"),
            (
                "absolute",
                (dy * n * np.abs(x) ** max(n - 1, 0),),
                "It is right where x > 0. Which step loses the sign of x?",
            ),
        ]
    check_gradients(
        t,
        (got,),
        lambda x: x**n,
        (x,),
        dy,
        names=("dx",),
        attempt=BY_DIFFERENCES,
        mistakes=wrong,
    )


@pow_backward.check(points=1)
def positive_x(t: Tester) -> None:
    """It is right for positive x and n from 2 to 5."""
    for n in t.random.permutation(np.arange(2, 6))[:3]:
        check_pow(t, np.round(t.random.uniform(0.2, 2, 4), 2), int(n))


@pow_backward.check(points=1)
def negative_x(t: Tester) -> None:
    """It is right for negative x."""
    for n in (2, 3, 4):
        check_pow(t, -np.round(t.random.uniform(0.2, 2, 4), 2), n)


@pow_backward.check(points=1)
def zero_and_constants(t: Tester) -> None:
    """It is right where x is 0, and for n = 1 and n = 0."""
    for n in (2, 1, 0, 3):
        x = np.round(t.random.uniform(-2, 2, 4), 2)
        x[t.random.integers(4)] = 0.0
        check_pow(t, x, n)
