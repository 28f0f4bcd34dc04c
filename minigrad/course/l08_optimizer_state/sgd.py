"""The optimizer: which parameters, and who owns what is remembered of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.course.l08_optimizer_state.common import is_same, listed, numbers
from minigrad.course.l08_optimizer_state.lesson import lesson
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

SGD = lesson.exercise(
    "SGD",
    difficulty=3,
    minutes=20,
    returns="None: step() writes into the parameters and into self.state",
    hints=(
        "step is a loop over self.parameters. Which ones does it skip? Ask each for its grad and "
        "its requires_grad first.",
        "self.state is a dict, and the key is p.id. Look there first; only where nothing is found, "
        "put a fresh dict there. Then hand that very dict to sgd_update.",
        "if p.grad is None or not p.requires_grad: continue. If p.id is not in self.state: put "
        "{'momentum': np.zeros_like(p.values)} there, or {} if momentum is 0. Then sgd_update"
        "('SGD', p.values, p.grad, self.state[p.id], hyperparameters), with a dict of the three.",
    ),
)


def run(
    t: Tester,
    values: dict[str, np.ndarray],
    rounds: list[dict[str, np.ndarray]],
    hyperparameters: dict[str, float],
    frozen: tuple[str, ...] = (),
) -> list[dict[str, Any]]:
    """Step a new SGD once for each dict of gradients; return what is seen after each step."""
    texts = [
        ", ".join(
            f"{name}.grad = {show(g[name], bare=True) if name in g else None}" for name in values
        )
        for g in rounds[:2]
    ]
    same = all(is_same(g, rounds[0]) for g in rounds)
    steps = f"{len(rounds)} steps, each with {texts[0]}" if same else f"steps: {'; '.join(texts)}"
    steps = f"a step with {texts[0]}" if len(rounds) == 1 else steps
    cold = f" (frozen: {', '.join(frozen)})" if frozen else ""
    numbers_text = ", ".join(f"{name}={value:g}" for name, value in hyperparameters.items())
    given = f"SGD([{', '.join(values)}], {numbers_text}) with {listed(values)}{cold}; {steps}"
    rows = t.drive("steps", values, list(frozen), rounds, hyperparameters, given=given)
    for step, row in enumerate(rows, 1):
        for name, value in row["values"].items():
            if not isinstance(value, np.ndarray):
                t.fail(
                    "values_lost",
                    f"{name}.values after step {step}: an array",
                    f"{name}.values = {show(value)}",
                    "sgd_update returns None and writes into p.values. What do you assign to it?",
                )
    return rows


@SGD.check(points=2)
def trajectory(t: Tester) -> None:
    """With a constant gradient, it follows the formula for any number of steps."""
    for momentum in (0.0, 0.5):
        x, g, rate = numbers(t, 2), numbers(t, 2), 0.1
        n = int(t.random.integers(3, 6))
        hyperparameters = {"learning_rate": rate, "momentum": momentum}
        rows = run(t, {"w": x}, [{"w": g}] * n, hyperparameters)
        for k, row in enumerate(rows, 1):
            # v after j steps is g (1 - m^j) / (1 - m), a geometric series
            series = sum((1 - momentum**j) / (1 - momentum) for j in range(1, k + 1))
            found = row["values"]["w"]
            started_anew = "Every step is as long as the first. What is left of state when it ends?"
            standing = "The parameter has not moved. Is sgd_update called, and with p.values?"
            t.close(
                found,
                x - rate * g * series,
                what=f"w after step {k}",
                attempt="Is it one call of sgd_update a step, with the state of the step before?",
                mistakes=[
                    Mistake("standing", x, standing),
                    Mistake("started_anew", x - k * rate * g, started_anew),
                ],
            )


@SGD.check(points=2)
def own_state(t: Tester) -> None:
    """Each parameter has its own state, kept in the optimizer under its id."""
    values = {"w": numbers(t, 2), "b": numbers(t, 2)}
    rounds = [{name: numbers(t, 2) for name in values} for _ in range(2)]
    rows = run(t, values, rounds, {"learning_rate": 0.1, "momentum": 0.5})
    x, v = values, {name: np.zeros(2) for name in values}
    shared_x, shared_v = {n: a.copy() for n, a in values.items()}, np.zeros(2)
    for k, (row, gradients) in enumerate(zip(rows, rounds, strict=True), 1):
        v = {name: 0.5 * v[name] + gradients[name] for name in values}
        x = {name: x[name] - 0.1 * v[name] for name in values}
        for name in values:
            shared_v = 0.5 * shared_v + gradients[name]
            shared_x[name] = shared_x[name] - 0.1 * shared_v
        for name in values:
            t.close(
                row["values"][name],
                x[name],
                what=f"{name} after step {k}",
                attempt="Whose momentum is in this step?",
                mistakes=[
                    Mistake(
                        "shared",
                        shared_x[name],
                        "The momentum of one parameter has moved the other. How many are there?",
                    )
                ],
            )
        check_state(t, row, v, k)


def check_state(t: Tester, row: dict[str, Any], v: dict[str, np.ndarray], step: int) -> None:
    """Check optimizer.state after a step."""
    found, strangers = row["state"], row["strangers"]
    wanted = f"optimizer.state with the ids of {' and '.join(v)} as its keys"
    if not isinstance(found, dict):
        t.fail("no_dict", wanted, show(found), "self.state is a dict: look at the docstring.")
    if strangers or found.keys() != v.keys():
        got = f"the keys {', '.join([*(f'{n}.id' for n in found), *strangers]) or '(none)'}"
        t.fail(
            "wrong_key",
            wanted,
            f"{got}, after step {step}",
            "What does a parameter keep, whatever its place in a list and its values are?",
        )
    for name in v:
        slots = found[name]
        if not isinstance(slots, dict) or "momentum" not in slots:
            t.fail(
                "no_slot",
                f"state[{name}.id] = {{'momentum': {show(v[name], bare=True)}}}",
                f"state[{name}.id] = {show(slots)}, after step {step}",
                "What is kept under an id is a dict, with the array under 'momentum'.",
            )
        kept = slots["momentum"]
        t.close(
            kept,
            v[name],
            what=f"state[{name}.id]['momentum'] after step {step}",
            attempt="It is sgd_update that keeps v up to date. Which array was it given?",
        )


@SGD.check(points=2)
def left_alone(t: Tester) -> None:
    """What has no gradient, or is frozen, stays as it is and gets no state."""
    hyperparameters = {"learning_rate": 0.1, "momentum": 0.5, "weight_decay": 0.5}
    values = {"w": numbers(t, 2), "b": numbers(t, 2)}
    gradients = {name: -2 * array for name, array in values.items()}  # decay does not undo them
    cases: list[tuple[str, tuple[str, ...], list[dict]]] = [
        ("its grad is None", (), [{"w": gradients["w"]}] * 2),
        ("it is frozen", ("b",), [gradients] * 2),
    ]
    # The one that is left alone comes last, then first: a loop that ends there shows only then.
    orders = [(*case, order) for case in cases for order in ("wb", "bw")]
    for why, frozen, rounds, order in orders:
        in_order = {name: values[name] for name in order}
        for row in run(t, in_order, rounds, hyperparameters, frozen):
            found = row["values"]["b"]
            if not is_same(found, values["b"]):
                t.fail(
                    "frozen_moved" if frozen else "none_moved",
                    f"b = {show(values['b'], bare=True)}, as it was: {why}",
                    f"b = {show(found, bare=True)}",
                    "`requires_grad` says whether it may move, whatever grad is."
                    if frozen
                    else "No gradient is not a gradient of zeros: those decay, and coast.",
                )
            if is_same(row["values"]["w"], values["w"]):
                t.fail(
                    "all_stand",
                    "w moved: it has a gradient",
                    f"w = {show(values['w'], bare=True)}, as it was",
                    "Does the loop end at the first parameter that is left alone?",
                )
            if not isinstance(row["state"], dict) or "b" in row["state"]:
                t.fail(
                    "state_too_early",
                    f"no state for b: {why}",
                    "state for b",
                    "When is state made: before, or after asking whether p is updated at all?",
                )
    coasting(t, values, gradients, hyperparameters)


def coasting(t: Tester, values: dict, gradients: dict, hyperparameters: dict) -> None:
    """Check a parameter that has momentum, and no gradient in the second step."""
    rows = run(t, values, [gradients, {"w": gradients["w"]}], hyperparameters)
    first, second = rows
    if not is_same(second["values"]["b"], first["values"]["b"]):
        t.fail(
            "none_moved",
            f"b = {show(first['values']['b'], bare=True)} after both: no gradient in step 2",
            f"b = {show(second['values']['b'], bare=True)} after step 2",
            "No gradient is not a gradient of zeros: those decay, and coast.",
        )
    if not is_same(second["state"].get("b"), first["state"].get("b")):
        t.fail(
            "state_lost",
            "the state of b after step 2 as after step 1",
            f"{second['state'].get('b')}",
            "A parameter that is left alone keeps its state for the next time.",
        )


@SGD.check(points=1)
def same_arrays(t: Tester) -> None:
    """The values stay in their arrays, gradients stay as they are, momentum has values' dtype."""
    x, g = numbers(t, 2), numbers(t, 2)
    hyperparameters = {"learning_rate": 0.1, "momentum": 0.5, "weight_decay": 0.2}
    rows = run(t, {"w": x}, [{"w": g}] * 2, hyperparameters)
    for row in rows:
        if not is_same(row["grads"]["w"], g) or not row["same_grads"]:
            t.fail(
                "changed_gradient",
                f"w.grad = {show(g, bare=True)}, as it was",
                f"w.grad = {show(row['grads']['w'], bare=True)}",
                "Someone may still want to look at the gradient. Who zeroes it, and when?",
            )
        if not row["same_arrays"] or not is_same(row["held"]["w"], row["values"]["w"]):
            t.fail(
                "other_array",
                f"the array that w.values was, with {show(row['values']['w'], bare=True)} in it",
                f"another array; the old one still has {show(row['held']['w'], bare=True)}",
                "p.values = … puts another array there. Who else may hold the old one?",
            )
    small = {"w": x.astype(np.float32)}
    row = run(t, small, [{"w": g.astype(np.float32)}], hyperparameters)[0]
    slots = row["state"].get("w") if isinstance(row["state"], dict) else None
    kept = slots.get("momentum") if isinstance(slots, dict) else slots
    if not isinstance(kept, np.ndarray) or kept.dtype != np.float32:
        t.fail(
            "dtype",
            "state[w.id]['momentum'], an array of float32, as w.values is",
            f"state[w.id]['momentum'] = {show(kept)}",
            "The momentum has the dtype of the values. Which one does np.zeros(shape) choose?",
        )
