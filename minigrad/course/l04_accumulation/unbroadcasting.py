"""The gradient of an operand that was broadcast."""

from __future__ import annotations

import numpy as np

from minigrad.course.l04_accumulation import lesson
from minigrad.grader.samples import numbers, tolerance, views
from minigrad.grader.tester import Tester

Shape = tuple[int, ...]

unbroadcast = lesson.exercise(
    "unbroadcast",
    difficulty=3,
    minutes=15,
    returns="an array of the operand's own shape",
    hints=(
        "Write the shapes below each other, aligned at their right ends, as NumPy does. Which axes "
        "of g does the operand not have? Along which was it copied?",
        "Copies share one entry, so its gradient is a sum over them. First sum over the "
        "g.ndim - len(shape) axes in front. Then over the axes whose length in shape is 1.",
        "The axes in front vanish, the axes of length 1 stay: g.sum(axis=..., keepdims=True) keeps "
        "them all, and .reshape(shape) drops those in front.",
    ),
)


def summed(g: np.ndarray, shape: Shape) -> np.ndarray:
    """Return the sum for each entry of the operand, by numbering its entries."""
    size = int(np.prod(shape))
    entries = np.broadcast_to(np.arange(size).reshape(shape), g.shape)
    return np.bincount(entries.ravel(), weights=g.ravel(), minlength=size).reshape(shape) * 1.0


def after_new_axes(g, shape):
    """Return the sum over the leading axes, which the operand lacks."""
    return g.sum(axis=tuple(range(g.ndim - len(shape))))


@unbroadcast.mistake("empty", "An axis of length 1 can be stretched to length 0. What then?")
def _(g, shape):
    g = after_new_axes(g, shape)
    return g.sum(axis=tuple(a for a, n in enumerate(shape) if g.shape[a] > n == 1), keepdims=True)


@unbroadcast.mistake(
    "still_stretched",
    "The new axes are gone. The operand had an axis of length 1: is it 1 again?",
)
def _(g, shape):
    return after_new_axes(g, shape)


@unbroadcast.mistake(
    "new_axes", "The operand has fewer axes than g. What becomes of those in front?"
)
def _(g, shape):
    return g.sum(axis=tuple(a - len(shape) for a, n in enumerate(shape) if n == 1), keepdims=True)


@unbroadcast.mistake(
    "keepdims", "The numbers are right and an axis is lost: an axis of length 1 is an axis, too."
)
def _(g, shape):
    return after_new_axes(g, shape).sum(axis=tuple(a for a, n in enumerate(shape) if n == 1))


@unbroadcast.mistake("one_copy", "That is the gradient of one copy alone. What do the others add?")
def _(g, shape):
    return g[(0,) * (g.ndim - len(shape))][tuple(slice(n) for n in shape)]


@unbroadcast.mistake("wrong_side", "Where does NumPy put new axes, in front or behind?")
def _(g, shape):
    return g.sum(axis=tuple(range(len(shape), g.ndim)))


@unbroadcast.mistake("one_axis", "One axis in front is gone. How many did NumPy put there?")
def _(g, shape):
    return g.sum(axis=0)


@unbroadcast.mistake(
    "mean", "A mean is a sum divided by something. Who divided in the forward pass?"
)
def _(g, shape):
    mean = after_new_axes(g, shape) / np.prod(g.shape[: g.ndim - len(shape)])
    return mean.mean(axis=tuple(a for a, n in enumerate(shape) if n == 1), keepdims=True)


@unbroadcast.mistake(
    "total", "Every entry got the sum of everything. Which copies are this entry's own?"
)
def _(g, shape):
    return np.full(shape, g.sum())


def check_sum(t: Tester, g: np.ndarray, shape: Shape) -> None:
    """Check the gradient of an operand that was broadcast to g's shape."""
    is_small = g.size <= 12 and g.flags.c_contiguous  # small enough to show whole
    got = t.compare(
        summed(g, shape),
        g,
        shape,
        given=f"unbroadcast(g, {shape}) with g of shape {g.shape}: {g.tolist()}" * is_small,
        rtol=tolerance(g.dtype),
        attempt="Stretch a small operand by hand: in which places of g does its first entry stand?",
    )
    if type(got) in (int, float):
        t.fail(
            "type",
            f"an array of shape {shape}",
            f"{got!r:.20}, a Python {type(got).__name__}",
            "A number of Python's has neither shape nor dtype. What does g.sum() give?",
        )


@unbroadcast.check(points=1)
def new_axes(t: Tester) -> None:
    """It sums over axes that were put in front."""
    for g_shape, shape in (((2, 3), (3,)), ((2, 2), (2,)), ((2, 2, 3), (3,)), ((3, 2, 2), (2, 2))):
        check_sum(t, numbers(t.random, g_shape), shape)


@unbroadcast.check(points=1)
def stretched_axes(t: Tester) -> None:
    """It sums over axes of length 1 that were stretched, and keeps them."""
    for g_shape, shape in (((2, 3), (1, 3)), ((2, 3), (2, 1)), ((2, 3), (1, 1)), ((2, 3), (2, 3))):
        check_sum(t, numbers(t.random, g_shape), shape)


@unbroadcast.check(points=1)
def numbers_and_nothing(t: Tester) -> None:
    """It is right for a single number, and where an axis has length 0."""
    for g_shape, shape in (
        ((3,), ()),
        ((), ()),
        ((2, 2), ()),
        ((0, 2), (1, 2)),
        ((0,), ()),
        ((3, 0), (1, 1)),
        ((2, 0), (0,)),
    ):
        check_sum(t, numbers(t.random, g_shape), shape)


@unbroadcast.check(points=2)
def any_shapes(t: Tester) -> None:
    """It is right for new and stretched axes at once, in float32, and in any memory layout."""
    for g_shape, shape in (
        ((2, 3), (1,)),
        ((1, 3), (3,)),
        ((1, 1), (1,)),
        ((2, 3, 2), (1, 2)),
        ((2, 3, 2), (3, 1)),
        ((2, 1, 3), (1, 1)),
        ((2, 3, 3), (1, 3, 1)),
        ((2, 4, 3), (2, 1, 3)),
        ((2, 2, 2), ()),
        ((2, 2, 2, 3), (3,)),
        ((3, 2, 1, 2), (2, 1, 1)),
        ((2, 3, 2, 3), (1, 3, 2, 1)),
        ((2, 0, 3), (1, 3)),
        ((0, 2), (2,)),
    ):
        check_sum(t, numbers(t.random, g_shape), shape)
    check_sum(t, numbers(t.random, (2, 3, 2), "float32", low=0.5), (3, 1))
    for g in views(numbers(t.random, (2, 3, 2))):
        check_sum(t, g, (3, 2))
