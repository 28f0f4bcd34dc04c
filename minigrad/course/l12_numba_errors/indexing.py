"""An index that is a float."""

from __future__ import annotations

import numpy as np

from minigrad.course.l12_numba_errors import lesson
from minigrad.course.l12_numba_errors.common import ODD, compare, ends_well, numbers
from minigrad.grader.tester import Tester

median_sorted = lesson.exercise(
    "median_sorted",
    difficulty=1,
    minutes=5,
    returns="the median, a float",
    hints=(
        "getitem is what Python calls x[k]. The message names the types of x and of k. Which of "
        "them can be no index?",
        "`/` gives a float, in Python and in Numba, even where the result is whole. Which division "
        "gives an int?",
        "k = n // 2. For an odd n that is the middle: the elements are numbered from 0.",
    ),
)


@median_sorted.mistake(
    "beyond", "Count on your fingers: of 5 elements, which has two on each side?"
)
def rounded_up(x):  # noqa: D103
    n = len(x)
    k = int(np.ceil(n / 2))
    if n % 2 == 1:
        return x[k] if k < n else x[n - 1]
    return (x[k - 1] + x[k]) / 2.0


@median_sorted.mistake("lower", "For an even number of elements: which two are in the middle?")
def one_before(x):  # noqa: D103
    n = len(x)
    k = (n - 1) // 2
    if n % 2 == 1:
        return x[k]
    return (x[k - 1] + x[k]) / 2.0


@median_sorted.mistake("rounded", "What is round(1.5), and what is round(2.5)? Print both.")
def to_even(x):  # noqa: D103
    n = len(x)
    k = round(n / 2)
    if n % 2 == 1:
        return x[min(k, n - 1)]
    return (x[k - 1] + x[k]) / 2.0


@median_sorted.mistake(
    "upper", "For an even n that is one of the two in the middle. And the other?"
)
def one_of_two(x):  # noqa: D103
    return x[len(x) // 2]


@median_sorted.mistake("halved", "x[k - 1] + x[k] / 2.0 divides only one of them by 2.")
def half_of_one(x):  # noqa: D103
    n = len(x)
    k = n // 2
    return x[k] if n % 2 == 1 else x[k - 1] + x[k] / 2.0


@median_sorted.mistake("floored", "The right two, but // drops what is behind the point.")
def floored(x):  # noqa: D103
    n = len(x)
    k = n // 2
    return x[k] if n % 2 == 1 else (x[k - 1] + x[k]) // 2.0


def ask(t: Tester, lengths: tuple[int, ...]) -> None:
    """Fail unless the medians of arrays of these lengths are right."""
    for n in lengths:
        x = np.sort(numbers(t, n) + np.arange(n) * 9)  # no two are the same
        attempt = f"Write down the numbers of the elements, 0 to {n - 1}. Which are in the middle?"
        compare(t, float(np.median(x)), x, attempt=attempt)


@median_sorted.check(points=1, only_with=("any_length",))
def few(t: Tester) -> None:
    """It compiles, and finds the middle of a few numbers."""
    ask(t, (3, 5, 7, 4, 6))


@median_sorted.check(points=2)
def any_length(t: Tester) -> None:
    """It finds the middle of one number, of two, and of many."""
    ask(t, (1, 2, 9, 11, 10, 12, int(t.fixed.integers(20, 40)), int(t.fixed.integers(40, 60))))
    inf = np.inf
    for few in ([-inf, -inf], [-inf, 1.5, inf], [2.5, inf, inf, inf]):
        x = np.array(few)
        compare(t, float(np.median(x)), x, attempt=ODD)
    x = np.sort(numbers(t, 4))
    ends_well(t, float(np.median(x)), x)
