"""What the exercises of lesson 08 share."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.grader.message import show
from minigrad.grader.tester import Tester


def numbers(t: Tester, *shape: int, largest: float = 3.0) -> np.ndarray:
    """Return random numbers with one decimal, none of them 0."""
    steps = t.random.integers(1, round(10 * largest) + 1, shape)
    return steps * t.random.choice([-1, 1], shape) / 10


def listed(arrays: dict[str, Any]) -> str:
    """Return {name: array} as `a = [1, 2], b = [3]`."""
    return ", ".join(f"{name} = {show(array, bare=True)}" for name, array in arrays.items())


def saved_text(state: Any) -> str:
    """Return {name: {slot: array}} in short: it is read in one line."""
    if not isinstance(state, dict):
        return show(state)
    parts = []
    for name, slots in state.items():
        if not isinstance(slots, dict):
            parts.append(f"{name!r}: {show(slots, bare=True)}")
            continue
        inside = ", ".join(f"{key!r}: {show(value, bare=True)}" for key, value in slots.items())
        parts.append(f"{name!r}: {{{inside}}}")
    return "{" + ", ".join(parts) + "}"


def is_same(got: Any, expected: Any) -> bool:
    """Whether two nests of dicts and arrays are equal bit for bit."""
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
    """Fail unless what was raised is a ValueError."""
    if "ValueError" not in raised["kinds"]:
        t.fail(
            "wrong_error",
            wanted,
            f"{raised['kinds'][0]}: {raised['text'][:80]}",
            "Which exception does the docstring ask for? Ask before Python stumbles by itself.",
        )
