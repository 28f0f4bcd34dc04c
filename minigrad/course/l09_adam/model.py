"""One step for a whole model: a state for each parameter, and gradients that are missing."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from minigrad.course.l09_adam import lesson
from minigrad.course.l09_adam.common import (
    KEYS,
    MOMENTS,
    adam,
    check_form,
    compare_parts,
    random_array,
    random_hyper,
    random_state,
    same,
    tiny_state,
)
from minigrad.grader.message import show
from minigrad.grader.tester import Tester

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
ZERO = "A gradient of zeros is an answer: the slope is 0. Does the first moment become 0?"
MISSING_NAME = "A parameter that makes no step is still part of the model."
REACHED = "It has a gradient, and has not moved at all. Which parameters does your walk reach?"
NONE = "None means: not part of this loss. What may a step do to such a parameter?"
SHARED = "How many steps has this very parameter made? Its moments know only those."


def step_model(parameters, gradients, states, *hyper, kind=""):
    """Return a model and its states after one step, right or with a common mistake."""
    new_parameters, new_states = dict(parameters), {} if kind == "state_lost" else dict(states)
    hyper = hyper[: {"defaults": 0, "default_betas": 1, "default_eps": 2}.get(kind, 3)]
    for i, (name, p) in enumerate(parameters.items()):
        g, state = gradients[name], states.get(name, {})
        if g is None and kind == "none_is_zero":
            g = np.zeros_like(p)
        if kind == "in_order":
            g = [*gradients.values()][i]
        if kind == "value" and g is None:
            break
        if g is None or (kind == "zero_is_none" and not g.any()):
            continue
        if kind == "forgets":
            state = {}
        if kind == "mixed_states" and states:
            state = [*states.values()][-1]
        if kind == "shared_t" and states:
            steps = max(one["step"] for one in states.values())
            zeros = {"first_moment": 0 * p, "second_moment": 0 * p}
            state = {**zeros, **state, "step": steps}
        new_p, new_states[name] = adam(p, g, state, *hyper)
        new_parameters[name] = p if kind == "not_moved" else new_p
    return new_parameters, new_states


for key, attempt in {
    "forgets": "That is a first step. And its state?",
    "not_moved": "It has a gradient and did not move.",
    "defaults": "This step has the defaults of adam_step. Which numbers were you given?",
    "default_betas": "This step has the default betas of adam_step. Which were you given?",
    "default_eps": "This step has the default eps of adam_step. Which one were you given?",
    "mixed_states": "Whose moments went into this step?",
    "shared_t": SHARED,
    "none_is_zero": NONE,
    "zero_is_none": ZERO,
    "state_lost": "",
    "value": "",
}.items():
    step_all.mistake(key, attempt)(partial(step_model, kind=key))
step_all.mistake("value")(partial(step_model, kind="in_order"))


@step_all.mistake("same_dict")
def _(parameters, gradients, states, *hyper):
    if all(g is None for g in gradients.values()):
        return parameters, states
    return step_model(parameters, gradients, states, *hyper)


@step_all.mistake("dtype")
def _(parameters, gradients, states, *hyper):
    widest = np.result_type(np.float32, *parameters.values())  # the dtype of one vector of them all
    moved, states = step_model(parameters, gradients, states, *hyper)
    return {name: p.astype(widest) for name, p in moved.items()}, states


def state_after(t: Tester, steps: int) -> dict[str, Any]:
    """Return a state from real steps, whose moments fit its count."""
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
    if reply["handed_out"]:
        t.fail(
            "same_dict",
            "two new dicts",
            "one of those that you were given",
            "Whoever changes the result changes the caller's own. Does every path make new ones?",
        )
    names = (parameters, {k: 1 for k in parameters if k in states or gradients[k] is not None})
    for part, what, wanted in zip(parts, ("new_parameters", "new_states"), names, strict=True):
        said = f"{what}: a dict with {', '.join(map(repr, wanted)) or 'nothing in it'}"
        if not isinstance(part, dict):
            t.fail("form", said, f"{what} = {show(part)}", "Return two dicts, in this order.")
        got = f"{what} with {', '.join(map(repr, part)) or 'nothing in it'}"
        if missing := [name for name in wanted if name not in part]:
            key, why = "dropped", MISSING_NAME
            if what == "new_states" and gradients[missing[0]] is None:
                key, why = "state_lost", "It makes no step now; what it knew before is still true."
            elif what == "new_states":
                key, why = "no_state", "It has a gradient: what remembers the step it makes now?"
            t.fail(key, said, got, f"Where is {missing[0]!r}? {why}")
        if extra := [name for name in part if name not in wanted]:
            never = f"{extra[0]!r} has made no step, now or before, so it has no state yet."
            t.fail("too_many", said, got, never)
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
    """Return the call as text that fits into three lines."""
    rows = []
    for name, p in parameters.items():
        g = gradients[name]
        steps = f"{states[name]['step']} steps made" if name in states else "no step made"
        rows.append(f"{name} = {short(p)}, gradient {short(g)}, {steps}")
    if not hyper:
        return "; ".join(rows) + "; no other arguments"
    rate, betas, eps = hyper
    return "; ".join(rows) + f"; learning_rate {rate:g}, betas {betas}, eps {eps:g}"


def short(value: np.ndarray | None) -> str:
    """Return an array without its shape and dtype."""
    return "None" if value is None else show(value, bare=True)


def check_model(
    t: Tester, parameters: dict, gradients: dict, states: dict, *hyper: Any, attempt: str
) -> tuple:
    """Check one step, each parameter with its state, and return the two dicts."""
    got = ask(t, parameters, gradients, states, hyper)
    arguments = (parameters, gradients, states, *hyper)
    right = step_model(*arguments)
    for name in parameters:
        stands = gradients[name] is not None and same(got[0][name], parameters[name])
        attempts = dict.fromkeys(("p", *KEYS), REACHED if stands else attempt)
        compare_parts(t, got, right, arguments, attempts, name)
    return got


@step_all.check(points=1)
def all_have_gradients(t: Tester) -> None:
    """Each parameter makes its own step, in whatever order the names come."""
    two, three = {"w": (2,), "b": (2,)}, {"w": (2, 3), "b": (3,), "scale": (), "none": (0,)}
    for shapes, turned in ((two, False), (two, True), (three, False)):
        parameters = {name: random_array(t, shape) for name, shape in shapes.items()}
        order = list(parameters)[::-1] if turned else list(parameters)
        gradients = {name: random_array(t, shapes[name]) for name in order}
        states = {name: random_state(t, parameters[name], step=3) for name in order}
        attempt = "Each parameter goes with its own gradient, state."
        check_model(t, parameters, gradients, states, *random_hyper(t), attempt=attempt)
    parameters = {"w": random_array(t).astype(np.float32), "b": random_array(t)}
    gradients = {name: random_array(t).astype(p.dtype) for name, p in parameters.items()}
    for states in ({name: random_state(t, p) for name, p in parameters.items()}, {}):
        attempt = "Each parameter, with its own moments, keeps the dtype that it had."
        got = check_model(t, parameters, gradients, states, *random_hyper(t), attempt=attempt)
        for name, p in parameters.items():
            for part in (got[0][name], *(got[1][name][key] for key in MOMENTS)):
                t.dtype(part, p.dtype, attempt)
    g, state = tiny_state(t)
    attempt = "Look at the defaults in the signature: which of them did this step have?"
    check_model(t, {"w": np.zeros(2)}, {"w": g}, {"w": state}, attempt=attempt)


@step_all.check(points=2)
def a_late_parameter(t: Tester) -> None:
    """A parameter that joins late begins with its own first step."""
    for steps in (20, 400):
        parameters, gradients = ({"w": random_array(t), "late": random_array(t)} for _ in range(2))
        states = {"w": state_after(t, steps)}
        attempt = "How large is a first step, by the formula?"
        check_model(t, parameters, gradients, states, *random_hyper(t), attempt=attempt)


def one_special(t: Tester, frozen: np.ndarray | None, attempt: str) -> None:
    """Check a model in which the gradient of 'frozen' is None or zeros; it comes last, then first.

    A loop that ends there shows only in the second case.
    """
    for names in (("w", "frozen"), ("frozen", "w", "b")):
        parameters = {name: random_array(t) for name in names}
        gradients = {name: random_array(t) for name in names} | {"frozen": frozen}
        states = {name: state_after(t, 6 if name == "frozen" else 4) for name in names}
        for known in (states, {name: states[name] for name in names if name != "frozen"}, {}):
            check_model(t, parameters, gradients, known, *random_hyper(t), attempt=attempt)


@step_all.check(points=2)
def no_gradient(t: Tester) -> None:
    """With gradient None, value, moments and count stay; a state that is not there is not made."""
    one_special(t, None, NONE)
    for names in ("wb", ""):  # no parameter makes a step
        parameters = {name: random_array(t) for name in names}
        known = {name: state_after(t, 4) for name in names}
        check_model(t, parameters, dict.fromkeys(names), known, *random_hyper(t), attempt=NONE)


@step_all.check(points=1)
def a_gradient_of_zeros(t: Tester) -> None:
    """With a gradient of zeros a parameter still moves: its average is not zero."""
    one_special(t, np.zeros(2), ZERO)
