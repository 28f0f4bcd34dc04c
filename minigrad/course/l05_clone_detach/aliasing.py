"""is_alias: a byte in common, not a range in common."""

from __future__ import annotations

import numpy as np

from minigrad.course.l05_clone_detach.lesson import lesson
from minigrad.grader.message import show
from minigrad.grader.tester import Tester

is_alias = lesson.exercise(
    "is_alias",
    difficulty=3,
    minutes=20,
    returns="True or False",
    hints=(
        "Two views may begin and end around each other and still have no byte in common: "
        "x[::2] and x[1::2]. So write down which bytes each of them shows, and compare.",
        "Start from [a.ctypes.data]. For each axis, every address so far becomes n addresses, "
        "stride bytes apart. At the end each address becomes itemsize bytes.",
        "for n, stride in zip(a.shape, a.strides): addresses = [p + stride * i for p in addresses "
        "for i in range(n)]. Then a set of all p + k with k in range(a.itemsize), for both arrays; "
        "sets know isdisjoint.",
    ),
)
EQUAL = "Arrays apart may hold equal values, and None is the base of both. Compare addresses."
START = "Write down where each element of the two begins; strides count bytes. Which is in both?"
BASE = "Both are parts of one array. Is any element in both parts?"
RANGES = "Their ranges of addresses overlap. Write down the addresses of each: is one in both?"
BACKWARDS = "With a negative stride, ctypes.data is the highest address, not the lowest."
BYTES = "An element is itemsize bytes long; another may begin in the middle of it."
EMPTY = "How many bytes does an array without elements show?"
AXES = "Each axis has a stride of its own: after the end of a row, how far is the next element?"
SAME = "Write down the addresses of both. What ravel() or a copy gives has other addresses."


def ask(
    t: Tester, a: str, b: str, *, size: int = 12, dtype: str = "float64", key: str, attempt: str
) -> None:
    """Ask about two arrays, given as expressions of x and y, and compare with NumPy's answer."""
    x, y = np.zeros(size, dtype), np.zeros(size, dtype)
    names = {"x": x, "y": y, "m": x.reshape(3, -1), "np": np}
    one, other = (eval(text, dict(names)) for text in (a, b))
    right = np.shares_memory(one, other)
    made = f"np.zeros({size if dtype == 'float64' else f'{size}, np.{dtype}'}), read-only"
    names_of = (
        "x, y = two arrays " if b == "y" else "m = x.reshape(3, 4), x = " if "m" in a else "x = "
    )
    given = f"is_alias({a}, {b}) with {names_of}{made}"
    reply = t.drive("alias", dtype, size, a, b, given=given)
    if "imported" in reply:
        t.fail(
            "answer_used",
            "your own is_alias",
            f"{reply['imported']}, taken from NumPy",
            "That name is closed here: work with addresses and strides.",
        )
    if "wrote" in reply:
        t.fail(
            "wrote",
            f"{right}",
            f"ValueError: {reply['wrote']}",
            "Nothing may be written to find out. Addresses and strides say it all.",
        )
    got = reply["ok"]
    if got is None:
        t.none(str(right))
    if not isinstance(got, bool | np.bool_):
        t.fail("type", f"{right}, a bool", show(got), "Return True or False.")
    if bool(got) != right:
        t.fail(key, f"{right}{common_bytes(one, other)}", str(got), attempt)


def common_bytes(a: np.ndarray, b: np.ndarray) -> str:
    """Return how many bytes two arrays have in common, in words."""
    n = len(addresses(a) & addresses(b))
    return f": {n} bytes are in both" if n else ": no byte is in both"


def addresses(array: np.ndarray) -> set[int]:
    """Return the addresses of all bytes of an array's elements."""
    start = array.__array_interface__["data"][0]
    found = set()
    for index in np.ndindex(array.shape):
        first = start + sum(i * stride for i, stride in zip(index, array.strides, strict=True))
        found.update(range(first, first + array.itemsize))
    return found


@is_alias.check(points=1)
def plain_slices(t: Tester) -> None:
    """It is right for arrays and for slices without a step."""
    i = int(t.random.integers(1, 4))
    ask(t, "x", "y", key="values", attempt=EQUAL)
    ask(t, f"x[{i}:{i + 5}]", f"x[{i + 3}:{i + 8}]", key="start", attempt=START)
    ask(t, "x", f"x[{i}:{i + 4}]", key="start", attempt=START)
    ask(t, f"x[:{i + 3}]", f"x[{i + 3}:]", key="one_array", attempt=BASE)
    ask(t, f"x[{i + 4}:]", f"x[:{i + 4}]", key="one_array", attempt=BASE)


@is_alias.check(points=2)
def interleaved(t: Tester) -> None:
    """It is right for slices with a step, whose ranges overlap."""
    ask(t, "x[::2]", "x[1::2]", key="ranges", attempt=RANGES)
    ask(t, "x[::2]", "x[::3]", key="start", attempt=SAME)
    ask(t, "x[1::2]", "x[::3]", key="steps", attempt="One element is in both: which?")
    step = int(t.random.integers(3, 5))
    first, second = (int(n) for n in t.random.choice(step, 2, replace=False))
    ask(t, f"x[{first}::{step}]", f"x[{second}::{step}]", key="ranges", attempt=RANGES)
    ask(t, f"x[{first}::{step}]", f"x[{first + step}:]", key="start", attempt=SAME)


@is_alias.check(points=2)
def two_axes(t: Tester) -> None:
    """It is right for columns, transposes and arrays walked backwards."""
    i = int(t.random.integers(0, 3))
    ask(t, f"m[:, {i}]", f"m[:, {i + 1}]", key="ranges", attempt=RANGES)
    ask(t, "m[:, :2]", "m[:, 2:]", key="axes", attempt=AXES)
    ask(t, f"m[{i}]", f"m[:, {i}]", key="axes", attempt="A row and a column meet in one entry.")
    ask(t, f"m.T[{i}]", f"m[:, {i}]", key="axes", attempt=SAME)
    ask(t, "x[::-1]", f"x[{i}:{i + 3}]", key="backwards", attempt=BACKWARDS)
    ask(t, "x[4::-1]", "x[5:]", key="backwards", attempt=BACKWARDS)


@is_alias.check(points=1)
def odd_ones(t: Tester) -> None:
    """It is right for empty arrays and for bytes in the middle of an element."""
    i = int(t.random.integers(1, 8))
    ask(t, "x", f"x.view(np.int8)[{8 * i + 3}:{8 * i + 5}]", key="bytes", attempt=BYTES)
    ask(t, "x.real", "x.imag", dtype="complex128", key="ranges", attempt=RANGES)
    ask(t, "x", f"x[{i}:{i}]", key="empty", attempt=EMPTY)
    ask(t, "x[0, ...]", "x", key="no_axes", attempt="An array without axes has one element.")
    ask(t, f"np.broadcast_to(x[{i}], (4,))", f"x[{i}:]", key="stride_0", attempt=SAME)
