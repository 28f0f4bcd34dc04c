"""Sums of float16 numbers: in which type is added, and how often is rounded."""

from __future__ import annotations

from functools import partial

import numpy as np

from minigrad.course.l15_mixed_precision import lesson
from minigrad.grader import samples
from minigrad.grader.message import show
from minigrad.grader.tester import Tester

sum_f16_acc32 = lesson.exercise(
    "sum_f16_acc32",
    difficulty=1,
    minutes=10,
    returns="an array of float16, or a number: the sums along the axis",
    hints=(
        "Two types are asked for: one in which the sum grows, and one for the result. Which is "
        "which, and which of them does x.sum(axis) take for both?",
        "Either the numbers become float32 before they are added, or the sum is told in which "
        "type to add: numpy.sum has an argument for that. Afterwards astype rounds.",
        "x.sum(axis=axis, dtype=np.float32) adds in float32. Its result has an astype, for "
        "np.float16.",
    ),
)

HALF = "The sum itself is a float16 here, rounded after each addition. In which type must it grow?"


@sum_f16_acc32.mistake("half_accumulator", HALF)
def _(x, axis):
    with np.errstate(all="ignore"):
        return x.sum(axis=axis)


@sum_f16_acc32.mistake("half_accumulator", HALF)
def _(x, axis):
    with np.errstate(all="ignore"):
        total = np.zeros(np.delete(x.shape, axis), np.float16)
        for part in np.moveaxis(x, axis, 0):
            total = total + part
        return total


@sum_f16_acc32.mistake(
    "rounded_in_pieces",
    "Close, but rounded on the way: the result of each piece is a float16 again. Round once.",
)
def _(x, axis):
    with np.errstate(all="ignore"):
        parts = np.array_split(np.moveaxis(x, axis, 0), max(1, -(-x.shape[axis] // 64)))
        total = np.zeros(np.delete(x.shape, axis), np.float16)
        for part in parts:
            total = (total + part.sum(axis=0, dtype=np.float32)).astype(np.float16)
        return total


def without_tail(x, axis, *, block):
    """Sum whole blocks only, where there is more than one."""
    n = x.shape[axis]
    rows = np.moveaxis(x, axis, 0)[: n // block * block if n > block else n]
    return rows.sum(axis=0, dtype=np.float32).astype(np.float16)


for size in (4, 8, 16, 64, 256, 1024):
    sum_f16_acc32.mistake(
        "tail_lost", "The last numbers are missing, those that do not fill a block. Who adds them?"
    )(partial(without_tail, block=size))


def without_end(x, axis, *, kept):
    """Sum all rows but one at an end."""
    return np.moveaxis(x, axis, 0)[kept].sum(axis=0, dtype=np.float32).astype(np.float16)


for end, kept in {"first": slice(1, None), "last": slice(-1)}.items():
    sum_f16_acc32.mistake(
        f"{end}_lost", f"The {end} entry along the axis is missing. Which step leaves it out?"
    )(partial(without_end, kept=kept))


@sum_f16_acc32.mistake(
    "ties_away",
    "Half way between two numbers, float16 takes the one whose last bit is 0. Which do you take?",
)
def _(x, axis):
    total = np.asarray(x.sum(axis=axis, dtype=np.float32))
    cut = (total.view(np.uint32) + 0x1000 & 0xFFFFE000).view(np.float32)
    plain = np.abs(total) < 2**-13
    return np.where(plain | ~np.isfinite(total), total, cut).astype(np.float16)


@sum_f16_acc32.mistake("mean", "That is the mean: the sum, divided by how many there are.")
def _(x, axis):
    with np.errstate(all="ignore"):
        return x.mean(axis=axis, dtype=np.float32).astype(np.float16)


@sum_f16_acc32.mistake(
    "saturated", "A sum beyond 65504 stays at 65504. What does the docstring want there?"
)
def _(x, axis):
    return np.clip(x.sum(axis=axis, dtype=np.float32), -65504, 65504).astype(np.float16)


@sum_f16_acc32.mistake(
    "no_subnormals", "Small sums became 0. Subnormal numbers of float16 are numbers, too."
)
def _(x, axis):
    total = x.sum(axis=axis, dtype=np.float32)
    with np.errstate(all="ignore"):
        return np.where(np.abs(total) < 2**-14, 0, total).astype(np.float16)


@sum_f16_acc32.mistake("shape")
def _(x, axis):
    with np.errstate(all="ignore"):
        return x.sum(dtype=np.float32).astype(np.float16)


@sum_f16_acc32.mistake("shape")
def _(x, axis):
    with np.errstate(all="ignore"):
        return x.sum(axis=axis, dtype=np.float32, keepdims=True).astype(np.float16)


@sum_f16_acc32.mistake("dtype")
def _(x, axis):
    return x.astype(np.float32).sum(axis=axis)


@sum_f16_acc32.mistake("dtype")
def _(x, axis):
    return x.astype(np.float64).sum(axis=axis)


def right(x: np.ndarray, axis: int) -> np.ndarray:
    """Return the sums, added in float64 and rounded once."""
    with np.errstate(all="ignore"):
        return np.asarray(x.sum(axis=axis, dtype=np.float64)).astype(np.float16)


def check_sum(t: Tester, x: np.ndarray, axis: int, told: str, attempt: str) -> None:
    """Check one sum; `told` describes x where it is long.

    All numbers here are so short that float32 adds them exactly, in whichever order. So a sum that
    is rounded once is `right` to the last bit, and one that was rounded twice need not be.
    """
    wanted = right(x, axis)
    given = f"sum_f16_acc32(x, {axis}) with x = {told}" if told else ""
    got = t.compare(wanted, x, axis, attempt=attempt, given=given, rtol=0, atol=0)
    t.given = given or t.given
    t.dtype(got, np.float16, "The result is rounded once, to float16. Which type do you return?")


ADD = "Add these numbers in float32, one after the other, and round what you have at the end."


ONCE = "Sums of up to three numbers are right. Does each of these come in, and only once?"
TINY = (
    "These are so small that float16 has fewer bits for them. Is each one in float32 what it was?"
)


@sum_f16_acc32.check(points=1)
def short_sums(t: Tester) -> None:
    """It sums along any axis, for arrays of any shape and layout, and returns float16."""
    every = samples.arrays(t.random, dtypes=("float16",))
    for x in sorted(every, key=lambda x: x.size == 0):  # what is empty tells least, so it is last
        for axis in (*range(x.ndim), *range(-x.ndim, 0)):
            check_sum(t, x, axis, "", ADD)
    for n in range(4, 20):
        some = (np.round(samples.numbers(t.random, (n, 2)) * 64) / 64).astype(np.float16)
        check_sum(t, some, 0, "", ONCE)
        check_sum(t, some[:, 0].copy(), 0, "", ONCE)
    small = np.array([[3.0, -1.0], [2.0, 5.0]], np.float16) * np.float16(2**-22)
    for axis in (0, 1):
        check_sum(t, small, axis, f"{show(small)}, subnormal numbers", TINY)


VIEW = "The same numbers in another layout. Who adds them there, and in which type?"
LAYOUTS = ("backwards in memory", "every second one in memory", "column by column in memory")
# Sums half way between two numbers of float16. Divided and multiplied by n, they are so no more.
TIES = ((21, 2753), (59, 3777), (137, 2211))
BETWEEN = (
    "This sum lies half way between two numbers of float16, so the last bit decides. Which step of "
    "yours is no addition, and moves it a little?"
)


@sum_f16_acc32.check(points=2)
def long_sums(t: Tester) -> None:
    """It adds in float32: a long sum of small numbers does not get stuck."""
    for n, columns in ((4096, 2), (5000, 3), (3001, 1)):
        size = float(t.random.choice([1.0, 0.75, 1.25]))
        wave = np.round(t.random.uniform(0.5, 1.5, (n, columns)) * 16) / 16
        x = (size * wave).astype(np.float16)
        text = f"{n} numbers between {0.5 * size:g} and {1.5 * size:g}"
        attempt = "Above 2048, float16 has even numbers only. Where does your sum get stuck?"
        check_sum(t, x, 0, f"columns of {text}", attempt)
        rows = np.ascontiguousarray(x.T)
        check_sum(t, rows, -1, f"rows of {text}", attempt)
        for view, layout in zip(samples.views(rows), LAYOUTS, strict=True):
            check_sum(t, view, -1, f"rows of {text}, {layout}", VIEW)
        check_sum(t, x[:, 0].copy(), 0, text, attempt)
        rest = np.round(samples.numbers(t.random, (3, columns)) * 64) / 64
        both = np.concatenate([x, -t.random.permutation(x), rest]).astype(np.float16)
        told = f"columns of {text}, the same with a minus, and 3 smaller than 2"
        once = (
            "On the way it is large, and at the end small. Is it rounded anywhere before the end?"
        )
        check_sum(t, both, 0, told, once)
        check_sum(t, both[:, 0].copy(), 0, told.replace("columns of ", ""), once)
    for n, total in TIES:
        part = np.full(n, total // n, np.float16)
        part[: total % n] += np.float16(1)
        told = f"{n} numbers of {total // n} and {total // n + 1}, in sum {total}"
        check_sum(t, t.random.permutation(part), 0, told, BETWEEN)
        check_sum(t, -t.random.permutation(part), 0, f"{told}, with a minus", BETWEEN)


SIGN = "The sum is beyond 65504. What does rounding to float16 make of it, and with which sign?"


@sum_f16_acc32.check(points=1)
def large_sums(t: Tester) -> None:
    """Sums on the way may be beyond 65504; a result that is, is infinite."""
    for n in (3, 40):
        high = float(t.random.integers(40, 64) * 1000)
        rest = samples.numbers(t.random, (2,), "int64", low=100, high=900)
        column = np.concatenate([np.full(n, high), np.full(n, -high), rest])
        x = np.stack([column, column[::-1]], axis=1).astype(np.float16)
        told = f"columns of {n} times {high:g}, {n} times {-high:g}, and {show(rest, bare=True)}"
        check_sum(t, x, 0, told, "On the way it is beyond 65504. Which type has room for that?")
        check_sum(t, x[:, 0].copy(), 0, told.replace("columns of ", ""), ADD)
    for sign in (1, -1):
        x = np.full((5, 2), sign * 30000, np.float16)
        x[0] = x[-1] = -sign  # it is not the first one's sign that counts
        check_sum(t, x, 0, "", SIGN)
        for more in (8, 15.9921875, 16):
            edge = np.array([[65504, 1], [more, 1]], np.float16) * np.float16(sign)
            check_sum(t, edge, 0, "", "Which float16 is nearest? From 65520 on there is none.")
