"""The bug hunt: a frozen layer that still drifts and decays."""

from __future__ import annotations

import numpy as np

from minigrad.course.diagnosis import named_one, not_it
from minigrad.course.l08_optimizer_state import lesson
from minigrad.course.l08_optimizer_state.common import is_same, listed, numbers
from minigrad.grader.compare import agree
from minigrad.grader.message import show, show_both
from minigrad.grader.tester import Tester

fine_tune = lesson.exercise(
    "fine_tune",
    difficulty=3,
    minutes=15,
    returns="None: the values of the model's parameters are trained",
    hints=(
        "Four functions, four promises. Call them one after another on a model with one frozen "
        "parameter, and after each call print its grad, its values and its requires_grad. Which "
        "promise is not kept to the letter?",
        "Print p.grad of the frozen parameter just before step_all. What does step_all do with "
        "that, according to its docstring, and is it right to?",
        "Zeros are a gradient too: they are 'a gradient has arrived, and it is 0'. One function "
        "promises that no parameter has a gradient, and leaves zeros.",
    ),
)
FUNCTIONS = ("freeze", "forget_gradients", "deliver_gradients", "step_all")
CULPRIT = "forget_gradients"


@fine_tune.check(points=2)
def diagnosis(t: Tester) -> None:
    """BUG names the function that breaks its promise."""
    start = "Watch the frozen parameter: its values, and its grad, after each function."
    name = named_one(t, "function", FUNCTIONS, start)
    if name != CULPRIT:
        keeps = {
            "freeze": "It sets requires_grad, so that no gradient arrives: as it says. Freeze "
            "nothing, and leave a name out of some gradients: who moves?",
            "deliver_gradients": "What is frozen, or missing, gets nothing from it, as it says. "
            "Print each grad before and after it.",
            "step_all": "It moves what has a gradient, as it says. Print each grad just before it: "
            "why does the frozen one have one?",
        }
        not_it(
            t,
            "the function that does not do what its docstring promises",
            name,
            keeps[name],
        )


def trained(values: dict, batches: list[dict], frozen: str, after: int) -> dict[str, np.ndarray]:
    """Return the values after training; frozen: the name of the frozen part."""
    x = {name: array.copy() for name, array in values.items()}
    velocity = {name: np.zeros_like(array) for name, array in values.items()}
    for number, gradients in enumerate(batches):
        for name, gradient in gradients.items():
            if number >= after and name.startswith(frozen):
                continue
            velocity[name] = 0.8 * velocity[name] + (gradient + 0.2 * x[name])
            x[name] = x[name] - 0.05 * velocity[name]
    return x


def tune(t: Tester, values: dict, batches: list[dict], prefix: str, after: int, story: str) -> dict:
    """Call fine_tune with the part `prefix` frozen after some steps."""
    given = f"fine_tune(model, batches, {prefix!r}, {after}) with {listed(values)}; {story}"
    return t.drive("fine_tune", values, batches, prefix, after, given=given)


@fine_tune.check(points=3)
def repair(t: Tester) -> None:
    """What is frozen, or not reached in a step, stays bit for bit; the rest is trained."""
    two, four = ("body.w", "head.w"), ("tail", "body.w", "head.w", "head.body")
    cases = (
        (two, "body", 2),
        (two, "body", 0),
        (two, "head", 2),
        (four, "he", 3),
        (four, "body", 1),
    )
    for names, prefix, after in cases:
        values = {name: numbers(t, 2) for name in names}
        batches = [{name: numbers(t, 2) for name in names} for _ in range(5)]
        batches[-1] = dict.fromkeys(names, np.zeros(2))
        expected = trained(values, batches, prefix, after)
        story = f"{after} steps, nothing frozen"
        before = tune(t, values, batches[:after], prefix, after, story)
        story = f"5 steps, {prefix} is frozen after {after} of them"
        got = tune(t, values, batches, prefix, after, story)
        for name in names:
            if name.startswith(prefix) and not is_same(got[name], before[name]):
                wanted, actual = show_both(before[name], got[name])
                t.fail(
                    "frozen_moved",
                    f"{name} = {wanted}: its value when it was frozen",
                    f"{name} = {actual} after the last step",
                    "What is in its grad when step_all comes to it? Print it after each function.",
                )
        check_trained(t, got, expected, values)
    for left_out in two:
        values = {name: numbers(t, 2) for name in two}
        batches = [{name: numbers(t, 2) for name in two} for _ in range(4)]
        for gradients in batches[2:]:
            del gradients[left_out]
        expected = trained(values, batches, "nothing", 4)
        story = f"4 steps, nothing frozen; {left_out} is not reached in steps 3, 4"
        got = tune(t, values, batches, "body", 4, story)
        if not agree(got[left_out], expected[left_out], rtol=1e-9, atol=1e-12):
            t.fail(
                "unreached_moved",
                f"{left_out} = {show(expected[left_out], bare=True)}: its value after step 2",
                f"{left_out} = {show(got[left_out], bare=True)} after step 4",
                "freeze was never called here, and no gradient arrived for it in these steps. Who "
                "left in its grad what step_all finds there?",
            )
        check_trained(t, got, expected, values)
    some = {name: numbers(t, 2) for name in four}
    told = "forget_gradients(model), the first grad None, the others 0, 1 and 2 in each entry"
    left = t.drive("forget", some, given=told)
    if not is_same(left, dict.fromkeys(left)):
        t.fail(
            "elsewhere",
            "grad None for all: 'no parameter of the model has a gradient'",
            ", ".join(f"{name}.grad = {show(g, bare=True)}" for name, g in left.items()),
            "The whole is right and this part is not: mend the part that broke its promise.",
        )


def check_trained(t: Tester, got: dict, expected: dict, values: dict) -> None:
    """Check that what is not frozen is trained as before."""
    for name, right in expected.items():
        if agree(got[name], right, rtol=1e-9, atol=1e-12):
            continue
        stands = is_same(got[name], values[name])
        wanted, actual = show_both(right, got[name])
        t.fail(
            "stands" if stands else "not_trained",
            f"{name} = {wanted}",
            f"{name} = {actual}" + (", as at first" if stands else ""),
            "Only what is frozen stays. What keeps the rest from its gradients?"
            if stands
            else "What is not frozen must be trained as before, decay and momentum included.",
        )
