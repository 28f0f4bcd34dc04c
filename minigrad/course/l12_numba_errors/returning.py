"""Two returns with values of different types."""

from __future__ import annotations

import numpy as np

from minigrad.course.l12_numba_errors import lesson
from minigrad.course.l12_numba_errors.common import compare, ends_well, numbers
from minigrad.grader.tester import Tester

moving_mean = lesson.exercise(
    "moving_mean",
    difficulty=2,
    minutes=8,
    returns="an array of means",
    hints=(
        "The message lists the types that the function would return, and below it each return "
        "with its line. What do callers do with a result that is sometimes a number?",
        "Where there are no means, the docstring wants an array, too. How many elements has it?",
        "return np.empty(0). It is an array of float64 without elements, so all returns have one "
        "type.",
    ),
)


@moving_mean.mistake("zero", "An array with a zero says that there is one mean, and that it is 0.")
def a_zero(x, width):  # noqa: D103
    if width > len(x):
        return np.zeros(1)
    return windows(x, width)


@moving_mean.mistake(
    "swapped", "With the longer one second, np.convolve slides x along the weights. Who asks first?"
)
def convolved(x, width):  # noqa: D103
    return np.convolve(x, np.ones(width) / width, mode="valid") if len(x) else np.empty(0)


@moving_mean.mistake("none", "")
def nothing(x, width):  # noqa: D103
    if width > len(x):
        return None
    return windows(x, width)


@moving_mean.mistake("unchanged", "With fewer than `width` numbers there is no mean to give.")
def as_it_is(x, width):  # noqa: D103
    if width > len(x):
        return x.copy()
    return windows(x, width)


@moving_mean.mistake("equal", "With exactly `width` numbers there is one mean. Who leaves early?")
def one_too_few(x, width):  # noqa: D103
    if width >= len(x):
        return np.empty(0)
    return windows(x, width)


@moving_mean.mistake("shrunk", "A mean of fewer than `width` numbers is none of those wanted.")
def narrower(x, width):  # noqa: D103
    return windows(x, min(width, len(x))) if len(x) else np.empty(0)


@moving_mean.mistake("last", "The last window is missing. How many fit into n numbers?")
def without_the_last(x, width):  # noqa: D103
    return windows(x, width)[:-1]


@moving_mean.mistake("begins", "The first window is missing: that of the numbers 0 to width - 1.")
def without_the_first(x, width):  # noqa: D103
    return windows(x, width)[1:]


@moving_mean.mistake("three", "The width is an argument. Who fixes it at 3?")
def of_three(x, width):  # noqa: D103
    return windows(x, 3)


@moving_mean.mistake("sums", "These are sums of `width` neighbours. What is missing for a mean?")
def undivided(x, width):  # noqa: D103
    return windows(x, width) * width if width <= len(x) else np.empty(0)


def windows(x, width):
    """Return the mean of each `width` neighbours; width is at most len(x)."""
    return np.array([x[k : k + width].mean() for k in range(len(x) - width + 1)])


def ask(t: Tester, *sizes: tuple[int, int]) -> None:
    """Fail unless the moving means for these (length, width) are right."""
    for n, width in sizes:
        x = numbers(t, n)
        right = windows(x, width) if width <= n else np.empty(0)
        window = f"x[k : k + {width}]" if width > 1 else "x[k]"
        attempt = (
            "Take the first wrong mean, at k. Which numbers are in it, and how much does each "
            f"count? {window} by hand."
        )
        compare(t, right, x, width, attempt=attempt)


@moving_mean.check(points=1, only_with=("any_width",))
def few(t: Tester) -> None:
    """It compiles, and computes the means of a few neighbours."""
    ask(t, (5, 2), (4, 3), (2, 3), (3, 5))


@moving_mean.check(points=2)
def any_width(t: Tester) -> None:
    """It does so for any width: 1, all numbers, and more than there are."""
    ask(t, (6, 1), (6, 6), (1, 1), (3, 3), (9, 4), (6, 7), (4, 9), (1, 2), (0, 1), (0, 3))
    for width in (1, 2):
        x = numbers(t, 5)
        ends_well(t, windows(x, width), x, width)
