"""Checks a backward function against its forward one, along random directions in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from minigrad.grader.compare import agree, disagreements
from minigrad.grader.tester import Mistake, Tester

STEP = 2e-6
TOLERANCE = 1e-6
FLAT = "It is wrong where y does not change with the input: nothing may arrive there. What does?"


def directional(
    forward: Callable, inputs: Sequence[np.ndarray], dy: np.ndarray, direction: Sequence[np.ndarray]
) -> float:
    """Return the derivative of <dy, forward(inputs)> along a direction.

    Extrapolates two central differences to a step of 0 (Richardson). One alone would be off by more
    than TOLERANCE where entries are so small that the function bends within a step.
    """

    def difference(step: float) -> float:
        ends = [[x + s * v for x, v in zip(inputs, direction, strict=True)] for s in (step, -step)]
        ahead, behind = [float(np.sum(dy * forward(*moved))) for moved in ends]
        return (ahead - behind) / (2 * step)

    return (4 * difference(STEP) - difference(2 * STEP)) / 3


def numeric_gradient(
    forward: Callable, inputs: Sequence[np.ndarray], dy: np.ndarray, which: int
) -> np.ndarray:
    """Return the gradient with respect to one input, entry by entry."""
    gradient = np.empty_like(inputs[which])
    for i in np.ndindex(gradient.shape):
        direction = [np.zeros_like(x) for x in inputs]
        direction[which][i] = 1.0
        gradient[i] = directional(forward, inputs, dy, direction)
    return gradient


def check_gradients(
    t: Tester,
    got: Sequence[Any],
    forward: Callable,
    inputs: Sequence[np.ndarray],
    dy: np.ndarray,
    *,
    names: Sequence[str],
    attempt: str,
    mistakes: Iterable[Mistake] = (),
) -> None:
    """Fail unless `got` are the gradients of <dy, forward(inputs)>.

    Entries are computed, and shown, only when a random direction disagrees.

    Args:
        t: the check's tester, after the call.
        got: one gradient per input.
        forward: the operation, in NumPy.
        inputs: float64 arrays.
        dy: the upstream gradient.
        names: what messages call the gradients.
        attempt: the Try line for a mistake that `mistakes` does not list.
        mistakes: wrong answers, each in the form of the right one.
    """
    shapes_fit = all(
        isinstance(g, np.ndarray | np.generic) and np.shape(g) == x.shape and np.isfinite(g).all()
        for g, x in zip(got, inputs, strict=True)
    )
    if shapes_fit and t.survey is None:
        for _ in range(2):
            direction = [t.random.standard_normal(x.shape) for x in inputs]
            expected = directional(forward, inputs, dy, direction)
            with np.errstate(all="ignore"):  # a huge gradient overflows
                slope = sum(float(np.sum(g * v)) for g, v in zip(got, direction, strict=True))
            if not agree(slope, expected, rtol=TOLERANCE, atol=TOLERANCE):
                break
        else:
            for g, name in zip(got, names, strict=True):
                t.wide_enough(g, name)
            return
    parts = [(one, one.value if len(names) > 1 else (one.value,)) for one in mistakes]
    for which, name in enumerate(names):
        true = numeric_gradient(forward, inputs, dy, which)
        wrong = [replace(one, value=values[which]) for one, values in parts]
        at = true[disagreements(got[which], true, rtol=1e-5, atol=1e-6)]
        said = FLAT if at.size and not at.any() and true.any() else attempt
        t.close(got[which], true, rtol=1e-5, atol=1e-6, attempt=said, mistakes=wrong, what=name)
    if t.survey is None:
        t.fail(
            "value",
            "gradients that agree with differences of the forward pass",
            "gradients that are a little off",
            attempt,
        )
