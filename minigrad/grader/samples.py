"""Makes the arrays that checks pass to a learner's function: every kind that a docstring promises.

A check that draws three float64 numbers in a row cannot see a forgotten axis, a lost dtype, or
memory read in the wrong order. `arrays` goes through all of these; `views` lays the same numbers
out in other ways. The learner's process gets each array with the strides that it has here
(`wire.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from minigrad.grader.wire import leaves

Shape = tuple[int, ...]
COPIED = (
    "In this layout nothing has arrived in the array. Which step makes a copy where an array does "
    "not lie in one piece?"
)

SHAPES: tuple[Shape, ...] = (
    *((3,), (), (1,), (0,), (2, 3), (1, 3), (2, 1), (2, 0), (0, 3), (2, 1, 3)),
)
DTYPES = ("float64", "float32")


def numbers(
    random: np.random.Generator,
    shape: Shape,
    dtype: str = "float64",
    low: float = -2.0,
    high: float = 2.0,
) -> np.ndarray:
    """Return an array of short numbers in [low, high], without 0, which would hide mistakes.

    Args:
        random: where the numbers come from.
        shape: the array's shape; () gives an array without axes.
        dtype: a floating type; for an integer type the numbers are whole.
        low: the least number.
        high: the greatest number.
    """
    whole = np.issubdtype(dtype, np.integer)
    drawn = np.asarray(random.uniform(low, high, shape)).round(0 if whole else 2)
    drawn = np.where(drawn == 0, high, drawn)
    return np.array(np.clip(drawn, low, high), dtype)


def arrays(
    random: np.random.Generator,
    *,
    shapes: Iterable[Shape] = SHAPES,
    dtypes: Iterable[str] = DTYPES,
    low: float = -2.0,
    high: float = 2.0,
    layouts: bool = True,
) -> Iterator[np.ndarray]:
    """Yield an array of each shape, then one of each further dtype, then one in each layout.

    The plainest come first, so that a message names a dtype or a layout only where it matters.

    Args:
        random: where the numbers come from, such as a Tester's `random`.
        shapes: the shapes; by default with 0 to 3 axes, of lengths 0, 1 and more.
        dtypes: the dtypes; every shape comes in the first, the largest shape in all.
        low: the least number.
        high: the greatest number.
        layouts: whether to yield arrays that are not contiguous.
    """
    shapes, (first, *others) = list(shapes), dtypes
    for shape in shapes:
        yield numbers(random, shape, first, low, high)
    widest = max(shapes, key=lambda shape: (int(np.prod(shape)), len(shape)))
    for dtype in others:
        yield numbers(random, widest, dtype, low, high)
    if layouts:
        yield from views(numbers(random, widest, first, low, high))


def alike(random: np.random.Generator, n: int, **which: Any) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield, for each array of `arrays(**which)`, n arrays of its shape, dtype and layout."""
    yield from zip(*(arrays(random, **which) for _ in range(n)), strict=True)


def views(x: np.ndarray) -> Iterator[np.ndarray]:
    """Yield arrays equal to x in other layouts: reversed, every second entry, transposed.

    >>> [view.strides for view in views(np.ones((2, 3)))]
    [(-24, -8), (96, 16), (8, 16)]
    """
    x = np.asarray(x)
    if not x.ndim:
        return
    backwards = (slice(None, None, -1),) * x.ndim
    yield np.ascontiguousarray(x[backwards])[backwards]
    spaced = np.zeros([2 * n for n in x.shape], x.dtype)
    every_second = (slice(None, None, 2),) * x.ndim
    spaced[every_second] = x
    yield spaced[every_second]
    if x.ndim > 1:
        yield np.ascontiguousarray(x.T).T


def odd_input(arguments: object) -> str:
    """Return the Try line after an error for arrays without axes or entries, '' for others.

    An array without axes among others with axes is not odd: the gradient of a sum is one.
    """
    arrays = leaves(arguments, np.ndarray)
    if any(array.size == 0 for array in arrays):
        return "An array here is empty. Which step needs an entry, or counts on one?"
    if arrays and all(array.ndim == 0 for array in arrays):
        return "The arrays here have no axes, their shape is (). Which step needs one?"
    return ""


def attempt_for(before: np.ndarray, after: Any, otherwise: str) -> str:
    """Return the Try line for an array that should have changed: that of a copy, or `otherwise`.

    Layouts come after all plain arrays, so an array that stays unchanged only there was copied.
    """
    is_view = isinstance(before, np.ndarray) and not before.flags.c_contiguous
    return COPIED if is_view and np.array_equal(before, after) else otherwise


def tolerance(dtype: str | np.dtype) -> float:
    """Return the relative tolerance for results computed in this dtype."""
    return 1e-9 if np.dtype(dtype) == np.float64 else 1e-4
