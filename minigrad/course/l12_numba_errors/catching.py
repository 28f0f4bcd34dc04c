"""An except that names a kind of error."""

from __future__ import annotations

import numpy as np

from minigrad.course.l12_numba_errors import lesson
from minigrad.course.l12_numba_errors.common import compare, ends_well, numbers
from minigrad.grader.tester import Tester

ratios = lesson.exercise(
    "ratios",
    difficulty=2,
    minutes=7,
    returns="an array of quotients",
    hints=(
        "The message says what except may name in compiled code. Do you need an except here?",
        "When does this division raise? Ask that before you divide.",
        "if b[i] == 0.0: out[i] = 0.0, else: out[i] = a[i] / b[i]. No try is left.",
    ),
)


@ratios.mistake("positive", "Which b make the division impossible: all that are not positive?")
def if_positive(a, b):  # noqa: D103
    return np.array([p / q if q > 0 else 0.0 for p, q in zip(a, b, strict=True)])


@ratios.mistake("shifted", "A small number in the divisor changes all quotients a little.")
def with_epsilon(a, b):  # noqa: D103
    return a / (b + 1e-8)


@ratios.mistake("infinite", "x / 0 is inf in NumPy. The docstring wants another value.")
def as_numpy(a, b):  # noqa: D103
    return np.array([p / q if q != 0 else np.inf * p for p, q in zip(a, b, strict=True)])


@ratios.mistake("finite", "An infinite quotient is no sign of a b of 0: a may be inf. What is?")
def if_finite(a, b):  # noqa: D103
    out = quotients(a, b)
    return np.where(np.isfinite(out), out, 0.0)


@ratios.mistake("numerator", "Where b is 0, the result is 0, whatever a is.")
def keeps_numerator(a, b):  # noqa: D103
    return np.array([p / q if q != 0 else p for p, q in zip(a, b, strict=True)])


@ratios.mistake(
    "tiny", "Only a divisor of exactly 0 counts as 0. Small ones are numbers like others."
)
def if_large(a, b):  # noqa: D103
    return np.array([p / q if abs(q) > 1e-6 else 0.0 for p, q in zip(a, b, strict=True)])


@ratios.mistake("stops", "After the first b of 0, nothing is divided any more. What is inside try?")
def until_the_first_zero(a, b):  # noqa: D103
    out = np.zeros(len(a))
    for i in range(len(a)):
        if b[i] == 0:
            break
        out[i] = a[i] / b[i]
    return out


def quotients(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a / b, with 0 where b is 0."""
    zero = b == 0
    with np.errstate(invalid="ignore"):  # inf / inf
        return np.where(zero, 0.0, a / np.where(zero, 1.0, b))


@ratios.mistake("inverse", "a * (1 / b) is not a / b: for a tiny b, 1 / b is beyond all floats.")
def times_the_inverse(a, b):  # noqa: D103
    return np.array([p * (1.0 / q) if q != 0 else 0.0 for p, q in zip(a, b, strict=True)])


def ask(t: Tester, a: np.ndarray, b: np.ndarray) -> None:
    """Fail unless the quotients are right, with 0 where b is 0."""
    compare(
        t, quotients(a, b), a, b, attempt="Take the first wrong element: what are a and b there?"
    )


@ratios.check(points=1, only_with=("any_divisor",))
def few(t: Tester) -> None:
    """It compiles, and divides where it can."""
    for n in (3, 4):
        a, b = numbers(t, n, low=1, high=5), numbers(t, n, low=1, high=5)
        b[int(t.fixed.integers(n))] = 0.0
        ask(t, a, b)


@ratios.check(points=2)
def any_divisor(t: Tester) -> None:
    """Only a divisor of 0 gives 0: what is negative, tiny or infinite is divided."""
    for n in (1, 6, 8):
        a, b = numbers(t, n), numbers(t, n, low=-5, high=-1)
        a[3::3] = b[::3] = 0.0  # 0 / 0 from the second one on
        ask(t, a, b)
    for sign in (1.0, -1.0):
        b = np.array([1e-9, -1e-12, 0.0, -0.0, np.inf, 2.0])
        ask(t, sign * numbers(t, 6, low=1, high=4), b)
    ask(t, np.array([np.inf, -np.inf, np.inf, 1.0]), np.array([2.0, 0.5, 0.0, -0.25]))
    ask(t, np.array([-np.inf, 3.0, np.inf]), np.array([np.inf, 4.0, -3.0]))
    b = np.array([4e-309, 0.0, -4e-309])  # 1 / 4e-309 is inf
    ask(t, numbers(t, 3, low=1, high=4) * 1e-305, b)
    ask(t, np.zeros(0), np.zeros(0))
    a, b = numbers(t, 4, low=1, high=5), np.array([2.0, 0.0, -4.0, 0.0])
    ends_well(t, quotients(a, b), a, b)
