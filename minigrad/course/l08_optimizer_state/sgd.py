"""The optimizer: which parameters, and who owns what is remembered of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from minigrad.course.l08_optimizer_state import lesson
from minigrad.course.l08_optimizer_state.common import (
    close_to,
    is_same,
    listed,
    nothing_returned,
    numbers,
)
from minigrad.course.l08_optimizer_state.update import right
from minigrad.grader import samples
from minigrad.grader.compare import agree
from minigrad.grader.message import show, show_both
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


Round = dict[str, Any]


def a_round(
    gradients: dict[str, np.ndarray],
    frozen: str = "",
    *,
    rate: float = 0.1,
    momentum: float = 0.5,
    decay: float = 0.0,
) -> Round:
    """Return the settings before a step: gradients, names of frozen ones, hyperparameters."""
    hyper = {"learning_rate": rate, "momentum": momentum, "weight_decay": decay}
    return {"gradients": gradients, "frozen": list(frozen), "hyper": hyper}


def round_text(now: Round, first: Round, names: Iterable[str]) -> str:
    """Return a round as messages show it."""
    parts = [
        f"{name}.grad = {show(now['gradients'].get(name), bare=True)}"
        + (" (frozen)" if name in now["frozen"] else "")
        for name in names
    ]
    parts += [
        f"optimizer.{name} = {value:g}"
        for name, value in now["hyper"].items()
        if value != first["hyper"][name]
    ]
    return ", ".join(parts)


def run(t: Tester, values: dict[str, np.ndarray], rounds: list[Round]) -> list[dict[str, Any]]:
    """Step a new SGD once for each round; return the driver's report after each step."""
    texts = [round_text(now, rounds[0], values) for now in rounds]
    steps = "; ".join(f"step {number}: {text}" for number, text in enumerate(texts, 1))
    if len({*texts}) == 1 < len(rounds):
        steps = f"{len(rounds)} steps, each with {texts[0]}"
    hyper = ", ".join(f"{name}={value:g}" for name, value in rounds[0]["hyper"].items())
    given = f"SGD([{', '.join(values)}], {hyper}) with {listed(values)}; {steps}"
    t.about = "SGD.step"
    rows = t.drive("steps", values, rounds, given=given)
    if rows and rows[0]["at_first"] != {}:
        early = "What does the docstring say of the state before the first step?"
        t.fail("state_too_early", "optimizer.state = {} before any step", "an entry in it", early)
    for step, row in enumerate(rows, 1):
        for name, value in row["values"].items():
            if not isinstance(value, np.ndarray):
                t.fail(
                    "values_lost",
                    f"{name}.values after step {step}: an array",
                    f"{name}.values = {show(value)}",
                    "sgd_update returns None and writes into p.values. What do you assign to it?",
                )
            gradient = rounds[step - 1]["gradients"].get(name)
            if not is_same(row["grads"][name], gradient):
                wanted, actual = show_both(gradient, row["grads"][name])
                t.fail(
                    "changed_gradient",
                    f"{name}.grad after step {step} as it was: {wanted}",
                    f"{name}.grad = {actual}",
                    "Someone may still look at it. Which line writes into the array of p.grad?",
                )
    return rows


def expected(values: dict[str, np.ndarray], rounds: list[Round], kind: str = "") -> list[tuple]:
    """Return (values, momentum) after each step, right or as a common mistake gives them."""
    x, v, common, history = dict(values), {}, 0.0, []
    for now in rounds:
        h = (rounds[0] if kind == "fixed" else now)["hyper"]
        for name, g in now["gradients"].items():
            if name in now["frozen"] or (kind == "zero_skipped" and not g.any()):
                continue
            old = v.get(name, 0.0 * g) if kind != "shared" else common
            arguments = (h["learning_rate"], h["momentum"], h["weight_decay"])
            old = 0.0 * g if kind == "started_anew" else old
            x[name], v[name] = right(x[name], old, g, *arguments)
            common = v[name]
        history.append((dict(values if kind == "standing" else x), dict(v)))
    return history


WRONG = {
    "standing": "The parameter has not moved. Is sgd_update called, and with p.values?",
    "started_anew": "Every step is as long as the first. What is left of state when it ends?",
    "shared": "The momentum of one parameter has moved the other. How many are there?",
    "fixed": "A number of the optimizer was changed before this step. When does step() look?",
    "zero_skipped": "A gradient of zeros has arrived: momentum and weight decay still act.",
}


def check(t: Tester, values: dict[str, np.ndarray], rounds: list[Round]) -> list[dict[str, Any]]:
    """Step a new SGD and compare the values after each step; return the driver's reports."""
    rows, wanted = run(t, values, rounds), expected(values, rounds)
    kinds = ["standing", "started_anew", "zero_skipped"]
    kinds += ["shared"] * (len({array.shape for array in values.values()}) == 1 < len(values))
    kinds += ["fixed"] * any(now["hyper"] != rounds[0]["hyper"] for now in rounds)
    wrong = {kind: expected(values, rounds, kind) for kind in kinds}
    for k, row in enumerate(rows):
        for name, array in values.items():
            before = rows[k - 1]["values"][name] if k else array
            attempt = "Is it one call of sgd_update a step, with its own state and all numbers?"
            if np.array_equal(row["values"][name], before):
                attempt = "It has not moved in this step. What decides who is updated, and when?"
            t.close(
                row["values"][name],
                wanted[k][0][name],
                **close_to(array),
                what=f"{name} after step {k + 1}",
                attempt=attempt,
                mistakes=[Mistake(kind, wrong[kind][k][0][name], WRONG[kind]) for kind in kinds],
            )
        n = sum(name not in rounds[k]["frozen"] for name in rounds[k]["gradients"])
        if row["calls"] not in (n, None):
            t.fail(
                "own_formula",
                f"{n} of sgd_update's calls in step {k + 1}, one for each that is updated",
                f"{row['calls']} of them",
                "The formula stands in sgd_update, and once is enough. Who hands it what it needs?",
            )
    return rows


@SGD.check(points=2)
def trajectory(t: Tester) -> None:
    """It follows the formula for any number of steps, also where the learning rate changes."""
    for momentum in (0.0, 0.5, -0.5):
        x, g = numbers(t, 2), numbers(t, 2)
        check(t, {"w": x}, [a_round({"w": g}, rate=0.2, momentum=momentum)] * 4)
        later = a_round({"w": g}, rate=0.05, momentum=momentum)
        check(t, {"w": x}, [a_round({"w": g}, momentum=momentum), later, later])
        other = a_round({"w": g}, momentum=1.5 * momentum, decay=0.3)
        check(t, {"w": x}, [a_round({"w": g}, momentum=momentum), other, other])
        flat = [{"w": g}, {"w": np.zeros(2)}, {"w": g}]
        check(t, {"w": x}, [a_round(one, momentum=momentum, decay=0.3) for one in flat])
    for x in samples.arrays(t.random):
        g = samples.numbers(t.random, x.shape, str(x.dtype))
        check(t, {"w": x}, [a_round({"w": g})] * 2)


def not_skipped(t: Tester, x: np.ndarray, g: np.ndarray) -> None:
    """Fail if a step with a nonfinite gradient was skipped."""
    [row] = run(t, {"w": x}, [a_round({"w": g})])
    w, right_second = row["values"]["w"], x[1] - 0.1 * g[1]
    state = show(row["state"], bare=True)
    if np.isfinite(w[0]) or not agree(w[1], right_second) or "w" not in row["state"]:
        t.fail(
            "not_skipped",
            f"w = [{show(x[0] - 0.1 * g[0])}, {show(right_second)}] after step 1: a step like any",
            f"w = {show(w, bare=True)}, optimizer.state = {state} by name",
            "The docstring names two reasons to leave a parameter alone. Which one holds here?",
        )


@SGD.check(points=2)
def own_state(t: Tester) -> None:
    """Each parameter has its own state, kept in the optimizer under its id."""
    shapes = ({"w": (2,), "b": (2,)}, {"w": (2, 3), "b": (3,), "c": (), "e": (0,)})
    for model in (shapes[0], *shapes):
        values = {name: numbers(t, *shape) for name, shape in model.items()}
        rounds = [
            a_round({name: numbers(t, *shape) for name, shape in model.items()}) for _ in range(2)
        ]
        rows = check(t, values, rounds)
        for step, (row, (_, v)) in enumerate(zip(rows, expected(values, rounds), strict=True), 1):
            check_state(t, row, v, step)
    rounds = [a_round({"w": numbers(t, 2)}, momentum=0.0)] * 2
    for row in check(t, {"w": numbers(t, 2)}, rounds):
        if not is_same(row["state"], {"w": {}}):
            none = is_same(row["state"], {})
            t.fail(
                "no_entry" if none else "state_grew",
                "optimizer.state = {w.id: {}}: momentum is 0",
                f"optimizer.state with {show(row['state'], bare=True)} by name",
                "Which dict is empty without momentum: that of the optimizer, or that of w?"
                if none
                else "What is there to remember without momentum?",
            )
    for bad in (np.nan, np.inf):
        not_skipped(t, numbers(t, 2), np.array([bad, 1.0]))


PYTHONS_ID = "Keys this long come from Python's id(p). Which id does a Parameter have of its own?"


def check_state(t: Tester, row: dict[str, Any], v: dict[str, np.ndarray], step: int) -> None:
    """Check optimizer.state after a step."""
    state, strangers = row["state"], row["strangers"]
    wanted = f"optimizer.state with the ids of {' and '.join(v)} as its keys"
    if not isinstance(state, dict):
        t.fail("no_dict", wanted, show(state), "self.state is a dict: look at the docstring.")
    if strangers or state.keys() != v.keys():
        got = f"the keys {', '.join([*(f'{n}.id' for n in state), *strangers]) or '(none)'}"
        others = state.keys() == v.keys()
        t.fail(
            "kept" if others else "wrong_key",
            wanted,
            f"{got}, after step {step}",
            "The others are no ids of this optimizer's parameters. What outlives an SGD in your "
            "code: a default argument, a global, an attribute of the class?"
            if others
            else PYTHONS_ID
            if any(re.fullmatch(r"\d{9,}", one) for one in strangers)
            else "What does a parameter keep, whatever its place in a list and its values are?",
        )
    for name in v:
        slots = state[name]
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
    values = {"w": numbers(t, 2), "b": numbers(t, 2)}
    g = {name: -2 * array for name, array in values.items()}  # decay does not undo them
    # The untouched one comes last, then first: only then does a loop that ends there show.
    for order in ("wb", "bw"):
        in_order = {name: values[name] for name in order}
        for why, left in (
            ("its grad is None", a_round({"w": g["w"]}, decay=0.5)),
            ("it is frozen", a_round(g, "b", decay=0.5)),
        ):
            never(t, in_order, [left] * 2, why)
            for now in (a_round(g, decay=0.5), a_round({**g, "b": np.zeros(2)}, decay=0.5)):
                coasting(t, in_order, [now, left, now], why)
                coasting(t, in_order, [left, now, left], why)


def left_as_it_was(t: Tester, before: np.ndarray, after: np.ndarray, why: str, when: str) -> None:
    """Fail if b moved in a step that should leave it alone."""
    if not is_same(after, before):
        wanted, got = show_both(before, after)
        t.fail(
            "frozen_moved" if why == "it is frozen" else "none_moved",
            f"b = {wanted} after {when}, as it was: {why}",
            f"b = {got}",
            "`requires_grad` says whether it may move, whatever grad is."
            if why == "it is frozen"
            else "No gradient is not a gradient of zeros: those decay, and coast.",
        )


def never(t: Tester, values: dict, rounds: list[Round], why: str) -> None:
    """Check a parameter b that stays untouched from the first step on."""
    for step, row in enumerate(run(t, values, rounds), 1):
        left_as_it_was(t, values["b"], row["values"]["b"], why, f"step {step}")
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


def coasting(t: Tester, values: dict, rounds: list[Round], why: str) -> None:
    """Check a parameter b that stays untouched in the second step, or in the others."""
    rows = run(t, values, rounds)
    for step, now in enumerate(rounds):
        if "b" in now["gradients"] and "b" not in now["frozen"]:
            continue
        before = rows[step - 1] if step else {"values": values, "state": {}}
        when = f"step {step + 1}"
        left_as_it_was(t, before["values"]["b"], rows[step]["values"]["b"], why, when)
        was, after = (one["state"].get("b") for one in (before, rows[step]))
        if not is_same(after, was):
            wanted, got = show_both({"b": was}, {"b": after})
            t.fail(
                "state_lost",
                f"the state of b after {when} as before: {wanted}",
                got,
                "A parameter that is left alone keeps its state for the next time.",
            )
    check(t, values, rounds)


@SGD.check(points=1)
def same_arrays(t: Tester) -> None:
    """The values stay in their arrays, gradients stay as they are, momentum has values' dtype."""
    x, g = numbers(t, 2), numbers(t, 2)
    for row in check(t, {"w": x}, [a_round({"w": g}, decay=0.2)] * 2):
        nothing_returned(t, row["returned"])
        if not is_same(row["grads"]["w"], g) or not row["same_grads"]:
            wanted, actual = show_both(g, row["grads"]["w"])
            t.fail(
                "changed_gradient",
                f"w.grad = {wanted}, as it was",
                f"w.grad = {actual}",
                "Someone may still look at it. Which line writes into the array of p.grad?",
            )
        if not row["same_arrays"] or not is_same(row["held"]["w"], row["values"]["w"]):
            t.fail(
                "other_array",
                f"the array that w.values was, with {show(row['values']['w'], bare=True)} in it",
                f"another array; the old one still has {show(row['held']['w'], bare=True)}",
                "p.values = … puts another array there. Who else may hold the old one?",
            )
    small = {"w": x.astype(np.float32)}
    row = run(t, small, [a_round({"w": g}, decay=0.2)])[0]  # a gradient of another dtype
    slots = row["state"].get("w") if isinstance(row["state"], dict) else None
    kept = slots.get("momentum") if isinstance(slots, dict) else slots
    if not isinstance(kept, np.ndarray) or kept.dtype != np.float32:
        t.fail(
            "dtype",
            "state[w.id]['momentum'], an array of float32, as w.values is",
            f"state[w.id]['momentum'] = {show(kept)}",
            "It has the dtype of the values. Whose does the line that makes it take?",
        )
