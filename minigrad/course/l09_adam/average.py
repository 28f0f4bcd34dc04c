"""A running average that starts at zero, and what corrects it."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.course.l09_adam.lesson import lesson
from minigrad.grader.compare import agree
from minigrad.grader.tester import Mistake, Tester

corrected_average = lesson.exercise(
    "corrected_average",
    difficulty=2,
    minutes=8,
    returns="an array: the corrected average after each value",
    hints=(
        "Take the values 5, 5 and beta = 0.9. On paper: what is m after the first, and by what "
        "must it be divided to give 5 again?",
        "Walk along the values with m in hand and count them from 1. m = beta * m + "
        "(1 - beta) * value; what goes into the result is another number, made from m.",
        "Append m / (1 - beta ** t) to a list, t = 1 for the first value, and leave m as it is. "
        "At the end return np.array of the list.",
    ),
)


def averages(values: np.ndarray, beta: float, *, kind: str = "") -> np.ndarray:
    """Return the corrected averages, or what people compute in their place."""
    m, result = (float(values[0]) if kind == "from_first" else 0.0), []
    for t, value in enumerate(values, 1):
        old, new = (1 - beta, beta) if kind == "swapped" else (beta, 1 - beta)
        m = old * m + (1.0 if kind == "sum" else new) * value
        with np.errstate(all="ignore"):
            corrected = np.float64(m) / (1 - beta ** (t + {"late": 1, "early": -1}.get(kind, 0)))
        if kind == "power":
            corrected = m / (1 - beta) ** t
        if kind in ("uncorrected", "from_first"):
            corrected = m
        if kind == "weights":
            corrected = m / (1 - beta)
        if kind == "fed_back":
            m = corrected
        result.append(corrected)
    return np.array(result)


WRONG = {
    "uncorrected": "It started at 0 and still leans there. What do the weights add up to?",
    "swapped": "beta is the share of what was there before. To which of the two do you give it?",
    "sum": "The weights of the old and of the new must add up to 1. Yours add up to more.",
    "late": "t is 1 at the first value. What is yours there?",
    "early": "Dividing by 1 - beta**0 is dividing by 0. What is t at the first value?",
    "power": "Which comes first in your correction, the power or 1 - ...?",
    "weights": "Divide by what all the weights so far add up to, which changes with t.",
    "fed_back": "The first is right. Does the corrected number go on into the next average?",
    "from_first": "m starts at 0, not at the first value; the correction makes up for it.",
}


def check_average(t: Tester, values: np.ndarray, beta: float) -> None:
    """Ask for the averages of some values and compare."""
    mistakes: list[Any] = [
        Mistake(kind, averages(values, beta, kind=kind), text) for kind, text in WRONG.items()
    ]
    right = averages(values, beta)
    plain = np.cumsum(values) / np.arange(1, len(values) + 1)
    mistakes += [
        Mistake("plain_mean", plain, "That is the mean of all so far: each counts the same."),
        Mistake("last_only", right[-1], "That is the last one. Asked for is one after each value."),
    ]
    t.close(
        t.call("corrected_average", values, beta),
        right,
        mistakes=[one for one in mistakes if not agree(one.value, right, rtol=1e-4)],
        attempt="Follow m on paper for the first two values; then correct each.",
    )


@corrected_average.check(points=2)
def random_values(t: Tester) -> None:
    """It is right for random values."""
    for n in (3, 2, 6):
        beta = float(t.random.choice([0.9, 0.8, 0.7]))
        check_average(t, np.round(t.random.uniform(0.5, 9, n), 1), beta)


@corrected_average.check(points=1, only_with=("random_values",))
def constants(t: Tester) -> None:
    """The average of equal values is that value, from the first one on."""
    for beta in (0.999, 0.5, 0.0):
        value = float(np.round(t.random.uniform(1, 9), 1))
        check_average(t, np.full(4, value), beta)
