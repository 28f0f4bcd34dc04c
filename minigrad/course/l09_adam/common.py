"""Adam in float64, with a switch for each way in which people get it wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.grader.message import show, show_call
from minigrad.grader.tester import Tester

# With (0.9, 0.99) an uncorrected first step has the right size by chance: not here.
BETAS = ((0.9, 0.999), (0.8, 0.99), (0.7, 0.99))
KEYS = ("first_moment", "second_moment", "step")


def moments(g: np.ndarray, state: dict, betas: tuple[float, float], swapped: bool = False) -> tuple:
    """Return both moments after a gradient, and the count of steps."""
    t = state.get("step", 0) + 1
    shares = (1 - betas[0], 1 - betas[1]) if swapped else betas
    m = shares[0] * state.get("first_moment", np.zeros_like(g)) + (1 - shares[0]) * g
    v = shares[1] * state.get("second_moment", np.zeros_like(g)) + (1 - shares[1]) * g * g
    return m, v, t


def adam(
    p: np.ndarray,
    g: np.ndarray,
    state: dict,
    learning_rate: float,
    betas: tuple[float, float],
    eps: float,
    *,
    correct: str = "both",
    eps_is: str = "outside",
    t_off: int = 0,
    sign: int = 1,
    root: bool = True,
    swapped: bool = False,
    stale: bool = False,
    power: bool = False,
    square: str = "g * g",
) -> tuple[np.ndarray, dict]:
    """Return the parameter and its state after one step, right or wrong in a chosen way.

    correct: which moments are corrected: 'both', 'first', 'second' or 'none'.
    eps_is: 'outside' the root, 'inside', 'missing', or 'before' the correction of the root.
    t_off: what is added to t in the correction; stale: the step uses the moments as they were.
    power: the correction is (1 - beta) ** t.
    square: what the second moment averages, 'g * g', 'g' or '|g|'.
    """
    m, v, t = moments(g, state, betas, swapped)
    if square != "g * g":
        new = np.abs(g) if square == "|g|" else g
        v = betas[1] * state.get("second_moment", np.zeros_like(g)) + (1 - betas[1]) * new
    first, second = m, v
    if stale and state:
        first, second = state["first_moment"], state["second_moment"]
    weights = [1 - beta ** (t + t_off) for beta in betas]
    if power:
        weights = [(1 - beta) ** t for beta in betas]
    scale = weights[1] if correct in ("both", "second") else 1.0
    if correct in ("both", "first"):
        first = first / weights[0]
    with np.errstate(all="ignore"):
        if eps_is == "inside":
            below = np.sqrt(second / scale + eps)
        elif eps_is == "before":
            below = (np.sqrt(second) + eps) / np.sqrt(scale)
        else:
            rooted = np.sqrt(second / scale) if root else second / scale
            below = rooted + (0.0 if eps_is == "missing" else eps)
        new_p = p - sign * learning_rate * first / below
    return new_p, {"first_moment": m, "second_moment": v, "step": t}


def random_array(t: Tester, size: int = 2, low: float = 0.1, high: float = 2.0) -> np.ndarray:
    """Return numbers of both signs, none near 0, rounded as they are shown."""
    signs = t.random.permutation(np.resize([1.0, -1.0], size))
    return np.round(t.random.uniform(low, high, size), 2) * signs


def random_state(t: Tester, size: int = 2, low: int = 2, high: int = 9) -> dict[str, Any]:
    """Return a state as it could be after some steps."""
    return {
        "first_moment": random_array(t, size, 0.1, 0.9),
        "second_moment": np.round(t.random.uniform(0.2, 0.9, size), 2),
        "step": int(t.random.integers(low, high)),
    }


def with_defaults(p: np.ndarray, g: np.ndarray, state: dict) -> np.ndarray:
    """Return the parameter after a step with the defaults of adam_step."""
    return adam(p, g, state, 1e-3, (0.9, 0.999), 1e-8)[0]


def random_hyper(t: Tester) -> tuple[float, tuple[float, float], float]:
    """Return a learning rate, betas and eps."""
    return float(t.random.choice([0.1, 0.05, 0.01])), BETAS[t.random.integers(len(BETAS))], 1e-8


def one_step(t: Tester, name: str, *arguments: Any) -> tuple[Any, dict]:
    """Call adam_step or adamw_step; return the parameter and the state that come back.

    Fails unless the second is a whole state, and all that was handed over is as it was.
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


def same(before: Any, after: Any) -> bool:
    """Whether a dict of arrays, or of states, is as it was."""
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
        found = ", ".join(map(repr, state)) or "nothing"
        t.fail(
            "state_keys",
            wanted,
            f"a dict with {found}",
            f"The next step looks for {missing[0]!r}. The top of the file gives the three names.",
        )
    step = state["step"]
    if isinstance(step, bool) or not isinstance(step, int | np.integer):
        attempt = "'step' counts this parameter's steps: a whole number, such as 1."
        found = f"{name}['step'] = {show(step)}, of type {type(step).__name__}"
        t.fail("step_form", f"{name}['step']: an int", found, attempt)
