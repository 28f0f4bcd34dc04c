"""An argument that NumPy's function takes, and Numba's does not."""

from __future__ import annotations

import numpy as np

from minigrad.course.l12_numba_errors import lesson
from minigrad.course.l12_numba_errors.common import ODD, compare, ends_well, numbers
from minigrad.grader.tester import Tester

center_rows = lesson.exercise(
    "center_rows",
    difficulty=2,
    minutes=10,
    returns="an array, each row of x less its mean",
    hints=(
        "Most of the message lists what Numba has tried. Near its end it says which argument is "
        "not known. Without that argument, what shape has the sum?",
        "Without keepdims, the means have shape (n,), and `x - means` goes along the *last* axis: "
        "for a square x without any error. A loop over the rows needs no such tricks.",
        "out = np.empty(x.shape), then for each i: out[i] = x[i] - x[i].mean(). Return out.",
    ),
)


@center_rows.mistake("across", "The means now go along the columns. Which mean meets x[0, 1]?")
def without_keepdims(x):  # noqa: D103
    return x - x.sum(axis=1) / x.shape[1]


@center_rows.mistake("columns", "That is the mean of each column. Which axis is a row?")
def of_columns(x):  # noqa: D103
    return x - x.sum(axis=0) / x.shape[0]


@center_rows.mistake("whole", "That is one mean for all of x. How many are wanted?")
def of_all(x):  # noqa: D103
    return x - x.mean()


@center_rows.mistake("sum", "The sum is subtracted. What is still missing for a mean?")
def undivided(x):  # noqa: D103
    return x - x.sum(axis=1).reshape(-1, 1)


@center_rows.mistake("divided", "By how many numbers is the sum of a row divided?")
def by_rows(x):  # noqa: D103
    return x - x.sum(axis=1).reshape(-1, 1) / x.shape[0]


@center_rows.mistake("transposed", "Rows have become columns. Transpose the result once more.")
def on_its_side(x):  # noqa: D103
    return (x - x.sum(axis=1).reshape(-1, 1) / x.shape[1]).T


@center_rows.mistake("first", "The mean of row 0 is right for row 0. And for the others?")
def mean_of_the_first(x):  # noqa: D103
    return x - x[0].mean() if len(x) else x.copy()


def centred(x: np.ndarray) -> np.ndarray:
    """Return x less the means of its rows."""
    return x - x.mean(axis=1, keepdims=True)


ATTEMPT = (
    "Take the first row with a wrong number: is it written, which mean is subtracted, and is "
    "anything else done to it?"
)


def ask(t: Tester, *shapes: tuple[int, int]) -> None:
    """Fail unless x of these shapes is centred."""
    for shape in shapes:
        x = numbers(t, *shape)
        compare(t, centred(x), x, attempt=ATTEMPT)


@center_rows.check(points=1, only_with=("any_shape",))
def square(t: Tester) -> None:
    """It compiles, and centres the rows of square arrays."""
    ask(t, (3, 3), (2, 2), (4, 4))


@center_rows.check(points=3)
def any_shape(t: Tester) -> None:
    """It centres the rows of arrays of any shape; x stays as it was."""
    ask(t, (3, 3), (2, 2), (2, 5), (6, 3), (1, 4), (5, 1), (1, 1))
    no_rows = "Without rows there is nothing to do."
    compare(t, np.zeros((0, 3)), np.zeros((0, 3)), attempt=no_rows)
    x = numbers(t, 3, 2)
    x[1, 1] = np.nan
    compare(t, centred(x), x, attempt=ODD)
    x = numbers(t, 2, 3)
    ends_well(t, centred(x), x)
