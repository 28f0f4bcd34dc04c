"""A compiled function that calls an ordinary one."""

from __future__ import annotations

import math

import numpy as np

from minigrad.course.l12_numba_errors import lesson
from minigrad.course.l12_numba_errors.common import ODD, compare, ends_well, numbers
from minigrad.grader.tester import Tester

gelu = lesson.exercise(
    "gelu",
    difficulty=1,
    minutes=5,
    returns="an array with the GELU of each element",
    hints=(
        '"Untyped global name" means: a name from outside of the function, of which Numba does '
        "not know what it is. Which name, and what is it?",
        "normal_share is an ordinary Python function, which runs in the interpreter. Compiled "
        "code does not go back there. What makes a function a compiled one?",
        "Write @njit above normal_share. Nothing else is wrong.",
    ),
)


def share(z):  # noqa: D103
    return 0.5 * (1.0 + math.erf(z / math.sqrt(2.0)))


@gelu.mistake("no_root", "erf is not yet the normal distribution: by what is z divided?")
def without_root(x):  # noqa: D103
    return np.array([v * 0.5 * (1.0 + math.erf(v)) for v in x])


@gelu.mistake(
    "tanh", "That is the well-known approximation by tanh. The formula with erf was given."
)
def by_tanh(x):  # noqa: D103
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1.0 + np.tanh(inner))


@gelu.mistake(
    "sigmoid", "That is an approximation by the logistic function. The formula with erf was given."
)
def by_sigmoid(x):  # noqa: D103
    return x / (1.0 + np.exp(-1.702 * x))


@gelu.mistake("doubled", "It is twice as much. Which factor of the formula is missing?")
def without_half(x):  # noqa: D103
    return np.array([2.0 * v * share(v) for v in x])


@gelu.mistake("share", "That is the share alone. GELU is a product: with what?")
def share_alone(x):  # noqa: D103
    return np.array([share(v) for v in x])


@gelu.mistake("relu", "GELU is smooth: a small negative number is not yet 0.")
def rectified(x):  # noqa: D103
    return np.maximum(x, 0.0)


@gelu.mistake("above", "That is the share above z. Which is wanted?")
def by_the_upper_share(x):  # noqa: D103
    return np.array([v * share(-v) for v in x])


@gelu.mistake("first", "One element is right, and the loop is left. Where does return stand?")
def left_early(x):  # noqa: D103
    out = np.zeros(len(x))
    out[:1] = [v * share(v) for v in x[:1]]
    return out


def gelu_of(x: np.ndarray) -> np.ndarray:
    """Return GELU of each element."""
    return np.array([v * share(v) for v in x])


ATTEMPT = "Take the first element that differs. Is it written? What does math.erf give there?"


def ask(t: Tester, *given: np.ndarray) -> None:
    """Fail unless GELU of these arrays is right."""
    for x in given:
        compare(t, gelu_of(x), x, attempt=ATTEMPT)


@gelu.check(points=1, only_with=("any_length",))
def few(t: Tester) -> None:
    """It compiles, and computes a few elements."""
    ask(t, numbers(t, 3), numbers(t, 4))


@gelu.check(points=1)
def any_length(t: Tester) -> None:
    """It computes arrays of any length, with large and small numbers."""
    large = np.array([0.0, -3.2, 3.2, -4.5, 4.5, -8.0, 8.0, 40.0, -40.0])
    ask(t, numbers(t, 1), numbers(t, 6), large, np.zeros(0))
    x = np.array([np.nan, np.inf, -1.5])
    compare(t, gelu_of(x), x, attempt=ODD)
    x = numbers(t, 5)
    ends_well(t, gelu_of(x), x)
