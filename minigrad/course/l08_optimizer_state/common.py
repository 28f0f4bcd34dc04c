"""What the exercises of lesson 08 share."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.grader import samples
from minigrad.grader.message import show
from minigrad.grader.tester import Tester


def drive(t: Tester, name: str, *arguments: Any, should_raise: bool = False, given: str) -> Any:
    """Call a driver's function that returns what was raised; return its result.

    An error that is neither wanted nor a ValueError fails the check like any error.
    """
    got = t.drive(name, *arguments, given=given)
    if (
        got["raised"] is not None
        and not should_raise
        and "ValueError" not in got["raised"]["kinds"]
    ):
        t.drive(name, *arguments, True, given=given)  # lets the error through
    return got


def numbers(t: Tester, *shape: int, largest: float = 3.0) -> np.ndarray:
    """Return short random numbers of both signs, without 0."""
    return samples.numbers(t.random, shape, low=-largest, high=largest)


def close_to(x: np.ndarray) -> dict[str, Any]:
    """Return the tolerances for numbers computed in x's dtype."""
    return {"rtol": samples.tolerance(x.dtype), "atol": samples.tolerance(x.dtype)}


def nothing_returned(t: Tester, returned: Any) -> None:
    """Fail if anything but None was returned."""
    if returned is not None:
        t.fail(
            "returned",
            "None: all results are in what was handed over",
            show(returned),
            "What is written in place need not be returned too: who would take it for a new one?",
        )


def listed(arrays: dict[str, Any]) -> str:
    """Return {name: array} as `a = [1, 2], b = [3]`."""
    return ", ".join(f"{name} = {show(array, bare=True)}" for name, array in arrays.items())


def is_same(got: Any, expected: Any) -> bool:
    """Return whether two nested dicts of arrays are equal bit for bit."""
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and got.keys() == expected.keys()
            and all(is_same(got[key], value) for key, value in expected.items())
        )
    if isinstance(expected, np.ndarray):
        return (
            isinstance(got, np.ndarray)
            and got.dtype == expected.dtype
            and got.shape == expected.shape
            and got.tobytes() == expected.tobytes()
        )
    return type(got) is type(expected) and got == expected


def value_error(t: Tester, raised: dict[str, Any], wanted: str) -> None:
    """Fail unless a ValueError was raised."""
    if "ValueError" not in raised["kinds"]:
        t.fail(
            "wrong_error",
            wanted,
            f"{raised['kinds'][0]}: {raised['text'][:80]}",
            "Which exception does the docstring ask for? Ask before Python stumbles by itself.",
        )
