"""Adapts an exercise's function to its seam where their signatures differ."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

MOMENTS = ("first_moment", "second_moment")


def as_update(step: Callable) -> Callable:
    """Return lesson 09's `adam_step` or `adamw_step` as `mg.use(update=...)` calls it.

    Lesson 09's functions return a new parameter and a new state. The seam passes copies to be
    written to, with the number of this step in state['step'].
    """

    @wraps(step)
    def update(
        algorithm: str, values: np.ndarray, gradient: np.ndarray, state: dict, numbers: dict
    ) -> None:
        before: dict[str, Any] = {}
        if state["step"] > 1:
            before = {name: state[name] for name in MOMENTS} | {"step": state["step"] - 1}
        more = (numbers["learning_rate"], numbers["betas"], numbers["eps"])
        if algorithm == "AdamW":
            more = (*more, numbers["weight_decay"])
        elif numbers["weight_decay"]:
            gradient = gradient + numbers["weight_decay"] * values
        values[...], after = step(values.copy(), gradient, before, *more)
        for name in MOMENTS:
            state[name][...] = after[name]

    return update
