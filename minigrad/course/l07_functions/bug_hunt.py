"""The bug hunt: one of five operations in a row kills the gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.course.diagnosis import named_one, not_it
from minigrad.course.l07_functions import lesson
from minigrad.course.l07_functions.common import (
    NEAR,
    ask,
    call_text,
    check_second,
    check_two_calls,
    spelled,
)
from minigrad.grader.gradients import check_gradients, numeric_gradient
from minigrad.grader.tester import Mistake, Tester

deep_gradient = lesson.exercise(
    "deep_gradient",
    difficulty=2,
    minutes=10,
    returns="the gradient with respect to x",
    needs="engine",
    hints=(
        "Record the pass: with mg.debug.record_grad_function() as log: "
        "mine.deep_gradient(x, dy), then print(log). Each line shows the norm of what came in "
        "and of what went out.",
        "One operation divides its values by about 40 going forward, so its gradient shrinks by "
        "as much: that is right. Which other one shrinks the gradient by far more than its values?",
        "Softcap: its local derivative is taken at x. But tanh was given x / cap. Near 0 both are "
        "1, which is why its author saw nothing.",
    ),
)
CULPRIT = "Softcap"
LOST = "Which operation shrinks the gradient by far more than its values?"
NOT_LOST = "Something arrives. Are all five backwards right: which of them did you change?"
AT_X = "Its slope was taken at x. What went into tanh?"
NO_SLOPE = "Softcap hands dy on as it is: right near 0. And where the cap bites?"
INNER_SLOPE = "Softcap has the cap in front of tanh and inside it. What is left of it in the slope?"
OPS = ("Widen", "Softcap", "Scaled", "Leaky", "Swish")
DOES = {
    "Widen": "multiplies both, values and gradient, by its scale",
    "Scaled": "divides both, values and gradient, by r",
    "Leaky": "takes 0.2 of both, values and gradient, where x is negative",
    "Swish": "takes nearly the same share of values and gradient where x is large",
}
NUMBERS = {"Widen": 40.0, "Softcap": 50.0}  # the arguments that deep passes


def operation(name: str, x: np.ndarray, number: float | None = None) -> np.ndarray:
    """Compute one of the five operations, for a scale or cap such as deep's."""
    number = NUMBERS.get(name, 1.0) if number is None else number
    if name == "Widen":
        return number * x
    if name == "Softcap":
        return number * np.tanh(x / number)
    if name == "Scaled":
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True))
    if name == "Leaky":
        return np.where(x > 0, x, 0.2 * x)
    return x / (1 + np.exp(-x))


def deep(x: np.ndarray) -> np.ndarray:
    """Compute what the file's deep computes."""
    for name in OPS:
        x = operation(name, x)
    return x


def random_x(t: Tester, shape: tuple[int, int], scale: float = 1.0) -> np.ndarray:
    """Return entries away from 0, rounded as messages show them."""
    signs = t.random.choice([-1, 1], shape)
    return scale * np.round(signs * t.random.uniform(0.3, 1.5, shape), 2)


@deep_gradient.check(points=2)
def diagnosis(t: Tester) -> None:
    """BUG names the operation that kills the gradient."""
    start = "Record a backward pass: by what factor does each operation change the norm?"
    name = named_one(t, "op", OPS, start)
    if name != CULPRIT:
        not_it(
            t,
            "the operation that loses what arrives",
            f"{name}, which {DOES[name]}",
            "Print the norms of values and of gradients after each of the five. For which does the "
            "one shrink without the other?",
        )


def as_array(t: Tester, got: Any) -> Any:
    """Return the result; fail if it is None."""
    if got is None:
        t.none(t.exercise.returns)
    return got


@deep_gradient.check(points=3)
def repair(t: Tester) -> None:
    """The gradient of the whole is right, and so is each of the five, near 0 and far from it."""
    for name in OPS:
        same_value(t, name, random_x(t, (2, 3)), [NUMBERS[name]] if name in NUMBERS else [])
    for shape in ((1, 3), (2, 3)):
        x, dy = random_x(t, shape), np.round(t.random.uniform(-1, 1, shape), 2)
        given = f"deep_gradient(x, dy), x = {spelled(x)}, dy = {spelled(dy)}"
        got = as_array(t, ask(t, "deep_gradient", x, dy, given=given))
        right = numeric_gradient(deep, (x,), dy, 0)
        local = 1 - np.tanh(operation("Widen", x) / 50.0) ** 2
        check_gradients(
            t,
            (got,),
            deep,
            (x,),
            dy,
            names=("dx",),
            attempt=LOST if norm(got) < norm(right) / 10 else NOT_LOST,
            mistakes=[
                Mistake("no_slope", right / local, NO_SLOPE),
                Mistake("inner_slope", right / 50.0, INNER_SLOPE),
                Mistake("outer_slope", right * 50.0, INNER_SLOPE),
            ],
        )
    for name in OPS:
        number = NUMBERS.get(name)
        for scale, given_number in ((0.01, number), (1.0, number), (20.0, number), (1.0, 2.0)):
            numbers = [] if number is None else [given_number]
            alone(t, name, random_x(t, (2, 3), scale), numbers)
    x, dy, v = random_x(t, (2, 3)), random_x(t, (2, 3)), random_x(t, (2, 3))
    bend = -2 * np.tanh(x / 2.0) / 2.0
    check_second(
        t, x, dy, v, bend * softcap_slope(x, dy * v, 2.0), softcap_slope(x, v, 2.0),
        numbers=(2.0,), name=CULPRIT,
    )  # fmt: skip
    x1, x2 = random_x(t, (1, 2))[0], random_x(t, (1, 2))[0]
    check_two_calls(t, x1, x2, softcap_slope, [[2.0], [50.0]], name=CULPRIT)


def softcap_slope(x: np.ndarray, dy: np.ndarray, cap: float) -> np.ndarray:
    """Return the gradient of Softcap."""
    return dy * (1 - np.tanh(x / cap) ** 2)


def norm(got: Any) -> float:
    """Return a gradient's norm, inf for anything else."""
    is_real = isinstance(got, np.ndarray) and got.dtype.kind == "f"
    return float(np.sqrt(np.sum(got**2))) if is_real else np.inf


def same_value(t: Tester, name: str, x: np.ndarray, numbers: list) -> None:
    """Fail unless one of the five operations still computes what it did before."""
    t.about = f"{name}.forward"
    got = ask(t, "value", name, x, numbers, given=call_text(name, x, numbers))
    still = "What the operations compute was right. Only a backward is to be repaired."
    t.close(got, operation(name, x, *numbers), what="y", attempt=still, **NEAR)
    t.about = t.exercise.name


def alone(t: Tester, name: str, x: np.ndarray, numbers: list) -> None:
    """Check the gradient of one of the five operations."""
    dy = np.round(t.random.uniform(0.5, 2, x.shape), 2)
    given = f"{call_text(name, x, numbers)} alone, dy = {spelled(dy)}"
    got = as_array(t, ask(t, "alone", name, x, numbers, dy, given=given))
    mistakes = []
    if name == CULPRIT:
        [cap] = numbers
        mistakes = [
            Mistake(
                "at_x", dy * (1 - np.tanh(x) ** 2), "Its slope was taken at x. What went into tanh?"
            ),
            Mistake("inner_slope", dy * (1 - np.tanh(x / cap) ** 2) / cap, INNER_SLOPE),
            Mistake("no_slope", dy, NO_SLOPE),
        ]
    t.about = f"{name}.backward"
    check_gradients(
        t,
        (got,),
        lambda x: operation(name, x, *numbers),
        (x,),
        dy,
        names=(f"dx of {name}",),
        attempt="Each of the five must be right by itself, for small and large x and any number.",
        mistakes=mistakes,
    )
