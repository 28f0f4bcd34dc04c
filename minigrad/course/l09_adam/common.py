"""Adam in float64, with a switch for each way in which people get it wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from minigrad.grader import samples
from minigrad.grader.message import show, show_call, show_typed
from minigrad.grader.samples import tolerance
from minigrad.grader.tester import Tester

# Not (0.9, 0.99), with which an uncorrected first step has the right size by chance, and not
# (0.9, 0.999), the defaults.
BETAS = ((0.85, 0.995), (0.8, 0.99), (0.7, 0.95))
DEFAULTS = (1e-3, (0.9, 0.999), 1e-8)  # of adam_step and similar functions
MOMENTS = ("first_moment", "second_moment")
KEYS: tuple[str, ...] = (*MOMENTS, "step")


def adam(
    p,
    g,
    state,
    learning_rate=1e-3,
    betas=(0.9, 0.999),
    eps=1e-8,
    *,
    correct="both",
    eps_is="outside",
    t_off=0,
    sign=1,
    root=True,
    swapped=False,
    stale=False,
    power=False,
    square="g * g",
):
    """Return the parameter and its state after one step, right or with a chosen mistake.

    correct: which moments are corrected: 'both', 'first', 'second' or 'none'.
    eps_is: 'outside' the root, 'inside', 'missing', or 'before' the correction of the root.
    t_off: what is added to t in the correction; stale: the step uses the moments as they were.
    power: the correction is (1 - beta) ** t.
    square: what the second moment averages, 'g * g', 'g' or '|g|'.
    """
    t = state.get("step", 0) + 1
    old_m, old_v = (state.get(f"{name}_moment", 0 * p) for name in ("first", "second"))
    beta1, beta2 = (1 - betas[0], 1 - betas[1]) if swapped else betas
    m = beta1 * old_m + (1 - beta1) * g
    v = beta2 * old_v + (1 - beta2) * {"g * g": g * g, "g": g, "|g|": np.abs(g)}[square]
    first, second = (old_m, old_v) if stale else (m, v)
    weights = [(1 - b) ** t if power else 1 - b ** max(t + t_off, 1) for b in betas]
    if correct in ("both", "first"):
        first = first / weights[0]
    scale = weights[1] if correct in ("both", "second") else 1.0
    with np.errstate(all="ignore"):
        below = np.sqrt(second / scale) if root else second / scale
        if eps_is == "inside":
            below = np.sqrt(second / scale + eps)
        elif eps_is == "before":
            below = (np.sqrt(second) + eps) / np.sqrt(scale)
        elif eps_is == "outside":
            below = below + eps
        new_p = p - sign * learning_rate * first / below
    return new_p, {"first_moment": m, "second_moment": v, "step": t}


def pairs(t: Tester) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield p and g of every shape, dtype and layout, the plainest first."""
    yield random_array(t), random_array(t)
    yield from samples.alike(t.random, 2)


def near(p: np.ndarray) -> dict[str, float]:
    """Return the tolerances for a step computed in p's dtype."""
    return {"rtol": tolerance(p.dtype), "atol": 1e-14 if p.dtype == np.float64 else 1e-5}


def random_array(t: Tester, shape: tuple[int, ...] = (2,)) -> np.ndarray:
    """Return numbers of both signs, none near 0, rounded as messages show them."""
    signs = np.resize(t.random.permutation([1.0, -1.0]), shape)
    return np.asarray(np.round(t.random.uniform(0.1, 2.0, shape), 2) * signs)


def random_state(t: Tester, p: np.ndarray | None = None, step: int = 4) -> dict[str, Any]:
    """Return a possible state after some steps of p, which has two numbers by default."""
    p = np.zeros(2) if p is None else p
    first, second = t.random.uniform(-0.9, 0.9, p.shape), t.random.uniform(0.2, 0.9, p.shape)
    return {
        "first_moment": np.asarray(np.round(first, 2), p.dtype),
        "second_moment": np.asarray(np.round(second, 2), p.dtype),
        "step": step,
    }


def random_hyper(t: Tester, eps: float = 1e-3) -> tuple[float, tuple[float, float], float]:
    """Return a learning rate, betas and eps, none of them a default of adam_step."""
    return float(t.random.choice([0.1, 0.05, 0.01])), BETAS[t.random.integers(len(BETAS))], eps


def tiny_state(t: Tester) -> tuple[np.ndarray, dict[str, Any]]:
    """Return a gradient of eps's size and a state for it, for which every default matters."""
    state = random_state(t)
    state |= {"first_moment": 1e-8 * state["first_moment"]}
    state |= {"second_moment": 1e-16 * state["second_moment"]}
    return 1e-8 * random_array(t), state


def one_step(t: Tester, name: str, *arguments: Any) -> tuple[Any, dict]:
    """Call adam_step or adamw_step; return its parameter and its state.

    Fails unless the second is a whole state and the arguments are unchanged.
    """
    listed = [list(one) if isinstance(one, tuple) else one for one in arguments]
    reply = t.drive("step", name, listed, given=show_call(name, list(arguments)))
    new_p, state = t.pair(reply["answer"], 2, "new_p, new_state")
    for what, before, after in zip(("p", "g", "state"), arguments, reply["after"], strict=False):
        if not same(before, after):
            t.fail(
                "changed_input",
                f"{what} as it was handed over",
                f"{what} was written to: {show(after)}",
                "The caller still needs the old ones: put what is new into something new.",
            )
    check_form(t, state, "new_state")
    return new_p, state


def parts_of(answer: tuple, name: str = "") -> dict[str, Any]:
    """Return a step's parts, p and its state's entries; for a model's step, those of `name`."""
    p, state = (answer[0][name], answer[1].get(name, {})) if name else answer
    return {"p": p, **state}


def compare_parts(
    t: Tester,
    answer: tuple,
    right: tuple,
    arguments: tuple,
    attempts: dict[str, str],
    name: str = "",
) -> None:
    """Compare the parts of a step that have a Try line in `attempts`."""
    got, wanted = parts_of(answer, name), parts_of(right, name)
    prefix = f"new_states[{name!r}]" if name else "new_state"
    names = {"p": f"new_parameters[{name!r}]" if name else "new_p"}
    for part in [part for part in attempts if part in wanted]:
        is_step = part == "step"
        t.close(
            int(got[part]) if is_step else got[part],
            wanted[part],
            mistakes=(
                replace(one, value=parts_of(one.value, name).get(part))
                for one in t.mistakes(*arguments)
            ),
            what=names.get(part, f"{prefix}[{part!r}]"),
            attempt=attempts[part],
            key="step_count" if is_step else "value",
            **({"rtol": 0, "atol": 0} if is_step else near(wanted["p"])),
        )


def check_step(t: Tester, right: tuple, *arguments: Any, attempts: dict[str, str]) -> tuple:
    """Check one step in the parts named in `attempts`, and return it."""
    answer = one_step(t, t.exercise.name, *arguments)
    attempts = {
        part: samples.attempt_for(arguments[0], answer[0], attempt) if part == "p" else attempt
        for part, attempt in attempts.items()
    }
    compare_parts(t, answer, right, arguments, attempts)
    return answer


def same(before: Any, after: Any) -> bool:
    """Return whether a dict of arrays, or of states, is unchanged."""
    if isinstance(before, dict):
        return (
            isinstance(after, dict)
            and list(before) == list(after)
            and all(same(before[key], after[key]) for key in before)
        )
    return np.array_equal(before, after)


def check_form(t: Tester, state: Any, name: str) -> None:
    """Fail unless this is a state: a dict with the three entries, its step a whole number."""
    wanted = f"{name}: a dict with {', '.join(map(repr, KEYS))}"
    if not isinstance(state, dict):
        attempt = "Which of the two does the docstring name first?"
        if state is None:
            attempt = "The next step needs what this one remembers. Which dict do you return?"
        t.fail("state_form", wanted, f"{name} = {show(state)}", attempt)
    missing = [key for key in KEYS if key not in state]
    if missing:
        got = ", ".join(map(repr, state)) or "nothing"
        t.fail(
            "state_keys",
            wanted,
            f"a dict with {got}",
            f"The next step looks for {missing[0]!r}. The top of the file gives the three names.",
        )
    step = state["step"]
    if isinstance(step, bool) or not isinstance(step, int | np.integer):
        attempt = "'step' counts this parameter's steps: a whole number, such as 1."
        got = f"{name}['step'] = {show_typed(step)}"
        t.fail("step_form", f"{name}['step']: an int", got, attempt)
