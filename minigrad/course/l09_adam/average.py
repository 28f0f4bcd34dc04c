"""A running average that starts at zero, and what corrects it."""

from __future__ import annotations

from functools import partial

import numpy as np

from minigrad.course.l09_adam import lesson
from minigrad.grader.samples import numbers, tolerance, views
from minigrad.grader.tester import Tester

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


def averages(values, beta, *, kind=""):
    """Return the corrected averages, or those of a common mistake."""
    m, result = (float(values[0]) if kind == "from_first" else 0.0), []
    for t, value in enumerate(values, 1):
        old, new = (1 - beta, beta) if kind == "swapped" else (beta, 1 - beta)
        m = old * m + (1.0 if kind == "sum" else new) * value
        weight = 1 - beta ** (t + {"late": 1, "early": -1}.get(kind, 0))
        if kind in ("power", "weights"):
            weight = (1 - beta) ** (t if kind == "power" else 1)
        if kind in ("uncorrected", "from_first"):
            weight = 1.0
        result.append(np.float64(m) / weight)
        if kind == "fed_back":
            m = result[-1]
    return np.array(result)


for key, attempt in {
    "uncorrected": "It started at 0 and still leans there. What do the weights add up to?",
    "swapped": "beta is the share of what was there before. To which of the two do you give it?",
    "sum": "The weights of the old and of the new must add up to 1. Yours add up to more.",
    "late": "t is 1 at the first value. What is yours there?",
    "early": "Dividing by 1 - beta**0 is dividing by 0. What is t at the first value?",
    "power": "Which comes first in your correction, the power or 1 - ...?",
    "weights": "Divide by what all the weights so far add up to, which changes with t.",
    "fed_back": "The first is right. Does the corrected number go on into the next average?",
    "from_first": "m starts at 0, not at the first value; the correction makes up for it.",
}.items():
    corrected_average.mistake(key, attempt)(partial(averages, kind=key))


@corrected_average.mistake("plain_mean", "That is the mean of all so far: each counts the same.")
def _(values, beta):
    return np.cumsum(values) / np.arange(1, len(values) + 1)


@corrected_average.mistake("last_only", "That is the last one. Asked for is one after each value.")
def _(values, beta):
    return averages(values, beta)[-1]


@corrected_average.mistake("value")
def _(values, beta):
    window, shares = 50, (1 - beta) * beta ** np.arange(50)
    sums = [values[max(0, t - window) : t][::-1] @ shares[:t] for t in range(1, len(values) + 1)]
    return np.array(sums) / (1 - beta ** np.arange(1, len(values) + 1))


@corrected_average.mistake("whole", "Whole numbers came out. Which dtype has what you put them in?")
def _(values, beta):
    result = values.copy()
    result[:] = averages(values, beta)
    return result


def check_average(t: Tester, values: np.ndarray, beta: float) -> None:
    """Check the averages of some values."""
    t.compare(
        averages(values, beta),
        values,
        beta,
        rtol=tolerance(values.dtype) if values.dtype == np.float32 else 1e-9,
        atol=1e-12 * float(np.abs(values).max()),
        attempt="Which is the first that differs? What has changed for the weights by then?"
        if len(values) > 100
        else "Follow m on paper for the first two values; then correct each.",
    )


@corrected_average.check(points=2)
def random_values(t: Tester) -> None:
    """It is right for random values of both signs, few and many."""
    for n, beta in ((3, 0.9), (2, 0.8), (6, 0.7), (1, 0.9), (40, 0.9), (400, 0.1), (2000, 0.999)):
        check_average(t, numbers(t.random, (n,), high=9.0), beta)
    check_average(t, 1e-9 * numbers(t.random, (3,)), 0.9)
    check_average(t, np.array([0.0, 2.5, 0.0, 0.0, -1.5]), 0.8)
    for dtype in ("float32", "int64", "int64"):
        check_average(t, numbers(t.random, (3,), dtype, high=9.0), 0.9)
    for values in views(numbers(t.random, (3,))):
        check_average(t, values, 0.9)


@corrected_average.check(points=1, only_with=("random_values",))
def constants(t: Tester) -> None:
    """The average of equal values is that value, from the first one on."""
    for beta in (0.999, 0.5, 0.0):
        value = float(np.round(t.random.uniform(1, 9), 1))
        check_average(t, np.full(4, value), beta)
