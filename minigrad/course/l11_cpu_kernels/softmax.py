"""A softmax of rows, fused into one kernel."""

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
    with_specials,
    written,
)
from minigrad.grader import samples
from minigrad.grader.compare import agree
from minigrad.grader.tester import Mistake, Tester

k_softmax_fused = lesson.exercise(
    "k_softmax_fused",
    difficulty=3,
    minutes=20,
    returns="out filled by the kernel",
    hints=(
        "NumPy's formula has four steps, and each makes an array. What do you need of a row before "
        "you can write its first element, and how many numbers is that?",
        "For each row three loops over its columns: one finds the largest element, one writes the "
        "exponentials into out and adds them up, one divides. The two results are plain numbers.",
        "largest = -math.inf and total = 0.0 begin anew for each row. In the second loop: e = "
        "math.exp(x[i, j] - largest); out[i, j] = e; total += e. In the third: out[i, j] /= total.",
    ),
)
EXPECTED = "out = the softmax of each row of x"


def softmax(x: np.ndarray, axis: int = 1) -> np.ndarray:
    """Return NumPy's softmax of rows, in float64."""
    x = x.astype(np.float64)
    with np.errstate(all="ignore"):
        e = np.exp(x - x.max(axis=axis, keepdims=True, initial=-np.inf))
        return e / e.sum(axis=axis, keepdims=True)


def ask(t: Tester, x: np.ndarray, before: float = BEFORE) -> Counted:
    """Run the kernel; fail unless each row of out is the softmax of x's, and costs are small."""
    counted = launch(t, {"x": x, "out": empty(x.shape, x.dtype, before)}, EXPECTED)
    right = softmax(x)
    wide = x.astype(np.float64)
    mistakes = []
    if x.size:
        with np.errstate(all="ignore"):
            top = wide.max(axis=1, keepdims=True)
            in_logs = np.exp(wide - (top + np.log(np.exp(wide - top).sum(axis=1, keepdims=True))))
            e = np.exp(wide - wide.max(axis=1, keepdims=True))
            naive = np.exp(wide)
            all_rows = np.exp(wide - wide.max())
            totals = np.cumsum(e.sum(axis=1))[:, None]
            mistakes = [
                Mistake("numerators", e, "A row's elements add up to 1. Who divides?"),
                Mistake("overflow", naive / naive.sum(axis=1, keepdims=True),
                        "exp overflows where x is large. What may be taken from all of a row?"),
                Mistake("all_rows", e / totals,
                        "The rows before are in the total, too. Where does a row's total begin?"),
                Mistake("one_maximum", all_rows / all_rows.sum(axis=1, keepdims=True),
                        "Far below the largest of all rows, exp is 0. Where does a maximum begin?"),
                Mistake("running", e / np.cumsum(e, axis=1),
                        "Each was divided by what had been added up so far. When is total known?"),
                Mistake("columns", softmax(x, axis=0), "That is the softmax of each column."),
                Mistake("in_logs", in_logs,
                        "max + log(sum) has the digits of max, few of the log. Who divides?"),
            ]  # fmt: skip
    rtol, atol = (2e-5, 1e-7) if x.dtype == np.float32 else (1e-12, 1e-300)
    attempt = "Compute a row of two elements by hand: the largest, the exponentials, their sum."
    if np.isnan(right).any():
        attempt = (
            "A row with a nan, with inf or of -inf alone is nan in NumPy: the sum is. A row that "
            "has finite numbers beside -inf is not. Which line makes an exception?"
        )
        if (np.isnan(counted.out) & ~np.isnan(right)).any():
            attempt = (
                "-inf beside finite numbers has no share: their row is not nan. Which line "
                "subtracts -inf from -inf?"
            )
    elif np.abs(x).max(initial=0.0) > 100:
        attempt = (
            "exp only sees x - max, which is 0 at most. Of how many elements is the maximum, with "
            "what does it begin, and is x still what it was?"
        )
        if agree(counted.out, right, rtol=rtol, atol=1e-12):
            attempt = (
                "The large elements are right, the small ones not: exp(-100) is 4e-44, exp(-inf) "
                "is 0. Is the exponent x - max, and what bounds it, or is added to what it gives?"
            )
    written(t, counted, right, attempt, mistakes, rtol=rtol, atol=atol, before=before)
    no_temporaries(t, counted)
    return counted


@k_softmax_fused.check(points=2)
def rows(t: Tester) -> None:
    """Each row of out is the softmax of a row of x; matrices may be empty."""
    for shape in ((2, 3), (1, 5), (4, 1), (3, 8), (0, 3), (3, 0)):
        ask(t, samples.numbers(t.random, shape, "float32"))


@k_softmax_fused.check(points=2, only_with=("rows",))
def far_from_zero(t: Tester) -> None:
    """Rows of large and of very different numbers are right; -inf has no share, nan takes all."""
    x = samples.numbers(t.random, (3, 5), "float32")
    for level in (900, -900, 200, 30000):
        ask(t, x + np.float32(level))
    ask(t, x + np.array([[2000], [0], [-2000]], np.float32))
    for column in (0, 2, 4):
        x = samples.numbers(t.random, (3, 5), "float32")
        x[0, column], x[1, column], x[2, column] = -np.inf, np.nan, 1000
        ask(t, x)
    inf, nan = np.inf, np.nan
    ask(t, np.array([[-inf, -inf], [inf, 1], [1, inf], [nan, inf], [2, 2]], np.float32))
    ask(t, np.array([[nan], [inf], [-inf], [2]], np.float32))
    ask(t, np.array([[1e19, 0], [-1e19, 0]], np.float32))  # no int of 64 bits is as large


@k_softmax_fused.check(points=2, only_with=("rows",))
def any_strides(t: Tester) -> None:
    """They are right in float64, for views: reversed, every second element, transposed."""
    x = samples.numbers(t.random, (4, 6))
    for view in laid_out(x):
        ask(t, view)
    for before in (np.nan, np.inf):
        ask(t, x, before)
    ask(t, next(laid_out(with_specials(t, x))))
    # close ones; exp(-740) has few digits left, if nothing is taken off; 1e16 + log(2) is 1e16
    for row in ([0.5, 0.4995], [-499.0, -740.0], [1e16, 1e16], [-1e17, -1e17]):
        ask(t, np.array([row]))
    x[:2] *= 100
    x[2, t.fixed.integers(6)] = -np.inf
    ask(t, next(laid_out(x)))


@k_softmax_fused.check(points=2, only_with=("rows",))
def costs(t: Tester) -> None:
    """No array is made, and each element takes 5 accesses at most."""
    for shape in ((2, 50), (3, 7)):
        x = samples.numbers(t.random, shape, "float32")
        counted = ask(t, x)
        made = counted.reads["x"] + counted.reads["out"] + counted.writes["out"]
        made += counted.elsewhere
        if made > 5 * x.size:
            attempt = (
                "Read for the maximum, read for the exponential, written, and once more for the "
                "division. Which line adds to that? What can wait in a plain number?"
            )
            got = f"{made / x.size:.3g} for an element"
            parts = f"{counted.reads['x']} reads of x, {counted.reads['out']} reads and "
            got += f": {parts}{counted.writes['out']} writes of out for {x.size} elements"
            t.fail("accesses", "5 accesses for an element at most", got, attempt)
