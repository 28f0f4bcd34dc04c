"""One step of gradient descent on data in pieces."""

from __future__ import annotations

import numpy as np

from minigrad.course.l04_accumulation.lesson import lesson
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

microbatch_step = lesson.exercise(
    "microbatch_step",
    difficulty=3,
    minutes=15,
    returns="an array: the new parameters",
    hints=(
        "Write down the mean over 3 rows that come as 2 + 1: what does each row weigh? And in the "
        "mean over the first batch alone?",
        "The mean over all N rows is the sum over batches of n_i / N times the batch's own mean, "
        "with n_i its number of rows. Gradients follow the same sum.",
        "Count all rows first. Add mean_gradient(w, x, y) * len(x) / n_rows over the batches, "
        "always at the old w; then one step: w - learning_rate * sum.",
    ),
)
BY_HAND = "In the mean over all rows each row weighs the same. What does a row of each batch weigh?"


def slope(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the gradient of ((x @ w - y) ** 2).mean()."""
    return 2 * x.T @ (x @ w - y) / len(x)


def wrong_steps(
    w: np.ndarray, batches: list[tuple[np.ndarray, np.ndarray]], rate: float
) -> list[Mistake]:
    """Return what people compute instead of the step on all rows."""
    slopes = [slope(w, x, y) for x, y in batches]
    rows = np.array([len(x) for x, _ in batches])
    x, y = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    full = slope(w, x, y)
    moving, weighted = w, w
    for (x, y), n in zip(batches, rows, strict=True):
        moving = moving - rate * slope(moving, x, y)
        weighted = weighted - rate * slope(weighted, x, y) * n / rows.sum()
    by_rows = sum(n * s for n, s in zip(rows, slopes, strict=True))
    moves = "The parameters moved between two batches. At which w does each gradient belong?"
    wrong = [
        (
            "sum",
            sum(slopes),
            "The sum of means is no mean. What does each batch weigh in the whole?",
        ),
        (
            "unweighted",
            sum(slopes) / len(rows),
            "A row of a small batch weighs more than it should.",
        ),
        ("last_batch", slopes[-1], "Only the last batch moved w. What became of the others?"),
        ("last_batch", slopes[-1] * rows[-1] / rows.sum(), "Only the last batch moved w."),
        (
            "by_rows",
            by_rows,
            "The weights are the numbers of rows. What should all weights add up to?",
        ),
        ("by_rows", by_rows / len(rows), "By what is a mean over rows divided?"),
        (
            "by_entries",
            by_rows / (rows.sum() * len(w)),
            "A batch has len(x) rows; x.size counts every number in it.",
        ),
        (
            "first_rows",
            by_rows / (len(rows) * rows[0]),
            "Not every batch has as many rows as the first. How many are there in all?",
        ),
        ("uphill", -full, "The step goes up the slope."),
    ]
    mistakes = [Mistake(key, w - rate * g, say) for key, g, say in wrong]
    return [
        *mistakes,
        Mistake("moving", moving, moves),
        Mistake("moving", weighted, moves),
        Mistake(
            "gradient", full, "That is the gradient. Asked for are the parameters after a step."
        ),
        Mistake("no_rate", w - full, "How long is the step? Look for the learning rate."),
    ]


def check_step(t: Tester, rows: list[int], n_columns: int) -> None:
    """Ask for a step on batches of these sizes."""
    w = np.round(t.random.uniform(-2, 2, n_columns), 1)
    rate = float(t.random.choice([0.05, 0.1, 0.2]))
    batches = [
        (
            np.round(t.random.uniform(-2, 2, (n, n_columns)), 1),
            np.round(t.random.uniform(1, 4, n), 1),
        )
        for n in rows
    ]
    shown = ", ".join(f"(x of {n} row{'s' * (n > 1)}, y)" for n in rows)
    if sum(rows) <= 3:
        shown = ", ".join(f"({x.tolist()}, {y.tolist()})" for x, y in batches)
    given = (
        f"microbatch_step({show(w, bare=True)}, [{shown}], mean_gradient, {rate}), "
        "mean_gradient that of ((x @ w - y) ** 2).mean()"
    )
    new, w_after, shared, calls = t.drive("microbatches", w, batches, rate, given=given)
    if not np.array_equal(w_after, w) or shared:
        t.fail(
            "changed_input",
            f"w left as it was, {show(w)}, and a new array returned",
            f"w = {show(w_after)}",
            "w -= … writes into the caller's array. Make a new one.",
        )
    x, y = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    right = w - rate * slope(w, x, y)
    t.close(
        new,
        right,
        rtol=1e-12,
        atol=1e-12,
        attempt=BY_HAND,
        mistakes=wrong_steps(w, batches, rate),
    )
    counted = [n for n, _ in calls]
    if sorted(counted) != sorted(rows):
        t.fail(
            "calls",
            f"a call of mean_gradient per batch, {len(rows)} in all",
            f"{len(counted)} calls, on {counted} rows",
            "The batches come in pieces because all of them at once would not fit in memory.",
        )
    if not all(np.array_equal(at, w) for _, at in calls):
        t.fail(
            "moving",
            "every gradient taken at the w that was given",
            "a call with another w",
            "The parameters moved between two batches. At which w does each gradient belong?",
        )


@microbatch_step.check(points=1)
def one_batch(t: Tester) -> None:
    """One batch: an ordinary step."""
    check_step(t, [2], 1)
    check_step(t, [3], 2)


@microbatch_step.check(points=1)
def equal_batches(t: Tester) -> None:
    """Batches of one size give the step of the full batch, to 1e-12."""
    check_step(t, [1, 1], 1)
    check_step(t, [2, 2, 2], 2)
    check_step(t, [4] * int(t.random.integers(2, 6)), 3)


@microbatch_step.check(points=2)
def unequal_batches(t: Tester) -> None:
    """Batches of different sizes give the step of the full batch, too."""
    check_step(t, [2, 1], 1)
    for _ in range(3):
        rows = [int(n) for n in t.random.integers(1, 6, t.random.integers(2, 5))]
        check_step(t, [*rows, rows[0] + 1], 3)
