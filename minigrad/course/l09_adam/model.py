"""One step for a whole model: a state for each parameter, and gradients that are missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.course.l09_adam.common import (
    adam,
    check_form,
    random_array,
    random_hyper,
    same,
    with_defaults,
)
from minigrad.course.l09_adam.lesson import lesson
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

step_all = lesson.exercise(
    "step_all",
    difficulty=3,
    minutes=12,
    returns="two dicts: new_parameters, new_states",
    hints=(
        "Three parameters: one has made 500 steps, one has none yet, one has gradient None. "
        "Which state does each bring to adam_step, and which one does not go there?",
        "Start from copies, dict(parameters) and dict(states). In a loop over the names, "
        "overwrite what a step changes. `is None` finds the ones that are left out.",
        "For each name with a gradient: adam_step(p, gradients[name], states.get(name, {}), ...), "
        "and put its two results under this name into the two new dicts.",
    ),
)
MISSING_NAME = "A parameter that makes no step is still part of the model."
DEFAULTS = "This step has the defaults of adam_step. Which numbers were you given?"
DEFAULT_BETAS = "This step has the default betas of adam_step. Which were you given?"
SHARED = "How many steps has this very parameter made? Its moments know only those."


def state_after(t: Tester, steps: int) -> dict[str, Any]:
    """Return a state that really comes from some steps: its moments fit its count."""
    state: dict[str, Any] = {}
    slope = random_array(t)
    for _ in range(steps):
        _, state = adam(slope, slope * t.random.uniform(0.8, 1.2), state, 0.1, (0.9, 0.999), 1e-8)
    rounded = {"first_moment": 3, "second_moment": 4}
    return {key: np.round(state[key], n) for key, n in rounded.items()} | {"step": steps}


def ask(t: Tester, parameters: dict, gradients: dict, states: dict, hyper: tuple) -> tuple:
    """Return the two dicts; fail unless they are dicts with the right names."""
    told = given(parameters, gradients, states, hyper)
    reply = t.drive("step_all", parameters, gradients, states, list(hyper), given=told)
    parts = t.pair(reply["answer"], 2, "new_parameters, new_states")
    for name, before in (("parameters", parameters), ("states", states)):
        if not same(before, reply["after"][name]):
            t.fail(
                "changed_input",
                f"the dict {name} left as it was given",
                f"{name} was written to: {show(reply['after'][name])}",
                "The caller still needs the old ones. Into which dict do you put the new ones?",
            )
    names = (parameters, {k: 1 for k in parameters if k in states or gradients[k] is not None})
    for part, what, wanted in zip(parts, ("new_parameters", "new_states"), names, strict=True):
        said = f"{what}: a dict with {', '.join(map(repr, wanted)) or 'nothing in it'}"
        if not isinstance(part, dict):
            t.fail("form", said, f"{what} = {show(part)}", "Return two dicts, in this order.")
        found = f"{what} with {', '.join(map(repr, part)) or 'nothing in it'}"
        if missing := [name for name in wanted if name not in part]:
            key, why = "dropped", MISSING_NAME
            if what == "new_states" and gradients[missing[0]] is None:
                key, why = "state_lost", "It makes no step now; what it knew before is still true."
            elif what == "new_states":
                key, why = "no_state", "It has a gradient: what remembers the step it makes now?"
            t.fail(key, said, found, f"Where is {missing[0]!r}? {why}")
        if extra := [name for name in part if name not in wanted]:
            never = f"{extra[0]!r} has made no step, now or before, so it has no state yet."
            t.fail("too_many", said, found, never)
    for name, value in parts[0].items():
        if isinstance(value, tuple):
            t.fail(
                "both_results",
                f"new_parameters[{name!r}], an array",
                f"new_parameters[{name!r}] = a tuple of {len(value)}",
                "adam_step returns two results. Which of them is the parameter?",
            )
    for name in names[1]:
        check_form(t, parts[1][name], f"new_states[{name!r}]")
    return parts


def given(parameters: dict, gradients: dict, states: dict, hyper: tuple) -> str:
    """Return the call in a form that fits into three lines."""
    rows = []
    for name, p in parameters.items():
        g = gradients[name]
        steps = f"{states[name]['step']} steps made" if name in states else "no step made"
        rows.append(f"{name} = {short(p)}, gradient {short(g)}, {steps}")
    rate, betas, _ = hyper
    return "; ".join(rows) + f"; learning_rate {rate:g}, betas {betas}"


def short(value: np.ndarray | None) -> str:
    """Return an array without its shape and dtype."""
    return "None" if value is None else show(value, bare=True)


def check_name(
    t: Tester, got: tuple, name: str, right: tuple, wrong: list, attempt: str, what: str = ""
) -> None:
    """Compare one parameter and its state; `wrong` are mistakes in the value."""
    t.close(
        got[0][name],
        right[0],
        mistakes=wrong,
        atol=1e-12,
        what=f"new_parameters[{name!r}]{what}",
        attempt=attempt,
    )
    state = got[1].get(name)
    if state is None:
        return
    for key in ("first_moment", "second_moment"):
        t.close(state[key], right[1][key], what=f"new_states[{name!r}][{key!r}]", attempt=attempt)
    if int(state["step"]) != right[1]["step"]:
        where = f"new_states[{name!r}]['step']"
        t.fail(
            "step_count",
            f"{where} = {right[1]['step']}",
            f"{where} = {int(state['step'])}",
            attempt,
        )


@step_all.check(points=1)
def all_have_gradients(t: Tester) -> None:
    """Each parameter makes its own step."""
    names = ("w", "b")
    parameters = {name: random_array(t) for name in names}
    gradients = {name: random_array(t) for name in names}
    states = {"w": state_after(t, 3), "b": state_after(t, 3)}
    rate, _, eps = random_hyper(t)
    hyper = (rate, (0.8, 0.99), eps)  # not the defaults of adam_step
    got = ask(t, parameters, gradients, states, hyper)
    for name, other in (("w", "b"), ("b", "w")):
        p, g = parameters[name], gradients[name]
        shared = adam(p, g, states[other], *hyper)[0]
        fresh = adam(p, g, {}, *hyper)[0]
        default = adam(p, g, states[name], rate, (0.9, 0.999), eps)[0]
        mixed = "Whose moments went into this step?"
        wrong = [
            Mistake("mixed_states", shared, mixed),
            Mistake("forgets", fresh, "That is a first step: its state was not handed on."),
            Mistake("not_moved", p, "It has a gradient and did not move."),
            Mistake("defaults", with_defaults(p, g, states[name]), DEFAULTS),
            Mistake("default_betas", default, DEFAULT_BETAS),
        ]
        right = adam(p, g, states[name], *hyper)
        check_name(t, got, name, right, wrong, "Each parameter goes with its own gradient, state.")


@step_all.check(points=2)
def a_late_parameter(t: Tester) -> None:
    """A parameter that joins late begins with its own first step."""
    for steps in (20, 400):
        parameters = {"w": random_array(t), "late": random_array(t)}
        gradients = {"w": random_array(t), "late": random_array(t)}
        states = {"w": state_after(t, steps)}
        hyper = random_hyper(t)
        got = ask(t, parameters, gradients, states, hyper)
        p, g = parameters["late"], gradients["late"]
        zeros = {"first_moment": np.zeros(2), "second_moment": np.zeros(2)}
        wrong = [
            Mistake("shared_t", adam(p, g, {**zeros, "step": shared}, *hyper)[0], SHARED)
            for shared in (steps, steps - 1)
        ]
        wrong += [
            Mistake("mixed_states", adam(p, g, states["w"], *hyper)[0], "Whose moments are these?"),
            Mistake("not_moved", p, "It has a gradient and did not move: is no state no step?"),
        ]
        right = adam(p, g, {}, *hyper)
        check_name(t, got, "late", right, wrong, "How large is a first step, by the formula?")
        check_name(t, got, "w", adam(parameters["w"], gradients["w"], states["w"], *hyper), [], "")


def one_special(t: Tester, make: Callable, key: str, text: str, *, is_step: bool) -> None:
    """Check a model in which the gradient of 'frozen' is what `make` gives."""
    parameters = {"w": random_array(t), "frozen": random_array(t)}
    gradients = {"w": random_array(t), "frozen": make()}
    states = {"w": state_after(t, 4), "frozen": state_after(t, 6)}
    hyper = random_hyper(t)
    got = ask(t, parameters, gradients, states, hyper)
    p, state = parameters["frozen"], states["frozen"]
    moved, stays = adam(p, np.zeros(2), state, *hyper), (p, state)
    right, other = (moved, stays) if is_step else (stays, moved)
    check_name(t, got, "frozen", right, [Mistake(key, other[0], text)], text)
    check_name(t, got, "w", adam(parameters["w"], gradients["w"], states["w"], *hyper), [], text)


@step_all.check(points=2)
def no_gradient(t: Tester) -> None:
    """With gradient None, value, moments and count stay; a state that is not there is not made."""
    text = "None means: not part of this loss. What may a step do to such a parameter?"
    one_special(t, lambda: None, "none_is_zero", text, is_step=False)
    parameters = {"w": random_array(t), "frozen": random_array(t)}
    hyper = random_hyper(t)
    gradients = {"w": random_array(t), "frozen": None}
    got = ask(t, parameters, gradients, {}, hyper)
    check_name(t, got, "frozen", (parameters["frozen"], {}), [], text)


@step_all.check(points=1)
def a_gradient_of_zeros(t: Tester) -> None:
    """With a gradient of zeros a parameter still moves: its average is not zero."""
    text = "A gradient of zeros is an answer: the slope is 0. Does the first moment become 0?"
    one_special(t, lambda: np.zeros(2), "zero_is_none", text, is_step=True)
