"""What the checks of all kernels of lesson 12 ask: that Numba has compiled them."""

from __future__ import annotations

import numpy as np

from minigrad.grader.tester import Tester


def is_compiled(t: Tester) -> None:
    """Fail unless the exercise's function runs compiled; for the end of a check that called it."""
    name = t.exercise.name
    state = t.drive("state", name, given=f"{name}, after a call")
    if state != "compiled":
        got = "an ordinary Python function"
        attempt = "The repair is inside: @njit stays above the function."
        if state == "objects":
            got = "a function that runs as Python objects, by forceobj=True, objmode or the like"
            attempt = "That hides the error, and the speed is gone. @njit compiles the whole of it."
        t.fail("not_compiled", "a function that Numba has compiled", got, attempt)


def numbers(t: Tester, *shape: int, low: float = -4, high: float = 4) -> np.ndarray:
    """Return random numbers, rounded as messages show them."""
    return np.round(t.random.uniform(low, high, shape), 2)
