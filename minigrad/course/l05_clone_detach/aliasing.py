"""is_alias: a byte in common, not a range in common."""

from __future__ import annotations

import numpy as np

from minigrad.course.l05_clone_detach import lesson
from minigrad.grader.message import counted, show
from minigrad.grader.tester import Tester

is_alias = lesson.exercise(
    "is_alias",
    difficulty=3,
    minutes=20,
    returns="True or False",
    answers=("numpy.shares_memory", "numpy.may_share_memory"),
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
SIZE = 12
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
    t: Tester, a: str, b: str, key: str, attempt: str, dtype: str = "float64", size: int = SIZE
) -> None:
    """Check two arrays, given as expressions, in both orders; NumPy knows the answer."""
    for one, other in {(a, b): 0, (b, a): 0}:
        ask_once(t, one, other, key, attempt, dtype, size)


def ask_once(t: Tester, a: str, b: str, key: str, attempt: str, dtype: str, size: int) -> None:
    """Check two arrays in this order."""
    x, y = np.zeros(size, dtype), np.zeros(size, dtype)
    names = {"x": x, "y": y, "m": x.reshape(3, -1), "c": x.reshape(2, 3, -1), "np": np}
    one, other = (eval(text, dict(names)) for text in (a, b))
    right = np.shares_memory(one, other)
    made = f"np.zeros({size if dtype == 'float64' else f'{size}, np.{dtype}'}), read-only"
    whose = "x, y = two arrays " if "y" in (a, b) else "x = "
    shaped = {"m": "m = x.reshape(3, 4), ", "c": "c = x.reshape(2, 3, 2), "}.get(a[0], "")
    given = f"is_alias({a}, {b}) with {shaped}{whose}{made}"
    reply = t.drive("alias", dtype, size, a, b, given=given)
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
    """Return in words how many bytes two arrays share."""
    n = len(addresses(a) & addresses(b))
    return f": {counted(n, 'byte')} in both" if n else ": no byte is in both"


def addresses(array: np.ndarray) -> set[int]:
    """Return the addresses of all bytes in an array's elements."""
    start = array.__array_interface__["data"][0]
    byte_addresses = set()
    for index in np.ndindex(array.shape):
        first = start + sum(i * stride for i, stride in zip(index, array.strides, strict=True))
        byte_addresses.update(range(first, first + array.itemsize))
    return byte_addresses


@is_alias.check(points=1)
def plain_slices(t: Tester) -> None:
    """It is right for arrays and for slices without a step."""
    ask(t, "x", "y", "values", EQUAL)
    ask(t, "x[2:7]", "x[5:10]", "start", START)
    ask(t, "x", "x[3:7]", "start", START)
    ask(t, "x[:5]", "x[5:]", "one_array", BASE)
    ask(t, "x[7:]", "x[:7]", "one_array", BASE)
    ask(t, "x[7:]", "x[:8]", "start", START)
    ask(t, "x", "x", "start", "One and the same array has all its bytes in common with itself.")
    ask(t, "x", "x[299:]", "start", START, size=300)
    ask(t, "np.asarray(memoryview(x))", "x[4:6]", "base", "Bytes count, and not who owns them.")


@is_alias.check(points=2)
def interleaved(t: Tester) -> None:
    """It is right for slices with a step, whose ranges overlap."""
    ask(t, "x[::2]", "x[1::2]", "ranges", RANGES)
    ask(t, "x[::2]", "x[::3]", "start", SAME)
    ask(t, "x[1::2]", "x[::3]", "steps", "One element is in both: which?")
    ask(t, "x[1::4]", "x[3::4]", "ranges", RANGES)
    ask(t, "x[0:8:3]", "x[1:7:2]", "steps", "One element is in both: which?")
    ask(t, "x[::6]", "x[2:5:2]", "ranges", RANGES)
    ask(t, "x[2::3]", "x[5:]", "start", SAME)


@is_alias.check(points=2)
def two_axes(t: Tester) -> None:
    """It is right for two and three axes, and for arrays walked backwards."""
    ask(t, "m[:, 1]", "m[:, 2]", "ranges", RANGES)
    ask(t, "m[:, :2]", "m[:, 2:]", "axes", AXES)
    ask(t, "m[2]", "m[:, 2]", "axes", "A row and a column meet in one entry.")
    ask(t, "m.T[1]", "m[:, 1]", "axes", SAME)
    ask(t, "c[..., 0]", "c[..., 1]", "axes", AXES)
    ask(t, "c[:, :2]", "c[:, 2:]", "axes", AXES)
    ask(t, "c[1]", "c[:, 2, 1]", "axes", AXES)
    ask(t, "c", "c[..., 1]", "axes", AXES)
    for k in (0, 1):
        ask(t, "x.reshape(2, 1, 3, 2)[..., :1]", f"x.reshape(1, 2, 3, 2)[..., {k}:]", "axes", AXES)
    ask(t, "x[::-1]", "x[1:4]", "backwards", BACKWARDS)
    ask(t, "x[4::-1]", "x[5:]", "backwards", BACKWARDS)
    ask(t, "m[::-1][:1]", "m[:2]", "backwards", BACKWARDS)
    ask(t, "m[:, ::-1][:, :2]", "m[:, :2]", "backwards", BACKWARDS)
    ask(t, "c[:, ::-1, ::-1][1]", "x[6:7]", "backwards", BACKWARDS)


@is_alias.check(points=1)
def odd_ones(t: Tester) -> None:
    """It is right for empty arrays, for stride 0, and for elements of any length."""
    ask(t, "x", "x.view(np.int8)[19:21]", "bytes", BYTES)
    ask(t, "x[:2]", "x.view(np.int8)[16:18]", "bytes", BYTES)
    ask(t, "x[3:]", "x.view(np.int8)[23:24]", "bytes", BYTES)
    ask(t, "x[1:]", "x.view(np.int8).view('S3')[2:3]", "bytes", BYTES)
    ask(t, "x[3:]", "x.view(np.uint16)[12:13]", "bytes", BYTES)
    for place in (47, 48):
        ask(t, "x.view('S24')[1:2]", f"x.view(np.int8)[{place}:{place + 1}]", "bytes", BYTES)
    ask(t, "x.real", "x.imag", "ranges", RANGES, dtype="complex128")
    ask(t, "x[:2]", "x.imag[1:]", "bytes", BYTES, dtype="complex128")
    packed = "x.view(np.int8)[:18].view([('a', 'i1'), ('b', 'i2')])"
    ask(t, f"{packed}['b']", f"{packed}['a']", "bytes", BYTES)
    ask(t, f"{packed}['b']", "x.view(np.int8)[16:18]", "bytes", BYTES)
    ask(t, "x", "x[3:3]", "empty", EMPTY)
    ask(t, "m[:, 2:2]", "m", "empty", EMPTY)
    ask(t, "x[0, ...]", "x", "no_axes", "An array without axes has one element.")
    ask(t, "x[0, ...]", "x[0, ...]", "no_axes", "An array without axes has one element.")
    ask(t, "x[0, ...]", "x[1, ...]", "no_axes", "An array without axes has one element.")
    ask(t, "x[3, ...]", "x[2:5]", "no_axes", "An array without axes has one element.")
    ask(t, "x[2:]", "x[3, ...]", "no_axes", "An array without axes has one element.")
    ask(t, "np.broadcast_to(x[5:6], (4,))", "np.broadcast_to(x[5:6], (2, 3))", "stride_0", SAME)
    ask(t, "np.broadcast_to(x[5:6], (4,))", "x[5:]", "stride_0", SAME)
    ask(t, "np.broadcast_to(x[5:6], (4,))", "x[6:]", "stride_0", "A stride of 0 stays where it is.")
