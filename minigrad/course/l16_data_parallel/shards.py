"""Rows, cut into one part for each worker."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from minigrad.course.l16_data_parallel import lesson
from minigrad.grader import samples
from minigrad.grader.compare import agree
from minigrad.grader.message import show, show_typed
from minigrad.grader.tester import Tester

shard = lesson.exercise(
    "shard",
    difficulty=1,
    minutes=10,
    returns="a list of k arrays",
    answers=("numpy.array_split", "numpy.split"),
    hints=(
        "Cut 10 rows into 4 parts by hand. Where does each part begin, and how do the lengths "
        "follow from 10 and 4?",
        "divmod(len(data), k) gives the length that all parts have, and how many parts have one "
        "row more. Go through the parts, and remember where the next one begins.",
        "Part r has least + (r < more) rows, for least, more = divmod(len(data), k). It is "
        "data[start:end], and the next one starts at this end.",
    ),
)


def lengths(n, k, *, kind=""):
    """Return how many rows each part has, right or with a common mistake."""
    least, more = divmod(n, k)
    if kind == "remainder_lost":
        return [least] * k
    if kind == "remainder_last":
        return [least] * (k - 1) + [n - least * (k - 1)]
    if kind == "remainder_first":
        return [n - least * (k - 1)] + [least] * (k - 1)
    if kind == "rounded_up":
        return [max(0, min(-(-n // k), n - r * -(-n // k))) for r in range(k)]
    if kind == "longest_last":
        return [least + (r >= k - more) for r in range(k)]
    if kind == "spread":
        return np.diff([n * r // k for r in range(k + 1)]).tolist()
    if kind == "one_too_many":
        return [least + (r <= more) for r in range(k)]
    return [least + (r < more) for r in range(k)]


def parts_of(data, k, *, kind=""):
    """Return the parts, right or with a common mistake."""
    if kind == "every_kth":
        return [data[r::k] for r in range(k)]
    if kind == "columns":
        ends = np.cumsum([0, *lengths(data.shape[-1], k)])
        return [data[..., ends[r] : ends[r + 1]] for r in range(k)]
    if kind == "whole":
        return [data] * k
    if kind == "padded" and len(data):
        each = np.arange(k * -(-len(data) // k)) % len(data)
        return [data[rows] for rows in np.reshape(each, (k, -1))]
    if kind == "same_start":
        return [data[:n] for n in lengths(len(data), k)]
    parts, start = [], 0
    n_rows = data.size or len(data) if kind == "entries" else len(data)
    for n in lengths(n_rows, k, kind=kind):
        parts.append(data[start : start + n])
        start += n - 1 if kind == "overlap" and n else n
    if kind == "backwards":
        return parts[::-1]
    if kind == "rows_backwards":
        return [part[::-1] for part in parts]
    if kind == "no_empty":
        return [part for part in parts if len(part)]
    if kind == "one_part_less":
        return parts[:-1]
    return parts


WRONG = {
    "remainder_lost": "Put the parts together again: are all rows there?",
    "remainder_last": "All that is left over went to the last part. Everybody waits for it.",
    "remainder_first": "All that is left over went to the first part. Everybody waits for it.",
    "rounded_up": "Rounded up, the last parts get what is left, or nothing. By how many rows may "
    "two parts differ?",
    "longest_last": "Right but for one thing: which parts are to have the row more?",
    "spread": "The lengths are right, and not in this order: which parts have the row more?",
    "padded": "Some rows are there twice. Each is to be in exactly one part.",
    "one_too_many": "Count the rows of all parts. For how many parts is there one row more?",
    "entries": "These are lengths for the number of entries. How many rows has data?",
    "every_kth": "Every k-th row: rows of a part are to lie together, as they do in data.",
    "columns": "That cuts along another axis. Along which one do the rows lie?",
    "whole": "Every part has all rows. Then nobody has less to do.",
    "same_start": "Every part begins at row 0. Where does the second one begin?",
    "overlap": "A part begins with the last row of the one before it: that one counts twice.",
    "backwards": "The parts are in the opposite order.",
    "rows_backwards": "The rows of a part are in the opposite order.",
}
for key, attempt in WRONG.items():
    shard.mistake(key, attempt)(partial(parts_of, kind=key))
for key in ("no_empty", "one_part_less"):
    shard.mistake("count")(partial(parts_of, kind=key))


@shard.mistake("not_a_list")
def _(data, k):
    return np.array([len(part) for part in parts_of(data, k)])


@shard.mistake("not_a_list")
def _(data, k):
    return dict(enumerate(parts_of(data, k)))


@shard.mistake("not_a_list")
def _(data, k):
    return tuple(parts_of(data, k))


@shard.mistake("type")
def _(data, k):
    return [part.tolist() for part in parts_of(data, k)]


@shard.mistake("length")
def _(data, k):
    ends = [-(-len(data) * r // k) for r in range(k + 1)]
    return [data[ends[r] : ends[r + 1]] for r in range(k)]


@shard.mistake("length")
def _(data, k):
    return [data[: len(data) // k + 2] for _ in range(k)]


@shard.mistake("shape")
def _(data, k):
    return [part.reshape(len(part), -1) for part in parts_of(data, k)]


@shard.mistake("shape")
def _(data, k):
    return [part if len(part) else np.zeros(0) for part in parts_of(data, k)]


@shard.mistake("shape")
def _(data, k):
    return [part.reshape(-1, *data.shape[1:]) if part.size else data[:0, None]
            for part in parts_of(data, k)]  # fmt: skip


@shard.mistake("length")
def _(data, k):
    return parts_of(data, k) if data.size else [data[:0]] * k


@shard.mistake("length")
def _(data, k):
    return parts_of(data, k) if data.any() else [data[:0]] * k


@shard.mistake("length")
def _(data, k):
    ends = np.cumsum([0, *lengths(len(data), k)]).astype(np.uint8)
    return [data[a:b] for a, b in itertools.pairwise(ends)]


@shard.mistake("length")
def _(data, k):
    ends = np.cumsum([0, *lengths(len(data), k)]).astype(np.uint16)
    return [data[a:b] for a, b in itertools.pairwise(ends)]


@shard.mistake("length")
def _(data, k):
    if data.ndim != 1 or data.dtype.kind != "f":
        return parts_of(data, k)
    return [part[~np.isnan(part)] for part in parts_of(data, k)]


@shard.mistake("rows")
def _(data, k):
    parts = [np.empty(part.shape, data.dtype.type) for part in parts_of(data, k)]
    for new, part in zip(parts, parts_of(data, k), strict=True):
        new[...] = part
    return parts


@shard.mistake("rows")
def _(data, k):
    parts = parts_of(data, k)
    return [np.array(part.tolist(), part.dtype) if part.size else part for part in parts]


KEPT: dict = {}


@shard.mistake("rows_before")
def _(data, k):
    key = (id(data), data.shape, data.dtype.str, k)
    return KEPT.setdefault(key, (data, [part.copy() for part in parts_of(data, k)]))[1]


@shard.mistake("dtype")
def _(data, k):
    return [part if len(part) else np.zeros(part.shape) for part in parts_of(data, k)]


@shard.mistake("value")
def _(data, k):
    return parts_of(data.ravel(order="K").reshape(data.shape), k)


@shard.mistake("raised")
def _(data, k):
    return list(data.reshape(k, -1, *data.shape[1:]))


def check_parts(t: Tester, data: np.ndarray, k: int) -> None:
    """Check the parts of one array: how many, how long, which rows."""
    got = t.call("shard", data, k)
    right = parts_of(data, k)
    rows = ", ".join(str(len(part)) for part in right)
    if data.size > 12:
        t.given = f"shard(data, {k}), data of shape {data.shape}"
    wanted = f"a list of {k} arrays, with {rows} rows"
    if got is None:
        t.none(wanted)
    if not isinstance(got, list):
        t.fail("not_a_list", wanted, show_typed(got), "A list, with an array for each worker.")
    said = f"{len(got)} arrays, with {', '.join(_length(part) for part in got)} rows"
    said = said if got else "an empty list"
    arrays = [part for part in got if isinstance(part, np.ndarray)]
    if len(arrays) < len(got):
        odd = next(part for part in got if not isinstance(part, np.ndarray))
        t.fail("type", wanted, f"a list with {show_typed(odd)}", "Slices of an array are arrays.")
    known = list(t.mistakes(data, k))
    made = next((one for one in known if _same(one.value, got)), None)
    if made is not None and not _same(right, got):
        t.fail(made.key, wanted, _told(got, right, said), made.attempt)
    if len(got) != k:
        why = "A part for each worker, also where there are fewer rows than workers."
        t.fail("count", wanted, said, why)
    for r, (part, one) in enumerate(zip(got, right, strict=True)):
        if part.shape[1:] != one.shape[1:] or part.ndim != one.ndim:
            t.fail("shape", f"part {r} of shape {one.shape}", f"shape {part.shape}",
                   "Only the first axis gets shorter, also in a part without rows.")  # fmt: skip
        if len(part) != len(one):
            t.fail("length", wanted, said, why_lengths(list(map(len, got)), list(map(len, right))))
        why = "" if agree(part, one, rtol=0, atol=0) else why_rows(part, data)
        t.close(part, one, what=f"part {r}", rtol=0, atol=0, attempt=why)
        t.dtype(part, data.dtype, "A part has the type that data has.")


def why_lengths(got: list[int], right: list[int]) -> str:
    """Return a Try line for parts of wrong lengths."""
    if sorted(got) == sorted(right):
        return "The lengths are right, and not in this order: which parts have the row more?"
    if sum(got) != sum(right):
        few = "not all there" if sum(got) < sum(right) else "more than data has"
        return f"Put the parts together again: the rows are {few}."
    return "How many rows are there for each, and how many over?"


def why_rows(part: np.ndarray, data: np.ndarray) -> str:
    """Return a Try line for a part of the right length with wrong rows."""
    for start in range(min(len(data) - len(part), 1000) + 1):
        if np.array_equal(part, data[start : start + len(part)]):
            return f"That part begins with row {start} of data. Where did the one before it end?"
    few = part[:50]
    places = [next((i for i, one in enumerate(data[:1000]) if np.array_equal(row, one)), -1)
              for row in few]  # fmt: skip
    if -1 in places:
        way = "" if data.flags.c_contiguous else ", if data does not lie in one piece"
        return f"No row of data looks so. In which order do you read the entries of a row{way}?"
    for a, b in itertools.pairwise(places):
        if b != a + 1:
            return f"Here row {b} of data comes behind row {a}. Rows of a part are to lie together."
    return "Which rows are these?"


def check_unsent(
    t: Tester, rows: list, k: int, dtype: str, before: Sequence = (), *, given: str
) -> None:
    """Check the parts of an array that is made in the learner's process, as `cut` does."""
    got = t.drive("cut", rows, k, dtype, before, given=given)
    right = [[[n], rows[start : start + n]] for n, start in _places(len(rows), k)]
    if got != right:
        old = [[[n], [*before][start : start + n]] for n, start in _places(len(rows), k)]
        key, why = "rows", "Data may hold anything. Which step makes new arrays, and of what type?"
        if before and got == old:
            key = "rows_before"
            why = "The array held these rows before. What do you keep from one call to the next?"
        said = _rows_of(got) if _is_told(got) else show_typed(got)
        t.fail(key, _rows_of(right), said, why)


def _places(n: int, k: int) -> list[tuple[int, int]]:
    """Return for each part how many rows it has, and its first one's place."""
    each = lengths(n, k)
    return [(one, sum(each[:r])) for r, one in enumerate(each)]


def _rows_of(parts: list) -> str:
    return "; ".join(
        f"{rows}" + f" of shape {tuple(shape)}" * (len(shape) != 1) for shape, rows in parts
    )


def _is_told(got: object) -> bool:
    return isinstance(got, list) and all(isinstance(one, list) and len(one) == 2 for one in got)


def _length(part: object) -> str:
    return str(len(part)) if isinstance(part, np.ndarray) and part.ndim else "no"


def _same(one: Any, other: Any) -> bool:
    pair = isinstance(one, list | tuple) and isinstance(other, list | tuple)
    return pair and len(one) == len(other) and all(map(np.array_equal, one, other))


def _told(got: Any, right: list, said: str) -> str:
    """Return the lengths, or if these are right the first part that is not."""
    if list(map(len, got)) != list(map(len, right)):
        return said
    r = next(r for r, pair in enumerate(zip(got, right, strict=True)) if not np.array_equal(*pair))
    return f"part {r} = {show(got[r])}"


@shard.check(points=1)
def equal_parts(t: Tester) -> None:
    """It cuts rows into k parts of the same length."""
    for n, k in ((6, 3), (8, 2), (5, 1), (4, 4)):
        check_parts(t, samples.numbers(t.random, (n,)), k)
        check_parts(t, samples.numbers(t.random, (n, 3)), k)
    for x in samples.arrays(t.random, shapes=((4,), (4, 3), (2, 1, 3), (0, 2), (4, 0))):
        check_parts(t, x, 2)
    check_parts(t, np.zeros((6, 2)), 3)  # a row of zeros is a row
    check_parts(t, np.where(np.arange(6) == 1, np.nan, samples.numbers(t.random, (6,))), 3)
    texts = "shard(data, 2), data an array of "
    check_unsent(t, ["one", "two", "three", "four"], 2, "<U5", given=texts + "texts")
    check_unsent(t, [[1, 2], [3], [5, 6], [7, 8]], 2, "object", given=texts + "lists")
    numbers = samples.numbers(t.random, (2, 6)).tolist()
    given = f"shard(data, 3) for the second time, data = {numbers[0]} now in the same array"
    check_unsent(t, numbers[0], 3, "float64", numbers[1], given=given)


@shard.check(points=2)
def what_is_left_over(t: Tester) -> None:
    """If the rows cannot be shared out equally, the first parts have one more."""
    for n, k in ((12, 5), (7, 2), (10, 4), (11, 4), (9, 4), (5, 3), (11, 3), (23, 5)):
        check_parts(t, samples.numbers(t.random, (n,)), k)
        check_parts(t, samples.numbers(t.random, (n, 2)), k)
    check_parts(t, samples.numbers(t.random, (300,)), 7)
    check_parts(t, np.arange(70001), 3)


@shard.check(points=1)
def few_rows(t: Tester) -> None:
    """With fewer rows than workers, the last parts have none."""
    for n, k in ((1, 3), (2, 5), (0, 2), (3, 4)):
        check_parts(t, samples.numbers(t.random, (n,)), k)
        check_parts(t, samples.numbers(t.random, (n, 2)), k)
    for dtype in ("float32", "int64"):
        check_parts(t, samples.numbers(t.random, (2, 3), dtype), 3)
