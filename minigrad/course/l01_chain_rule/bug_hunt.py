"""The bug hunt: an upstream gradient dropped in one of five operations."""

from __future__ import annotations

import numpy as np

from minigrad.course.diagnosis import named_place, not_it
from minigrad.course.l01_chain_rule import lesson
from minigrad.course.l01_chain_rule.common import DROPPED
from minigrad.grader.gradients import check_gradients
from minigrad.grader.samples import SHAPES, numbers
from minigrad.grader.tester import Mistake, Tester

pipeline_gradient = lesson.exercise(
    "pipeline_gradient",
    difficulty=3,
    minutes=15,
    returns="the gradient with respect to x",
    hints=(
        "All five pass with dy = 1, so ask each of them with dy = 1 and with dy = 2. "
        "A backward function is linear in dy: what must happen to its result?",
        "for op, rule in mine.RULES.items(): print(op, rule(1.0, 0.7), rule(2.0, 0.7))",
        "One of the five gives the same for dy = 1 and dy = 2: nothing that arrives from behind "
        "gets through it. Its local derivative is right; what is missing is the product.",
    ),
)
OPS = ("exp", "sqrt", "softplus", "square", "log")
CULPRIT = 2
# The result of each of the others: what arrives, times its slope.
DOES = {"exp": "dy * y", "sqrt": "dy / (2 * y)", "square": "2 * x * dy", "log": "dy / x"}


def pipeline(x: np.ndarray) -> np.ndarray:
    """Compute what the file's pipeline computes."""
    return np.log(np.log1p(np.exp(np.sqrt(np.exp(x)))) ** 2)


@pipeline_gradient.check(points=2)
def diagnosis(t: Tester) -> None:
    """BUG names the node that breaks the gradient."""
    start = "Compare the gradient that leaves each node with differences of the forward pass."
    place = named_place(t, "node", len(OPS), "the list", start)
    if place != CULPRIT:
        not_it(
            t,
            "the node whose function loses what arrives",
            f"node {place}: {OPS[place]}_backward returns {DOES[OPS[place]]}",
            "With dy = 2 its answer is twice that with dy = 1: what arrives goes through. Ask the "
            "other four in the same way.",
        )


def upstream_and_slope(op: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the arguments of an op's backward function after dy, and the local derivative."""
    if op == "exp":
        return np.exp(x), np.exp(x)
    if op == "sqrt":
        return np.sqrt(x), 0.5 / np.sqrt(x)
    if op == "softplus":
        return x, 1 / (1 + np.exp(-x))
    return (x, 2 * x) if op == "square" else (x, 1 / x)


@pipeline_gradient.check(points=3)
def repair(t: Tester) -> None:
    """The gradient of the whole is right, and so is each of the five."""
    for op in OPS:  # all five pass this even unchanged, so it gives nothing away
        x = numbers(t.random, (3,), low=0.5)
        kept, slope = upstream_and_slope(op, x)
        got = t.call(f"{op}_backward", np.ones(3), kept)
        broken = "This was right for dy = 1 as it came. What became of its local derivative?"
        t.close(got, slope, attempt=broken, what="dx")
    for _ in range(3):
        x, dy = (np.round(t.random.uniform(-1, 1, 4), 2) for _ in range(2))
        got = t.call("pipeline_gradient", x, dy)
        slopes = "Which of the five is wrong in a chain, yet right alone with dy = 1?"
        check_gradients(t, (got,), pipeline, (x,), dy, names=("dx",), attempt=slopes)
    compensated = "The whole is right and this part is wrong: mend the part that was broken."
    for op in OPS:
        for shape in SHAPES:
            x, dy = (numbers(t.random, shape, low=low) for low in (0.5, -2.0))
            kept, slope = upstream_and_slope(op, x)
            got = t.call(f"{op}_backward", dy, kept)
            lost = Mistake(f"{op}_dropped_upstream", slope, DROPPED)
            t.close(got, dy * slope, attempt=compensated, mistakes=[lost], what=f"dx of {op}")
