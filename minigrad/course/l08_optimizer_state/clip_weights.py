"""Clipping weights without losing who they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.course.l08_optimizer_state import lesson
from minigrad.course.l08_optimizer_state.common import (
    is_same,
    listed,
    nothing_returned,
    numbers,
)
from minigrad.grader import samples
from minigrad.grader.message import show_both
from minigrad.grader.tester import Mistake, Tester

clip_weights_ = lesson.exercise(
    "clip_weights_",
    difficulty=2,
    minutes=8,
    returns="None: the results are written into the values of the model's parameters",
    hints=(
        "Three things must stay what they are: the Parameter in the model, its id, and the array "
        "in p.values. Only the numbers in the array change.",
        "np.clip(array, low, high) makes a new array. How do its numbers get into the old one?",
        "For each p in model.values(): np.clip(p.values, low, high, out=p.values), or "
        "p.values[...] = np.clip(p.values, low, high).",
    ),
)


OUTSIDE = "Which entries lie outside, and on which side?"
APART = "Others were cut, and this one is as it was. What sets it apart from them?"


def check(t: Tester, values: dict[str, np.ndarray], low: float, high: float) -> dict[str, Any]:
    """Call clip_weights_ and check the numbers; the last parameter is frozen, without gradient."""
    *others, frozen = values
    gradients = {name: 10 * values[name] for name in others}
    given = f"clip_weights_(model, {low:g}, {high:g}) with a model of {listed(values)}"
    if others:
        given += f"; {frozen} is frozen"
    got = t.drive("clip_weights", values, gradients, [frozen], low, high, given=given)
    check_values(t, got, values, gradients, low, high)
    return got


def random_model(t: Tester) -> dict[str, np.ndarray]:
    """Return values, some of them below -1 and some above 1."""
    return {
        "w": np.array([-2.0, 2.0, 0.5]) + numbers(t, 3, largest=0.4),
        "b": np.array([2.5, -0.2]) + numbers(t, 2, largest=0.4),
        "head": np.array([-3.0, 3.0]) + numbers(t, 2, largest=0.4),
    }


@clip_weights_.check(points=1)
def cut(t: Tester) -> None:
    """It cuts the values of all parameters to the interval, whatever their shape."""
    bounds = ((-0.7, 1.0), (-1.0, 0.6), (0.5, 0.5), (0.0, 0.8), (-0.8, 0.0), (-np.inf, 0.5))
    for low, high in bounds:
        check(t, random_model(t), low, high)
    edge = {"v": np.array([-1 - 1e-9, 0.5 + 1e-9, 0.2]), "w": np.array([-1.0, 0.5])}
    check(t, edge, -1.0, 0.5)  # hardly outside
    for x in samples.arrays(t.random):
        returned = check(t, {"v": x, "w": x}, -1.0, 0.5)["returned"]
    nothing_returned(t, returned)


def check_values(
    t: Tester,
    got: dict[str, Any],
    values: dict[str, np.ndarray],
    gradients: dict[str, np.ndarray],
    low: float,
    high: float,
) -> None:
    """Check the numbers in the model afterwards."""
    if got["names"] != list(values):
        t.fail(
            "names",
            f"a model with the names {', '.join(values)}",
            f"the names {', '.join(map(str, got['names'])) or '(none)'}",
            "Which line changes the model's keys?",
        )
    if got["returned"] is not None and is_same(got["values"], values):
        t.fail(
            "returned",
            "the model's own values cut, and None returned",
            "something returned, and the model as it was",
            "The trailing _ says: in place. What does the caller's model hold afterwards?",
        )
    stays = [name for name in values if is_same(got["values"].get(name), values[name])]
    for name, array in values.items():
        attempt = APART if name in stays and len(stays) < len(values) else OUTSIDE
        t.close(
            got["values"].get(name),
            np.clip(array, low, high),
            rtol=1e-12,
            atol=1e-12,
            what=name,
            attempt=samples.attempt_for(array, got["values"].get(name), attempt),
            mistakes=[
                Mistake(
                    "unchanged",
                    array,
                    "np.clip makes a new array. Who puts its numbers into the model?",
                ),
                Mistake("one_side", np.maximum(array, low), "What about those above high?"),
                Mistake("one_side", np.minimum(array, high), "What about those below low?"),
                Mistake(
                    "scaled",
                    array / max(1.0, float(np.linalg.norm(array))),
                    "That makes all of them smaller. Asked for is a cut of those outside.",
                ),
            ],
        )
        gradient = gradients.get(name)
        if not is_same(got["grads"][name], gradient):
            wanted, actual = show_both(gradient, got["grads"][name])
            t.fail(
                "clipped_gradient",
                f"{name}.grad = {wanted}, as it was",
                f"{name}.grad = {actual}",
                "Weights are to be cut here, gradients are another matter.",
            )


@clip_weights_.check(points=3)
def same_parameters(t: Tester) -> None:
    """The model holds the same Parameters, with the same ids, and the same arrays."""
    got = check(t, random_model(t), -1.0, 1.0)
    if not got["same_objects"]:
        kept = "with the old id" if got["same_ids"] else "with another id"
        t.fail(
            "new_parameter",
            "the very Parameters that the model held before",
            f"new ones, {kept}, in their places",
            "An optimizer finds state by the id, and steps the objects it holds. What is left "
            "of both?",
        )
    if got["frozen"] != ["head"]:
        t.fail(
            "flag",
            "the parameters as they were, head alone frozen",
            f"frozen now: {', '.join(got['frozen']) or '(none)'}",
            "Which line writes to p.requires_grad?",
        )
    if not got["same_ids"]:
        t.fail("new_id", "the same ids", "other ids", "Which line writes to p.id?")
    if not got["same_arrays"]:
        t.fail(
            "new_array",
            "the very arrays that p.values were, with the cut numbers in them",
            f"other arrays; the old ones still hold {listed(got['held'])}",
            "p.values = … puts another array there. How do you write into the one that is there?",
        )
