"""Adam in float64, with a switch for each way in which people get it wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.grader.message import show
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
) -> tuple[np.ndarray, dict]:
    """Return the parameter and its state after one step, right or wrong in a chosen way.

    correct: which moments are corrected: 'both', 'first', 'second' or 'none'.
    eps_is: 'outside' the root, 'inside', 'missing', or 'before' the correction of the root.
    t_off: what is added to t in the correction; stale: the step uses the moments as they were.
    """
    m, v, t = moments(g, state, betas, swapped)
    first, second = m, v
    if stale and state:
        first, second = state["first_moment"], state["second_moment"]
    scale = 1 - betas[1] ** (t + t_off) if correct in ("both", "second") else 1.0
    if correct in ("both", "first"):
        first = first / (1 - betas[0] ** (t + t_off))
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


def random_hyper(t: Tester) -> tuple[float, tuple[float, float], float]:
    """Return a learning rate, betas and eps."""
    return float(t.random.choice([0.1, 0.05, 0.01])), BETAS[t.random.integers(len(BETAS))], 1e-8


def with_state(t: Tester, got: Any, names: str = "new_p, new_state") -> tuple[Any, dict]:
    """Return the two parts of an answer; fail unless the second is a whole state."""
    new_p, state = t.pair(got, 2, names)
    check_form(t, state, names.split(", ")[1])
    return new_p, state


def check_form(t: Tester, state: Any, name: str) -> None:
    """Fail unless this is a state: a dict with the three entries, its step a whole number."""
    wanted = f"{name}: a dict with {', '.join(map(repr, KEYS))}"
    if not isinstance(state, dict):
        swapped = "Which of the two does the docstring name first?"
        t.fail("state_form", wanted, f"{name} = {show(state)}", swapped)
    missing = [key for key in KEYS if key not in state]
    if missing:
        found = ", ".join(map(repr, state)) or "nothing"
        t.fail(
            "state_keys",
            wanted,
            f"a dict with {found}",
            f"The next step will look for {missing[0]!r}. What was there, and is spelled how?",
        )
    step = state["step"]
    if isinstance(step, bool) or not isinstance(step, int | np.integer):
        attempt = "'step' counts this parameter's steps: a whole number."
        t.fail("step_form", f"{name}['step']: an int", f"{name}['step'] = {show(step)}", attempt)
