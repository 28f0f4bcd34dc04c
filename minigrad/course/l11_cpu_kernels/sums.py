"""A sum along either axis, in the order in which the matrix lies in memory."""

from __future__ import annotations

import numpy as np

from minigrad.course.l11_cpu_kernels import lesson
from minigrad.course.l11_cpu_kernels.launching import (
    BEFORE,
    Counted,
    empty,
    laid_out,
    launch,
    no_temporaries,
    watch,
    with_specials,
    written,
)
from minigrad.grader import samples
from minigrad.grader.tester import Mistake, Tester

k_sum_axis = lesson.exercise(
    "k_sum_axis",
    difficulty=3,
    minutes=25,
    returns="out filled by the kernel",
    hints=(
        "Take a matrix of 3 rows and 2 columns, on paper, row after row. In which order do you "
        "read the six numbers for a sum along axis 1, and in which for one along axis 0?",
        "Along axis 0, out has a place for each column: begin with zeros, and add row after row "
        "into all of them. Which of the two strides belongs to the inner loop, and when is it the "
        "other way round?",
        "Write zeros into out. If abs(x.strides[0]) >= abs(x.strides[1]), the loop over rows is "
        "the outer one, else the loop over columns. In both, out[j] += x[i, j] for axis 0, and "
        "out[i] += x[i, j] for axis 1.",
    ),
)
EXPECTED = "out = the sum of x along the axis"
INF = np.inf
# of each two infinities, the sum along both axes, with numbers in between
INFINITE = np.array([[INF, 1, -INF, INF], [2, 3, 1, 1], [-INF, 1, 1, INF], [1, INF, 1, INF]])


def ask(t: Tester, x: np.ndarray, axis: int, before: float = BEFORE) -> Counted:
    """Run the kernel; fail unless out, which held `before`, holds the sums."""
    out = empty(x.shape[1 - axis], x.dtype, before)
    counted = launch(t, {"x": x, "axis": axis, "out": out}, EXPECTED)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        right = wide.sum(axis=axis)
        mistakes = []
        if x.shape[axis] <= x.shape[1 - axis]:  # where there are fewer, the rest stays 0
            other = np.zeros(x.shape[1 - axis])
            other[: x.shape[axis]] = wide.sum(axis=1 - axis)
            mistakes = [Mistake("axis", other, "That is the sum along the other axis.")]
        if x.size:
            last = wide.take(-1, axis=axis)
            text = "That is one element of each. Who adds the others to it?"
            mistakes += [Mistake("last", last, text)]
        if not np.isfinite(x).all():
            clean = np.where(np.isfinite(wide), wide, 0).sum(axis=axis)
            text = "nan and inf are numbers like any other: they go into the sum."
            mistakes += [Mistake("skipped", clean, text)]
    rtol, atol = (1e-4, 1e-4) if x.dtype == np.float32 else (1e-9, 1e-9)
    attempt = "Which elements of x are in this sum? Follow the loops for a matrix (3, 5)."
    if not x.size:
        attempt = "A sum of no elements is 0. Who writes it, where no element of x is read?"
    elif not np.isfinite(x).all():
        attempt = (
            "A sum with nan is nan, one with inf is inf, one with inf and -inf is nan. Which line "
            "leaves one out, or subtracts where a plain sum only adds?"
        )
    written(t, counted, right, attempt, mistakes, rtol=rtol, atol=atol, before=before)
    no_temporaries(t, counted)
    return counted


def lines_of(x: np.ndarray) -> int:
    """Return how many lines of memory hold elements of a matrix that begins with a line."""
    down, across = map(abs, x.strides)
    places = np.add.outer(np.arange(len(x)) * down, np.arange(x.shape[1]) * across)
    return np.unique(places // 64).size


@k_sum_axis.check(points=2)
def both_axes(t: Tester) -> None:
    """Sums along both axes are right, for empty matrices, too."""
    for axis in (0, 1):
        for shape in ((3, 3), (2, 2), (4, 7), (5, 1), (1, 6), (0, 3), (3, 0)):
            ask(t, samples.numbers(t.random, shape, "float32"), axis)


@k_sum_axis.check(points=2, only_with=("both_axes",))
def any_strides(t: Tester) -> None:
    """They are right for views: reversed, every second element, transposed; with nan and inf."""
    x = samples.numbers(t.random, (6, 4))
    for axis in (0, 1):
        for view in laid_out(x):
            ask(t, view, axis)
        for before in (np.nan, np.inf):
            ask(t, x, axis, before)
        ask(t, samples.numbers(t.random, (4, 40))[:, ::10], axis)  # further apart than a line
        ask(t, next(laid_out(with_specials(t, x))), axis)
        ask(t, INFINITE, axis)
        ask(t, with_specials(t, samples.numbers(t.random, (4, 5), "float32")), axis)


@k_sum_axis.check(points=3, only_with=("both_axes",))
def along_memory(t: Tester) -> None:
    """No line of x is fetched twice, whichever the axis is and however x lies."""
    tall = samples.numbers(t.random, (150, 16), "float32")
    wide = samples.numbers(t.random, (16, 150), "float32")
    spaced = samples.numbers(t.random, (150, 32), "float32")[:, ::2]
    narrow = samples.numbers(t.random, (100, 7))  # its rows are shorter than a line
    for x in (tall, wide.T, tall[::-1], wide.T[:, ::-1], spaced, narrow.T):
        for axis in (0, 1):
            out = empty(x.shape[1 - axis], x.dtype)
            counted = watch(t, {"x": x, "axis": axis, "out": out})
            least = lines_of(x)
            if counted.elsewhere or counted.reads["x"] > x.size:
                attempt = "Each element goes into one sum. Which line reads it again?"
                got = f"{counted.reads['x']} reads"
                t.fail("reads", f"each element of x read once: {x.size} reads", got, attempt)
            if counted.fetched["x"] > least + 2:
                attempt = (
                    "Between two elements of a line, the loops visit too many other lines. Which "
                    "stride is the small one, and which loop goes along it?"
                )
                if 1.5 * least < counted.fetched["x"] <= x.size / 2:  # some in a row, not all
                    attempt = (
                        "The loops leave a line before all of it is read, and come back to it much "
                        "later. How many elements does a line hold here, how many do they read?"
                    )
                elif (back := min(x.strides)) < 0:
                    attempt = (
                        f"A stride of {back} bytes is a step of {-back}, backwards. Which of the "
                        "two steps is the small one, and which loop goes along it?"
                    )
                got = f"{counted.fetched['x']} lines"
                t.fail("across", f"{least} lines of x fetched, each once", got, attempt)
