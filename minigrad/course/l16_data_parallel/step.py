"""One step of SGD by several workers: equal to one worker's, however the rows are shared out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from minigrad.course.l16_data_parallel import lesson
from minigrad.course.l16_data_parallel.driver import GRADIENTS, run_workers, sum_of_all
from minigrad.grader import samples
from minigrad.grader.compare import agree
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester
from minigrad.grader.wire import laid_out

dp_step = lesson.exercise(
    "dp_step",
    difficulty=3,
    minutes=20,
    returns="None: the new weights are in w",
    hints=(
        "Take two workers, one with 1 row and one with 3. What is the mean gradient of the 4 rows, "
        "in terms of the two mean gradients?",
        "What can be added up is a sum over rows: n times the mean. And n itself. all_reduce adds "
        "both, and a worker without rows adds zeros.",
        "g = n * gradient(w, x, y), or np.zeros_like(w) if n is 0. total = all_reduce(g), n_rows = "
        "all_reduce(np.array(float(n))). Then w -= learning_rate * total / n_rows.",
    ),
)


def step(all_reduce, gradient, w, x, y, learning_rate, *, kind=""):
    """Make a step, right or with a common mistake."""
    n = len(x)
    if kind == "skipped" and not n:
        return None
    if kind == "entries":
        n = x.size
    if kind == "targets":
        n = y.size if y.ndim == 2 and not y.size else n
    if kind == "whole_targets":
        n = n if n != 1 or not np.isnan(y).any() else 0
    zeros = 0 * w if kind == "zero_times_w" else np.zeros_like(w)
    mean = gradient(w, x, y) if n or kind == "empty" else zeros
    if kind == "flat_skipped" and n and not mean.any():
        return None
    g = np.nan_to_num(n * mean) if kind == "nan_hidden" else n * mean
    count = max(n, 1) if kind == "counted_empty" else n
    if kind == "short_count":
        count = np.uint16(n % 2**16)
    if kind == "infinite":
        g = np.where(np.isfinite(g), g, np.nan)
    if kind == "local":
        w -= learning_rate * mean
        return None
    if kind == "undone":
        w -= learning_rate * g
        try:
            total, n_rows = all_reduce(g), all_reduce(np.array(float(n)))
        finally:
            w += learning_rate * g
        w -= learning_rate * total / n_rows
        return None
    if kind == "half_written":
        before = w.copy()
        w -= learning_rate * g
        w[...] = before - learning_rate * all_reduce(g) / all_reduce(np.array(float(n)))
        return None
    if kind == "swallowed":
        try:
            total, n_rows = all_reduce(g), all_reduce(np.array(float(n)))
        except RuntimeError:
            total, n_rows = g, max(n, 1)
        w -= learning_rate * total / n_rows
        return None
    k = all_reduce(np.array(1.0))
    n_rows = all_reduce(np.array(float(count)))
    if kind == "over_those_with_rows":
        k = all_reduce(np.array(float(n > 0)))
    if kind in ("mean_of_means", "over_those_with_rows"):
        total, n_rows = all_reduce(mean), k
    elif kind == "sum_of_means":
        total, n_rows = all_reduce(mean), 1.0
    else:
        total = all_reduce(g)
    if kind == "weights_averaged":
        new = all_reduce(w - learning_rate * mean) / k
        w[...] = new
        return None
    if kind == "weights_summed":
        w[...] = all_reduce(w - learning_rate * mean)
        return None
    if kind == "own_share":
        total = g + (total - g)
    if kind == "own_first":
        w -= learning_rate * g / n_rows
        w -= learning_rate * (total - g) / n_rows
        return None
    if kind == "not_divided":
        n_rows = 1.0
    elif kind == "over_workers":
        n_rows = k
    elif kind == "own_count":
        n_rows = max(n, 1)
    elif kind == "divided_twice":
        n_rows = n_rows * k
    elif kind == "rate_times_size":
        learning_rate = learning_rate * k
    elif kind == "rounded":
        total = total.astype(np.float32)
    change = learning_rate * total / n_rows
    if kind == "returned":
        return w - change
    if kind == "not_in_place":
        w = w - change
    elif kind == "uphill":
        w += change
    elif kind == "no_rate":
        w -= total / n_rows
    else:
        w -= change
    return None


WRONG = {
    "sum_of_means": "The means of all workers were added. How many times too large is that?",
    "local": "Each worker goes its own way: nobody has heard of the others' gradients.",
    "uphill": "It goes uphill: which way does the gradient point?",
    "no_rate": "Where is learning_rate?",
    "not_divided": "That is the sum over all rows. The loss is their mean.",
    "over_workers": "Divided by the number of workers. Of how many rows is the sum?",
    "own_count": "Divided by the rows of this worker. Of how many rows is the sum?",
    "divided_twice": "Divided by the rows of all, and once more by the number of workers.",
    "rate_times_size": "With k workers the step is k times as long. Who asked for that?",
    "rounded": "w has float64. Which step rounds, or makes another type?",
    "counted_empty": "A worker without rows was counted as if it had one.",
    "weights_summed": "The weights themselves were added up. What of them is to be added?",
}
for key, attempt in WRONG.items():
    dp_step.mistake(key, attempt)(partial(step, kind=key))
MEANS = (  # for SGD, the mean of the weights after one's own step is the same
    "Here a worker with one row counts as much as one with ten, as in a mean of means. What may be "
    "added up instead?"
)
for kind in ("mean_of_means", "weights_averaged"):
    dp_step.mistake("mean_of_means", MEANS)(partial(step, kind=kind))
dp_step.mistake("means_of_some", MEANS)(partial(step, kind="over_those_with_rows"))
dp_step.mistake("value")(partial(step, kind="short_count"))
for kind in ("infinite", "zero_times_w"):
    dp_step.mistake("nan")(partial(step, kind=kind))
dp_step.mistake("entries")(partial(step, kind="targets"))
dp_step.mistake("nan_hidden")(partial(step, kind="whole_targets"))
for key in (
    *("skipped", "empty", "returned", "not_in_place", "own_first", "half_written", "swallowed"),
    *("nan_hidden", "entries"),
):
    dp_step.mistake(key)(partial(step, kind=key))
dp_step.mistake("skipped")(partial(step, kind="flat_skipped"))
dp_step.mistake("own_first")(partial(step, kind="own_share"))


@dp_step.mistake("half_written")
def _(all_reduce, gradient, w, x, y, learning_rate):
    before, n = w.copy(), len(x)
    g = n * gradient(w, x, y) if n else np.zeros_like(w)
    n_rows = all_reduce(np.array(float(n)))
    try:
        w -= learning_rate * g
        w[...] = before - learning_rate * all_reduce(g) / n_rows
    except RuntimeError:  # the error is of another class
        w[...] = before
        raise


@dp_step.mistake("not_in_place")
def _(all_reduce, gradient, w, x, y, learning_rate):
    flat = w.reshape(-1)
    new = w.copy()
    step(all_reduce, gradient, new, x, y, learning_rate)
    flat[:] = new.reshape(-1)


@dp_step.mistake("unlike")
def _(all_reduce, gradient, w, x, y, learning_rate):
    g = len(x) * gradient(w, x, y) if len(x) else np.zeros(w.size)
    n_rows = all_reduce(np.array(float(len(x))))
    w -= learning_rate * all_reduce(g).reshape(w.shape) / n_rows


@dp_step.mistake("changed_input")
def _(all_reduce, gradient, w, x, y, learning_rate):
    x *= learning_rate
    step(all_reduce, gradient, w, x, y, 1.0)


@dp_step.mistake("half_written")
def _(all_reduce, gradient, w, x, y, learning_rate):
    n = len(x)
    g = n * gradient(w, x, y) if n else np.zeros_like(w)
    n_rows = all_reduce(np.array([float(n)]))
    for place in np.ndindex(w.shape):  # the sum of each entry, and then its step
        w[place] -= learning_rate * all_reduce(g[place]) / n_rows[0]


@dp_step.mistake("half_written")
def _(all_reduce, gradient, w, x, y, learning_rate):
    n = len(x)
    g = n * gradient(w, x, y) if n else np.zeros_like(w)
    change = learning_rate * all_reduce(g) / all_reduce(np.array(float(n)))
    w -= change
    try:
        all_reduce(np.zeros(1))
    except BaseException:
        w += change
        raise


@dp_step.mistake("odd_w")
def _(all_reduce, gradient, w, x, y, learning_rate):
    def of_rows(w, x, y):
        return gradient(w.reshape(-1), x, y) if w.ndim == 2 else gradient(w, x, y)

    step(all_reduce, of_rows, w, x, y, learning_rate)


@dp_step.mistake("value")
def _(all_reduce, gradient, w, x, y, learning_rate):
    def flat_gradient(w, x, y):
        return np.ravel(gradient(w, x, y), order="K").reshape(w.shape)

    step(all_reduce, flat_gradient, w, x, y, learning_rate)


@dp_step.mistake("value")
def _(all_reduce, gradient, w, x, y, learning_rate):
    n = len(x)
    g = n * gradient(w, x, y) if n else np.zeros_like(w)
    total = all_reduce(g)
    if not hasattr(all_reduce, "rows"):
        all_reduce.rows = all_reduce(np.array(float(n)))
    w -= learning_rate * total / all_reduce.rows


@dp_step.mistake("nan_hidden")
def _(all_reduce, gradient, w, x, y, learning_rate):
    if learning_rate:
        step(all_reduce, gradient, w, x, y, learning_rate)


@dp_step.mistake("replaced")
def _(all_reduce, gradient, w, x, y, learning_rate):
    try:
        step(all_reduce, gradient, w, x, y, learning_rate)
    except RuntimeError:
        raise ConnectionError("a worker has died") from None


@dp_step.mistake("raised")
def _(all_reduce, gradient, w, x, y, learning_rate):
    n_rows = all_reduce(np.array([float(len(x))]))
    g = len(x) * gradient(w, x, y) if len(x) else np.zeros_like(w)
    w[:] = w - learning_rate * all_reduce(g) / n_rows


@dp_step.mistake("unlike")
def _(all_reduce, gradient, w, x, y, learning_rate):
    step(all_reduce, gradient, w, x, y, learning_rate)
    all_reduce(x)


@dp_step.mistake("raised")
def _(all_reduce, gradient, w, x, y, learning_rate):
    w -= learning_rate * all_reduce(len(x) * gradient(w, x, y)) / sum(all_reduce(len(x)))


Parts = list[list[tuple[np.ndarray, np.ndarray]]]  # for each worker, for each step (x, y)


def alone(w: np.ndarray, parts: Parts, rate: float, gradient: str = "slope") -> np.ndarray:
    """Return the weights after each step of one worker that has the rows of all."""
    path = []
    for rows in zip(*parts, strict=True):
        x, y = (np.concatenate(one) for one in zip(*rows, strict=True))
        w = w - rate * GRADIENTS[gradient](w, x, y)
        path.append(w)
    return np.array(path)


def known(
    t: Tester, w: np.ndarray, parts: Parts, rate: float, r: int, k: int, gradient: str
) -> Iterator[Mistake]:
    """Yield worker r's weights after step k with each common mistake."""
    for one in dp_step.wrong_versions:
        if not one.attempt or (t.survey and one.key not in t.survey.suspects):
            continue
        weights = [w.copy() for _ in parts]
        counts: list[list] = [[] for _ in parts]

        def work(worker: Any, rows: list, one=one, weights=weights, counts=counts) -> None:
            for x, y in rows[: k + 1]:
                mine, all_reduce = weights[worker.rank], partial(sum_of_all, worker, counts)
                one.function(all_reduce, GRADIENTS[gradient], mine, x, y, rate)

        with np.errstate(all="ignore"):
            _, errors, _ = run_workers(work, [(rows,) for rows in parts])
        if not errors:
            yield Mistake(one.key, weights[r], one.attempt)


def told(w: np.ndarray, parts: Parts, rate: float) -> str:
    """Return the workers and their rows in words."""
    k, steps = len(parts), len(parts[0])
    each = [", ".join(str(len(x)) for x, _ in rows) for rows in zip(*parts, strict=True)]
    n = each[0] if len({*each}) == 1 else " and then ".join(each)
    if steps == 1 and sum(len(rows[0][0]) for rows in parts) <= 3 and w.ndim == 1:
        some = [", ".join(f"{n} = {show(a, bare=True)}" for n, a in zip("xy", rows[0], strict=True))
                for rows in parts]  # fmt: skip
        rows = "; ".join(f"{one} on worker {rank}" for rank, one in enumerate(some))
        return f"dp_step, {rows}; w = {show(w, bare=True)}, learning_rate = {rate:g}"
    calls = "" if steps == 1 else f", {steps} steps"
    if parts[0][0][0].shape[1:] == (0,):
        calls += f", x of shape {' and '.join(str(rows[0][0].shape) for rows in parts)}"
    one = f"dp_step on {k} worker{'s' * (k > 1)} with {n} rows{calls}, w = {show(w)}"
    return f"{one}, learning_rate = {rate:g}"


WHOLE = (
    "Compute it by hand: the gradient of the mean over all rows, as one worker would with all of "
    "them."
)


TOLD = {
    "slope": "",
    "tilt": "; gradient returns the mean of x over rows",
    "turned": "; gradient returns an array that lies in memory column by column",
}
SHAPES = (
    "Which rows, and which weights, does gradient get from you? It returns an array of w's shape."
)


def why_value(w: np.ndarray, parts: Parts, gradient: str) -> str:
    """Return the Try line for wrong weights: what is special about these rows, or this gradient."""
    rows = [one for some in parts for one in some]
    if gradient == "turned":
        return "In which order do you go through what gradient returns? w has rows and columns."
    if max(len(x) for x, _ in rows) > 1000:
        return "So many rows: up to which number can you count in the type that you count in?"
    if gradient == "tilt" and not np.isfinite(np.concatenate([w, *(x.ravel() for x, _ in rows)])
                                              ).all():  # fmt: skip
        return "inf is a number like others here. Where does yours become nan: 0 * inf, inf - inf?"
    if flat(parts):
        return "A worker has rows of zeros, and they are rows all the same. How do you count them?"
    if any(len({len(x) for x, _ in some}) > 1 for some in parts):
        return "In the second step there are other numbers of rows. What do you keep of the first?"
    return WHOLE


def check(t: Tester, w: np.ndarray, parts: Parts, rate: float, gradient: str = "slope") -> dict:
    """Check the weights of all workers after each step; return the driver's reply."""
    given = told(w, parts, rate) + TOLD[gradient]
    got = t.drive("steps", copies(w, len(parts)), parts, rate, None, False, gradient, given=given)
    counts, whole = got["counts"], why_value(w, parts, gradient)
    unmoved = UNMOVED if whole == WHOLE else whole
    if got["odd"]:
        t.fail("odd_w", f"gradient(w, x, y) with w of shape {w.shape}", got["odd"], SHAPES)
    if got["unlike"]:
        why = "Which worker has another one, and why?"
        if 0 in [len(x) for rows in parts for x, _ in rows]:
            why = "What does a worker without rows add: in which order, and of which shape?"
        t.fail("unlike", "arrays of one shape in each call of all_reduce", got["unlike"], why)
    if got["stuck"] or got["errors"]:
        calls = ", ".join(f"{n} on worker {rank}" for rank, n in enumerate(counts))
        t.fail("skipped", "as many calls of all_reduce on every worker",
               f"{calls}; {next(iter(got['errors'].values()))}",
               "The others wait for one that does not come. Which way does it go?" + (
                   " (Its gradient is 0 here.)" if flat(parts) else ""))  # fmt: skip
    if got["changed"]:
        t.fail("changed_input", "x and y as they were", f"others on worker {got['changed'][0]}",
               "The rows belong to the caller, who needs them in the next epoch.")  # fmt: skip
    right = alone(w, parts, rate, gradient)
    for k, wanted in enumerate(right):
        when = f" after step {k + 1}" if len(right) > 1 else ""
        for rank, path in enumerate(got["paths"]):
            if len(path) <= k:
                t.fail("value", f"w on worker {rank}{when}", "nothing", whole)
            if np.array_equal(path[k], w) and not np.array_equal(wanted, w):
                returned = got["returned"]
                said = f"w as it was on worker {rank}" + (
                    f", and {show(returned[0])} returned" if returned else ""
                )
                t.fail("returned" if returned else "not_in_place", f"w = {show(wanted)}{when}",
                       said, samples.attempt_for(w, path[k], unmoved))  # fmt: skip
            shapes = {one.shape[1:] for one in parts[0][0]}
            if np.isnan(path[k]).any() and (0,) in shapes:
                name = "x" if parts[0][0][0].shape[1:] == (0,) else "y"
                t.fail("entries", f"w = {show(wanted)}{when}", f"w = {show(path[k])}",
                       f"The rows of {name} have no entries here, and are rows all the same. How "
                       "do you count them?")  # fmt: skip
            if np.isnan(path[k]).any() and whole == WHOLE:
                t.fail("empty", f"w = {show(wanted)}{when}", f"w = {show(path[k])}",
                       NO_ROWS if 0 in [len(x) for rows in parts for x, _ in rows] else FEW_ROWS
                       )  # fmt: skip
            near = agree(path[k], wanted, rtol=1e-6, atol=1e-6)
            t.close(path[k], wanted, what=f"w on worker {rank}{when}", rtol=1e-10, atol=1e-12,
                    attempt=WRONG["rounded"] if near else whole,
                    mistakes=known(t, w, parts, rate, rank, k, gradient))  # fmt: skip
    if got["returned"]:
        t.fail("returned", "None", show(got["returned"][0]), "The result is in w.")
    return got


NO_ROWS = "The gradient of a mean over no rows is nan. What does a worker without rows add?"
FEW_ROWS = (
    "The gradient of a mean over no rows is nan, and here all workers have rows. Which rows do you "
    "ask it for?"
)
UNMOVED = (
    "Is the new w written into the old one (w = … only gives its name to a new array)? And if so, "
    "is the step 0?"
)


def copies(w: np.ndarray, n: int) -> list[np.ndarray]:
    """Return n copies of w that lie in memory as w does."""
    return [laid_out(w, [step // w.itemsize for step in w.strides]) for _ in range(n)]


def flat(parts: Parts) -> bool:
    """Return whether a worker has rows, and all of them are zeros, so that its gradient is 0."""
    return any(len(x) and not x.any() for rows in parts for x, _ in rows)


def draw(
    t: Tester, lengths: Sequence[int], *, steps: int = 1, shape: tuple[int, ...] = (2,)
) -> tuple[np.ndarray, Parts]:
    """Return weights of a shape and each worker's rows, as many as `lengths` says."""
    w = np.asarray(samples.numbers(t.random, shape))
    parts: Parts = []
    for n in lengths:
        rows = []
        for _ in range(steps):
            x = samples.numbers(t.random, (n, *shape[:1]))
            rows.append((x, samples.numbers(t.random, (n, *shape[1:]))))
        parts.append(rows)
    return w, parts


def check_nan(t: Tester, w: np.ndarray, parts: Parts, rate: float) -> None:
    """Check that a worker with rows whose gradient is nan makes the new weights nan."""
    parts[0][0][1][0] = np.nan
    given = f"{told(w, parts, rate)}; the first y of worker 0 is nan"
    got = t.drive("steps", copies(w, len(parts)), parts, rate, given=given)
    for rank, weights in enumerate(got["weights"]):
        if not np.isnan(weights).all():
            t.fail("nan_hidden", f"w on worker {rank} is nan, as with one worker",
                   f"w = {show(weights)}", "A worker with rows has a gradient that is nan. Who "
                   "hides that? Only of no rows does it mean nothing.")  # fmt: skip


@dp_step.check(points=2)
def unequal_parts(t: Tester) -> None:
    """The step is that of one worker with all rows, however they are shared out."""
    for lengths in ((1, 2), (2, 5), (5, 1, 2), (3, 0), (0, 2, 5), (0, 0, 1)):
        check(t, *draw(t, lengths), 0.1)
        check(t, *draw(t, lengths, shape=(2, 3)), 0.05)
        check(t, *draw(t, lengths, shape=()), 0.05)
    for layout in samples.views(samples.numbers(t.random, (2, 3))):
        check(t, layout, draw(t, (1, 3), shape=(2, 3))[1], 0.05)
    w, parts = draw(t, (2, 3))
    parts[0][0][0][:] = 0  # the gradient of worker 0 is 0
    check(t, w, parts, 0.1)
    w, parts = draw(t, (1, 3), shape=())
    check(t, w, [[(np.zeros((len(x), 0)), y) for x, y in rows] for rows in parts], 0.1)
    w, parts = draw(t, (1, 3))
    check(t, w, [[(x, np.zeros((len(x), 0))) for x, _ in rows] for rows in parts], 0.1, "tilt")
    for lengths, rate in (((2, 0, 3), 0.1), ((1, 0, 3), 0.1), ((2, 1), 0.0)):
        check_nan(t, *draw(t, lengths), rate)
    check(t, *draw(t, (1, 3), shape=(2, 3)), 0.1, "turned")
    (w, parts), (_, more) = draw(t, (3, 4)), draw(t, (3, 1))
    check(t, w, [one + two for one, two in zip(parts, more, strict=True)], 0.1)
    check(t, *draw(t, (66000, 2)), 0.1)


@dp_step.check(points=1)
def equal_parts(t: Tester) -> None:
    """It is, with as many rows on each worker."""
    for lengths in ((2, 2, 2), (3, 3), (1, 1, 1, 1), (4,)):
        for rate in (0.1, 0.03):
            check(t, *draw(t, lengths), rate)
    check(t, *draw(t, (2, 2), shape=(2, 3)), 0.1)


@dp_step.check(points=1, only_with=("unequal_parts",))
def same_bits(t: Tester) -> None:
    """After 20 steps all copies of w have the same bits. inf is a number like others."""
    for lengths, shape in (((3, 2, 2), (2,)), ((2, 0, 3, 1), (2,)), ((7, 1, 2), (8,))):
        w, parts = draw(t, lengths, steps=20, shape=shape)
        got = check(t, w, parts, 0.03)
        for rank, one in enumerate(got["weights"]):
            if one.tobytes() != got["weights"][0].tobytes():
                place = int(np.argmax(one != got["weights"][0]))
                pair = [float(np.ravel(got["weights"][r])[place]) for r in (0, rank)]
                t.fail("own_first", "the same bits of w on all workers",
                       f"w[{place}] is {pair[0]!r} on worker 0, {pair[1]!r} on worker {rank}",
                       "Rounding depends on the order. Which numbers does a worker use that are "
                       "its own?")  # fmt: skip
    w, parts = draw(t, (2, 0, 3))
    parts[0][0][0][0, 0] = np.inf  # so that the gradient is
    check(t, w, parts, 0.1, "tilt")
    w, parts = draw(t, (2, 0, 3))
    w[0] = np.inf  # and so it stays
    check(t, w, parts, 0.1, "tilt")


@dp_step.check(points=1, only_with=("equal_parts",))
def a_death(t: Tester) -> None:
    """If a worker has died, the others get an error, and their w is as it was."""
    for lengths, lost in (((2, 3), False), ((2, 1, 3), True)):
        w, parts = draw(t, lengths, steps=3, shape=(8,))
        for dead in range(len(lengths)):
            for when, n in ((0, 0), (0, 1), (1, 1), (1, 2)):
                given = f"{told(w, parts, 0.1)}; worker {dead} dies in step {when + 1}, "
                given += f"after {n} call{'s' * (n != 1)} of all_reduce"
                given += ", whose error is no RuntimeError" if lost else ""
                weights, dies = copies(w, len(parts)), (dead, when, n)
                got = t.drive("steps", weights, parts, 0.1, dies, lost, given=given)
                for rank, said in got["replaced"].items():
                    t.fail("replaced", f"the error of all_reduce from worker {rank}", said,
                           "Another error takes its place. What if you do not catch it?"
                           )  # fmt: skip
                for rank in range(len(lengths)):
                    if rank == dead:
                        continue
                    n_done = len(got["paths"][rank])
                    if rank not in got["errors"] or (got["in_call"] and n_done > when):
                        t.fail("swallowed", f"the error of all_reduce from worker {rank}",
                               "no error, and another step", "It goes on alone. Who takes the "
                               "error out of its way?")  # fmt: skip
                    before = alone(w, parts, 0.1)[n_done - 1] if n_done else w
                    t.close(got["weights"][rank], before, what=f"w on worker {rank} after it",
                            rtol=1e-10, atol=1e-12, key="half_written",
                            attempt="all_reduce raised, and w has changed. What is written "
                            "before the last call has come back?")  # fmt: skip
                    before = got["paths"][rank][-1] if n_done else w
                    if got["weights"][rank].tobytes() != before.tobytes():
                        t.fail("half_written", f"w on worker {rank} after it as it was before the "
                               "step, to the last bit", "a difference in the last bits",
                               "a - b + b is not always a. What is written before the last call "
                               "has come back?")  # fmt: skip
