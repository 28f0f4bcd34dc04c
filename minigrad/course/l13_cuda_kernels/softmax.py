"""A softmax a row: two reductions in one shared array."""

from __future__ import annotations

import numpy as np

from minigrad.course.l13_cuda_kernels import lesson
from minigrad.course.l13_cuda_kernels.launching import (
    Counted,
    empty,
    entry,
    floats,
    in_float32,
    in_rounds,
    in_turn,
    launch,
    written,
)
from minigrad.grader.tester import Mistake, Tester

k_softmax_row = lesson.exercise(
    "k_softmax_row",
    difficulty=4,
    minutes=25,
    returns="out filled by the kernel",
    hints=(
        "It is k_block_sum twice, once with max, and each time every thread first gathers its own "
        "columns in a register. Between the two, the shared array gets a new use: who might still "
        "be reading the old one?",
        "A thread without a column takes part, too: with which value for a maximum, and which for "
        "a sum? Every thread keeps s[0] in a local name. Only when all have done so may s be "
        "written again.",
        "largest = np.float32(-math.inf); for column in range(t, columns, THREADS): largest = "
        "max(…); s[t] = largest; barrier; rounds with max; largest = s[0]; barrier; the same with "
        "total and math.exp(x[row, column] - largest); at last a third loop writes out.",
    ),
)
THREADS = 128
EXPECTED = "out[r] = softmax of row r"


def ask(t: Tester, x: np.ndarray, rtol: float = 1e-4) -> Counted:
    """Launch a block per row; fail unless each row is the softmax, even where it is tiny."""
    counted = launch(t, len(x), THREADS, {"x": x, "out": empty(*x.shape)}, EXPECTED)
    exact = x.astype(float)
    e = np.exp(exact - exact.max(axis=1, keepdims=True))
    # Sums over thread 0's columns: what you get if you sum only thread 0's columns.
    with np.errstate(all="ignore"):  # thread 0's columns may all be 0
        alone = e / e[:, ::THREADS].sum(axis=1, keepdims=True)
    mistakes = [
        Mistake("not_divided", e, "Each element is the exponential. By what is it divided?"),
        Mistake("alone", alone, "Divided by one thread's sum. Who adds those of the others?"),
    ]
    attempt = "Do the rows sum to 1? Look at the largest element, then at the sum, of one row."
    out = counted.arrays["out"]
    if isinstance(out, np.ndarray) and np.isnan(out).any():
        attempt = (
            "Where does 0 / 0 or inf - inf come from? Follow the largest element, then the sum."
        )
    written(t, counted, e / e.sum(axis=1, keepdims=True), "out", attempt=attempt, mistakes=mistakes,
            rtol=rtol, atol=1e-37)  # fmt: skip
    return counted


@k_softmax_row.check(points=2)
def short_rows(t: Tester) -> None:
    """Rows with fewer columns than a block has threads; no thread runs ahead."""
    ask(t, floats(t, int(t.fixed.integers(2, 5)), THREADS))
    ask(t, floats(t, int(t.fixed.integers(2, 5)), int(t.fixed.integers(2, THREADS))))
    ask(t, floats(t, 3, 1), rtol=2e-7)  # gives 1 only if the divisor has no extra term


@k_softmax_row.check(points=2)
def long_rows(t: Tester) -> None:
    """Rows with more columns than a block has threads, and not a multiple of them."""
    columns = 2 * THREADS + int(t.fixed.integers(1, THREADS))
    counted = ask(t, floats(t, 3, columns))
    attempt = "Which columns does the docstring give to a thread? Follow thread 1."
    expected = "thread t computes columns t, t + THREADS and so on"
    in_turn(t, counted.writers["out"], 3, THREADS, expected, "thread", attempt)
    ask(t, floats(t, 1, 1500))


@k_softmax_row.check(points=2)
def far_from_zero(t: Tester) -> None:
    """Rows of large, of very negative and of very different numbers: no overflow, no 0 / 0."""
    for level in (400, -400):
        ask(t, floats(t, 2, 50) + np.float32(level))
    ask(t, floats(t, 2, 50, low=-2, high=-1) * np.float32(1e30))
    # exp of a difference to any but the largest overflows, whichever thread holds that one
    columns = (0, 1, 2, 3, 63, 64, 127, THREADS + 1)
    x = floats(t, len(columns), THREADS + 2)
    x[np.arange(len(columns)), columns] = 120
    ask(t, x)


@k_softmax_row.check(points=2)
def costs(t: Tester) -> None:
    """Each element is read three times at most, and nothing is computed in float64."""
    for columns in (THREADS + 32, 40):
        x = floats(t, 2, columns)
        counted = ask(t, x)
        reads = counted.reads["x"].reshape(x.shape)
        if (often := reads > 3).any():
            attempt = (
                "Once for the maximum, once for the sum, once to write. Which line reads it again?"
            )
            got = f"{entry('x', often)} is read {reads[often][0]} times"
            where = counted.most(t, "load", "global")
            t.fail("reads", "each element of x read 3 times at most", got, attempt, where=where)
        in_rounds(t, counted, 2)
        if counted.shared and (n := sum(size for _, size in counted.shared)) != THREADS:
            attempt = "When the maximum is known to all, who still needs what lies in the array?"
            got = f"{n} elements, in {', '.join(name for name, _ in counted.shared)}"
            t.fail("shared", f"one shared array, of {THREADS} elements", got, attempt)
        in_float32(t, counted)
