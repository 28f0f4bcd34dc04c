"""The gradient of an operand that was broadcast."""

from __future__ import annotations

import numpy as np

from minigrad.course.l04_accumulation.lesson import lesson
from minigrad.grader.tester import Mistake, Tester

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
    """Return the sum per entry of the operand, found by numbering its entries."""
    size = int(np.prod(shape))
    numbers = np.broadcast_to(np.arange(size).reshape(shape), g.shape)
    return np.bincount(numbers.ravel(), weights=g.ravel(), minlength=size).reshape(shape) * 1.0


def wrong_sums(g: np.ndarray, shape: Shape, right: np.ndarray) -> list[Mistake]:
    """Return what people compute instead of the sum over copies."""
    n_new = g.ndim - len(shape)
    new = tuple(range(n_new))
    stretched = tuple(axis for axis, length in enumerate(shape) if length == 1)
    from_left = tuple(axis for axis in stretched if axis < g.ndim)
    summed_left = g.sum(axis=new)
    of_ones = tuple(a for a in stretched if g.shape[n_new + a] > 1)
    one_copy = g[(0,) * n_new] if g.size else g
    if g.size:
        one_copy = one_copy[tuple(slice(0, 1) if n == 1 else slice(None) for n in shape)]
    in_shape = g.ndim == n_new + len(shape) and right.size
    wrong: list[tuple[str, np.ndarray, str]] = [
        (
            "empty",
            summed_left.sum(axis=of_ones, keepdims=True),
            "An axis of length 1 can also be stretched to length 0. What is its gradient then?",
        ),
        (
            "still_stretched",
            summed_left,
            "The new axes are gone. The operand had an axis of length 1: is it 1 again?",
        ),
        (
            "new_axes",
            g.sum(axis=tuple(n_new + a for a in stretched), keepdims=True),
            "The operand has fewer axes than g. What becomes of those in front?",
        ),
        ("as_it_came", g, "One entry was used in several places. What is its whole gradient?"),
        (
            "keepdims",
            summed_left.sum(axis=stretched),
            "The numbers are right and an axis is lost: an axis of length 1 is an axis, too.",
        ),
        (
            "one_copy",
            one_copy,
            "That is the gradient of one copy alone. What do the other copies add?",
        ),
        (
            "from_the_left",
            g.sum(axis=from_left, keepdims=True),
            "NumPy aligns two shapes at their right ends. Which axis of g belongs to which?",
        ),
    ]
    if n_new:
        wrong += [
            (
                "wrong_side",
                g.sum(axis=tuple(range(len(shape), g.ndim))),
                "Where does NumPy put new axes, in front or behind? Sum over those.",
            ),
            (
                "one_axis",
                g.sum(axis=0),
                "One axis in front is gone. How many did NumPy put there?",
            ),
        ]
    if in_shape:
        mean = right * (right.size / g.size) if g.size else right
        wrong += [
            (
                "mean",
                mean,
                "A mean is a sum divided by something. Who divided in the forward pass?",
            ),
            (
                "total",
                np.full(shape, g.sum()),
                "Every entry got the sum of everything. Which copies are this entry's own?",
            ),
        ]
    return [Mistake(*one) for one in wrong]


def check_sum(t: Tester, g_shape: Shape, shape: Shape) -> None:
    """Ask for the gradient of an operand that was stretched to g_shape."""
    g = np.array(np.round(t.random.uniform(-2, 2, g_shape), 1))
    g[g == 0] = 0.7  # a zero would hide a mistake
    right = summed(g, shape)
    got = t.call("unbroadcast", g, shape)
    if g.size <= 12:  # small enough to be shown as a whole
        t.given = f"unbroadcast(g, {shape}) with g of shape {g_shape}: {g.tolist()}"
    t.close(
        got,
        right,
        attempt="Stretch a small operand by hand: in which places of g does its first entry stand?",
        mistakes=wrong_sums(g, shape, right),
    )


@unbroadcast.check(points=1)
def new_axes(t: Tester) -> None:
    """It sums over axes that were put in front."""
    for g_shape, shape in (((2, 3), (3,)), ((2, 2), (2,)), ((2, 2, 3), (3,)), ((3, 2, 2), (2, 2))):
        check_sum(t, g_shape, shape)


@unbroadcast.check(points=1)
def stretched_axes(t: Tester) -> None:
    """It sums over axes of length 1 that were stretched, and keeps them."""
    for g_shape, shape in (((2, 3), (1, 3)), ((2, 3), (2, 1)), ((2, 3), (1, 1)), ((2, 3), (2, 3))):
        check_sum(t, g_shape, shape)


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
        check_sum(t, g_shape, shape)


@unbroadcast.check(points=2)
def any_shapes(t: Tester) -> None:
    """It is right for random shapes of up to four axes."""
    for _ in range(12):
        g_shape = tuple(int(n) for n in t.random.integers(1, 4, t.random.integers(1, 5)))
        kept = g_shape[int(t.random.integers(len(g_shape) + 1)) :]
        shape = tuple(1 if t.random.random() < 0.4 else n for n in kept)
        check_sum(t, g_shape, shape)
