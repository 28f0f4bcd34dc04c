"""What the checks of all kernels of lesson 12 ask: all digits, a new array, and compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.grader.compare import agree
from minigrad.grader.message import show_call
from minigrad.grader.tester import Tester

DIGITS = "The first digits are right. Which step rounds, or is only near what the docstring wants?"
ODD = (
    "Here nan or inf is in x. nan > 0 and nan <= 0 are both False; inf - inf and 0 * inf are nan. "
    "Which step of yours meets one of these?"
)
UNWRITTEN = "Each call is to write every element. What is in a new array to which nobody wrote?"
VIEW = "Whoever writes to the result changes the argument. Is the array that is returned a new one?"


def compare(t: Tester, right: Any, *arguments: Any, attempt: str) -> None:
    """Call the exercise's function; fail unless it returns `right`, to the last digits."""
    got = t.call(t.exercise.name, *arguments)
    if agree(got, right):
        attempt = DIGITS
        if t.survey is None:
            t.wide_enough(got)
    mistakes = t.mistakes(*arguments)
    t.close(got, right, attempt=attempt, mistakes=mistakes, rtol=1e-10, atol=1e-13)


def ends_well(t: Tester, right: Any, *arguments: Any) -> None:
    """Fail unless the exercise's function runs compiled, and returns a new array, all written.

    For a check that has compared such calls.
    """
    name = t.exercise.name
    given = show_call(name, list(arguments))
    seen = t.drive("once_more", name, list(arguments), given=f"{name}, after a call")
    if seen["state"] != "compiled":
        got = "an ordinary Python function"
        attempt = "The repair is inside: @njit stays above the function."
        if seen["state"] == "objects":
            got = "a function that runs as Python objects, by forceobj=True, objmode or the like"
            attempt = "That hides the error, and the speed is gone. @njit compiles the whole of it."
        t.fail("not_compiled", "a function that Numba has compiled", got, attempt)
    t.given = given
    if seen["shared"] is not False:
        t.fail("view", "an array of its own", "a view: its memory is an argument's", VIEW)
    t.given = f"{given}, in memory that was used before"
    mistakes = t.mistakes(*arguments)
    t.close(seen["result"], right, attempt=UNWRITTEN, mistakes=mistakes, key="unwritten")


def numbers(t: Tester, *shape: int, low: float = -4, high: float = 4) -> np.ndarray:
    """Return random numbers, rounded as messages show them."""
    return np.round(t.random.uniform(low, high, shape), 2)
