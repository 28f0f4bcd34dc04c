"""One step of gradient descent on data in pieces."""

from __future__ import annotations

import numpy as np

from minigrad.course.l04_accumulation import lesson
from minigrad.grader.message import counted, show
from minigrad.grader.samples import Shape, numbers
from minigrad.grader.tester import Tester

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
    """Return the gradient of a linear model's loss, as the lesson's driver does."""
    error = np.tensordot(x, w, x.ndim - 1) - y
    return np.tensordot(x, error, (0, 0)) * (2 / len(x))


MOVES = "The parameters moved between two batches. At which w does each gradient belong?"
LAST = "Only the last batch moved w. What became of the others?"


def full(w, batches, mean_gradient):
    """Return the gradient over all rows."""
    n_rows = sum(len(x) for x, _ in batches)
    return sum(mean_gradient(w, x, y) * (len(x) / n_rows) for x, y in batches)


@microbatch_step.mistake(
    "sum", "The sum of means is no mean. What does each batch weigh in the whole?"
)
def _(w, batches, mean_gradient, learning_rate):
    return w - learning_rate * sum(mean_gradient(w, x, y) for x, y in batches)


@microbatch_step.mistake("unweighted", "A row of a small batch weighs more than it should.")
def _(w, batches, mean_gradient, learning_rate):
    slopes = [mean_gradient(w, x, y) for x, y in batches]
    return w - learning_rate * sum(slopes) / len(slopes)


@microbatch_step.mistake("last_batch", LAST)
def _(w, batches, mean_gradient, learning_rate):
    for x, y in batches:
        gradient = mean_gradient(w, x, y)
    return w - learning_rate * gradient


@microbatch_step.mistake("last_batch", LAST)
def _(w, batches, mean_gradient, learning_rate):
    n_rows = sum(len(x) for x, _ in batches)
    for x, y in batches:
        gradient = mean_gradient(w, x, y) * len(x) / n_rows
    return w - learning_rate * gradient


@microbatch_step.mistake(
    "by_rows", "The weights are the numbers of rows. What should all weights add up to?"
)
def _(w, batches, mean_gradient, learning_rate):
    total = sum(mean_gradient(w, x, y) * len(x) for x, y in batches)
    return w - learning_rate * total


@microbatch_step.mistake("by_rows", "By what is a mean over rows divided?")
def _(w, batches, mean_gradient, learning_rate):
    total = sum(mean_gradient(w, x, y) * len(x) for x, y in batches)
    return w - learning_rate * total / len(batches)


@microbatch_step.mistake("by_entries", "A batch has len(x) rows; x.size counts every number in it.")
def _(w, batches, mean_gradient, learning_rate):
    total = sum(mean_gradient(w, x, y) * len(x) for x, y in batches)
    return w - learning_rate * total / sum(x.size for x, _ in batches)


@microbatch_step.mistake(
    "first_rows", "Not every batch has as many rows as the first. How many are there in all?"
)
def _(w, batches, mean_gradient, learning_rate):
    total = sum(mean_gradient(w, x, y) * len(x) for x, y in batches)
    return w - learning_rate * total / (len(batches) * len(batches[0][0]))


@microbatch_step.mistake("uphill", "The step goes up the slope.")
def _(w, batches, mean_gradient, learning_rate):
    return w + learning_rate * full(w, batches, mean_gradient)


@microbatch_step.mistake("moving", MOVES)
def _(w, batches, mean_gradient, learning_rate):
    for x, y in batches:
        w = w - learning_rate * mean_gradient(w, x, y)
    return w


@microbatch_step.mistake("moving", MOVES)
def _(w, batches, mean_gradient, learning_rate):
    n_rows = sum(len(x) for x, _ in batches)
    for x, y in batches:
        w = w - learning_rate * mean_gradient(w, x, y) * len(x) / n_rows
    return w


@microbatch_step.mistake(
    "gradient", "That is the gradient. Asked for are the parameters after a step."
)
def _(w, batches, mean_gradient, learning_rate):
    return full(w, batches, mean_gradient)


@microbatch_step.mistake("no_rate", "How long is the step? Look for the learning rate.")
def _(w, batches, mean_gradient, learning_rate):
    return w - full(w, batches, mean_gradient)


@microbatch_step.mistake("changed_input")
def _(w, batches, mean_gradient, learning_rate):
    w -= learning_rate * full(w, batches, mean_gradient)
    return w


@microbatch_step.mistake("shared")
def _(w, batches, mean_gradient, learning_rate):
    g = full(w, batches, mean_gradient)
    return w - learning_rate * g if learning_rate else w


@microbatch_step.mistake("calls")
def _(w, batches, mean_gradient, learning_rate):
    x = np.concatenate([x for x, _ in batches])
    y = np.concatenate([y for _, y in batches])
    return w - learning_rate * mean_gradient(w, x, y)


@microbatch_step.mistake("raised")
def _(w, batches, mean_gradient, learning_rate):
    n_rows, total = sum(len(x) for x, _ in batches), np.zeros(len(w))
    for x, y in batches:
        total += mean_gradient(w, x, y) * len(x) / n_rows
    return w - learning_rate * total


def check_step(
    t: Tester, rows: list[int], of_x: Shape, of_y: Shape = (), *, stays: str = ""
) -> None:
    """Check a step on batches of these sizes, whose rows of x and y have the given shapes.

    `stays` says what is 0 to keep w unchanged: the rate, the gradient, or the first batch's one.
    """
    w = numbers(t.random, of_x + of_y)
    rate = 0.0 if stays == "rate" else float(t.random.choice([0.05, 0.1, 0.2]))
    batches = [
        (numbers(t.random, (n, *of_x)), numbers(t.random, (n, *of_y), low=1, high=4)) for n in rows
    ]
    for k in range({"gradient": len(batches), "first": 1}.get(stays, 0)):
        x, _ = batches[k]
        batches[k] = x, np.tensordot(x, w, x.ndim - 1)
    shown = ", ".join(f"(x of {n} row{'s' * (n > 1)}, y)" for n in rows)
    if sum(rows) <= 3:
        shown = ", ".join(f"({x.tolist()}, {y.tolist()})" for x, y in batches)
    loss = "((x @ w - y) ** 2).mean()" if w.ndim == 1 else "a linear model's mean squared error"
    given = (
        f"microbatch_step({show(w, bare=True)}, [{shown}], mean_gradient, {rate}), "
        f"mean_gradient that of {loss}"
    )
    new, w_after, later, calls, slopes = t.drive("microbatches", w, batches, rate, given=given)
    shared = isinstance(new, np.ndarray) and not np.array_equal(later, new)
    if shared and np.array_equal(w_after, w):
        attempt = "Whoever writes into the result writes into w. Does every path make a new array?"
        t.fail("shared", "a new array", "w itself, or a view of it", attempt)
    if not np.array_equal(w_after, w) or shared:
        t.fail(
            "changed_input",
            f"w left as it was, {show(w)}, and a new array returned",
            f"w = {show(w_after)}",
            "w -= … writes into the caller's array. Make a new one.",
        )
    if not all(np.array_equal(then, now) for then, now in slopes):
        t.fail(
            "changed_input",
            "what mean_gradient returned left as it was",
            "one of its arrays was written to",
            "g *= … writes into an array that may be the caller's. Make a new one.",
        )
    x, y = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    right = w - rate * slope(w, x, y)
    t.close(
        new,
        right,
        rtol=1e-12,
        atol=1e-12,
        attempt=BY_HAND,
        mistakes=t.mistakes(w, batches, slope, rate),
    )
    asked = [n for n, _ in calls]
    if sorted(asked) != sorted(rows):
        t.fail(
            "calls",
            f"a call of mean_gradient per batch, {len(rows)} in all",
            f"{counted(len(asked), 'call')}, on {asked} rows",
            "Each call is a whole pass over a batch. What is each of yours for?",
        )
    if not all(np.array_equal(at, w) for _, at in calls):
        t.fail(
            "moving",
            "every gradient taken at the w that was given",
            "a call with another w",
            MOVES,
        )


@microbatch_step.check(points=1)
def one_batch(t: Tester) -> None:
    """One batch: an ordinary step."""
    check_step(t, [2], (1,))
    check_step(t, [3], (2,))
    check_step(t, [1], (2,))
    check_step(t, [2], (2,), stays="rate")
    check_step(t, [2], (2,), stays="gradient")


@microbatch_step.check(points=1)
def equal_batches(t: Tester) -> None:
    """Batches of one size give the step of the full batch, to 1e-12."""
    check_step(t, [1, 1], (1,))
    check_step(t, [2, 2, 2], (2,))
    check_step(t, [4] * 5, (3,))


@microbatch_step.check(points=2)
def unequal_batches(t: Tester) -> None:
    """Batches of different sizes give the step of the full batch, whatever shape w has."""
    check_step(t, [2, 1], (1,))
    check_step(t, [1, 4, 2], (3,))
    check_step(t, [3, 1, 1, 5], (3,))
    check_step(t, [2, 3], ())
    check_step(t, [1, 3], (2, 3))
    check_step(t, [3, 1], (2,), (2,))
    check_step(t, [1, 2], (2,), stays="first")
