"""A name that is an int first, and an array afterwards."""

from __future__ import annotations

import numpy as np

from minigrad.course.l12_numba_errors import lesson
from minigrad.course.l12_numba_errors.common import ODD, compare, ends_well, numbers
from minigrad.grader.tester import Tester

sum_rows = lesson.exercise(
    "sum_rows",
    difficulty=1,
    minutes=5,
    returns="an array with a sum for each column",
    hints=(
        "The message names a variable, and two types that it would have. Where does it get each?",
        "`total` begins as an int, and in the loop a row is added to it: the sum is an array. It "
        "should be an array from the beginning, as long as a row.",
        "total = np.zeros(x.shape[1])",
    ),
)


@sum_rows.mistake("twice", "Which row is in the sum before the loop begins, and again in it?")
def from_first_row(x):  # noqa: D103
    total = x[0] + 0.0
    for i in range(x.shape[0]):
        total = total + x[i]
    return total


@sum_rows.mistake("axis", "These are sums of rows. The docstring wants a sum for each column.")
def across(x):  # noqa: D103
    return x.sum(axis=1)


@sum_rows.mistake("single", "That is the sum of all numbers. How many sums are wanted?")
def all_of_it(x):  # noqa: D103
    return np.zeros(x.shape[1]) + x.sum()


ATTEMPT = "Take the first column: what does its sum begin with, and what is added to it?"


@sum_rows.check(points=1, only_with=("any_shape",))
def small(t: Tester) -> None:
    """It compiles, and adds up a few rows."""
    for n, m in ((2, 2), (2, 3), (4, 2)):
        x = numbers(t, n, m)
        compare(t, x.sum(axis=0), x, attempt=ATTEMPT)


@sum_rows.check(points=2)
def any_shape(t: Tester) -> None:
    """It adds up any number of rows, none as well."""
    for n, m in ((1, 5), (3, 1), (7, 4)):
        x = numbers(t, n, m)
        compare(t, x.sum(axis=0), x, attempt=ATTEMPT)
    x = numbers(t, 3, 4)
    x[0, 0], x[1, 1], x[2, 2] = np.inf, -np.inf, np.nan
    compare(t, x.sum(axis=0), x, attempt=ODD)
    for n in (1, 3):
        x = numbers(t, n, 4)
        ends_well(t, x.sum(axis=0), x)
    no_rows = (
        "Without a row, each sum is 0. Who writes it? Compiled code notices neither an index "
        "outside nor an element that nobody has written."
    )
    got = t.drive(
        "without_rows", "sum_rows", numbers(t, 2, 4), given="sum_rows(x), x of shape (0, 4)"
    )
    t.close(got, np.zeros(4), attempt=no_rows)
    no_columns = "Without a column there is no sum at all."
    compare(t, np.zeros(0), np.zeros((3, 0)), attempt=no_columns)
