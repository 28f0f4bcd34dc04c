"""The slope of a function from two of its values."""

from __future__ import annotations

import numpy as np

from minigrad.course.l00_start.lesson import lesson
from minigrad.grader.compare import agree
from minigrad.grader.formula import Formula
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

central_difference = lesson.exercise(
    "central_difference",
    difficulty=2,
    minutes=10,
    returns="the slope of f at x",
    hints=(
        "Draw f, mark x, and mark the two points eps to the left and to the right of it. "
        "The straight line through the two points has a slope: rise over run.",
        "The rise is a difference of two values of f. How long is the run? Not eps.",
        "rise = f(x + eps) - f(x - eps), and the run from x - eps to x + eps is 2 * eps. "
        "Divide one by the other; mind the brackets.",
    ),
)
LOOK_AGAIN = "Evaluate f by hand at the two points and put the numbers into your line."


def smooth_function(t: Tester) -> tuple[Formula, Formula]:
    """Return a random smooth function and its derivative, neither even nor odd."""
    numbers = {name: float(t.random.uniform(0.5, 2.5)) for name in "abc"}
    kinds = [
        ("{a}*x**3 + {b}*x**2 - {c}*x", "3*{a}*x**2 + 2*{b}*x - {c}"),
        ("{a}*sin({b}*x) + {c}*x**2", "{a}*{b}*cos({b}*x) + 2*{c}*x"),
        ("{a}*exp({b}*x) - {c}*x", "{a}*{b}*exp({b}*x) - {c}"),
    ]
    function, derivative = kinds[t.random.integers(len(kinds))]
    return t.formula(function, **numbers), t.formula(derivative, **numbers)


def wrong_slopes(f: Formula, x, eps) -> list[Mistake]:
    """Return what people write instead of the central difference."""
    left, here, right = f.value(x - eps), f.value(x), f.value(x + eps)
    slope = (right - left) / (2 * eps)
    return [
        Mistake(
            "one_sided",
            (right - here) / eps,
            "This is a slope between x and one neighbour. Which other point is missing?",
        ),
        Mistake(
            "one_sided",
            (here - left) / eps,
            "This is a slope between x and one neighbour. Which other point is missing?",
        ),
        Mistake("double", 2 * slope, "Got is twice Expected. How far apart are your two points?"),
        Mistake("half", slope / 2, "Got is half of Expected. How far apart are your two points?"),
        Mistake(
            "sign",
            -slope,
            "The sign is turned. Which of the two values has to be subtracted from which?",
        ),
        Mistake("undivided", right - left, "This is the rise alone. A slope is rise over run."),
        Mistake(
            "brackets",
            right - left / (2 * eps),
            "Division binds before subtraction. What do you want to divide?",
        ),
        Mistake(
            "brackets",
            (right - left) / 2 * eps,
            "a / 2 * eps is (a / 2) * eps. What do you want to divide by?",
        ),
    ]


@central_difference.check(points=2)
def known_slopes(t: Tester) -> None:
    """It gives the derivative of random smooth functions."""
    for _ in range(4):
        f, derivative = smooth_function(t)
        x = round(float(t.random.uniform(-2, 2)), 2)
        eps = 1e-4
        got = t.call("central_difference", f, x, eps)
        t.close(
            got,
            float(derivative.value(x)),
            rtol=2e-6,
            atol=2e-6,
            attempt=LOOK_AGAIN,
            mistakes=wrong_slopes(f, x, eps),
        )


@central_difference.check(points=1)
def uses_eps(t: Tester) -> None:
    """It takes the step it is given, large ones too."""
    f, derivative = smooth_function(t)
    x, eps = round(float(t.random.uniform(-1, 1)), 2), 0.5
    expected = float((f.value(x + eps) - f.value(x - eps)) / (2 * eps))
    got = t.call("central_difference", f, x, eps)
    own_step = Mistake(
        "own_eps",
        float(derivative.value(x)),
        "This is the exact slope, so your step is much smaller than the one given. "
        "Where does the function use its own?",
    )
    t.close(
        got, expected, rtol=1e-5, attempt=LOOK_AGAIN, mistakes=[own_step, *wrong_slopes(f, x, eps)]
    )


@central_difference.check(points=1)
def arrays(t: Tester) -> None:
    """It works elementwise on arrays."""
    f, derivative = smooth_function(t)
    x = np.round(t.random.uniform(-1, 1, size=(2, 3)), 2)
    got = t.call("central_difference", f, x, 1e-4)
    expected = derivative.value(x)
    summed = [
        Mistake("summed", wrong, "One slope per entry of x, please: what adds them up?")
        for wrong in (expected.sum(), expected.mean())
    ]
    t.close(
        got,
        expected,
        rtol=2e-6,
        atol=2e-6,
        attempt=LOOK_AGAIN,
        mistakes=[*summed, *wrong_slopes(f, x, 1e-4)],
    )


@central_difference.check(points=1)
def keeps_float32(t: Tester) -> None:
    """float32 in, float32 out: the lesson measures what its rounding does."""
    f, derivative = smooth_function(t)
    x, eps = np.float32(round(float(t.random.uniform(-1, 1)), 2)), np.float32(0.01)
    got = t.call("central_difference", f, x, eps)
    t.close(
        got,
        float(derivative.value(float(x))),
        rtol=0.02,
        atol=0.02,
        attempt=LOOK_AGAIN,
        mistakes=wrong_slopes(f, float(x), float(eps)),
    )
    t.dtype(
        got,
        np.float32,
        "Something turned x into a float64. float(x) and np.float64 do; + - * / "
        "with Python numbers do not.",
    )


@central_difference.check(points=1)
def two_calls(t: Tester) -> None:
    """It calls f exactly twice, a step to either side of x."""
    f, _ = smooth_function(t)
    x, eps = round(float(t.random.uniform(-1, 1)), 2), 0.125
    t.call("central_difference", f, x, eps)
    n_calls = t.n_calls[0] if t.n_calls else 0
    if n_calls != 2:
        places = ", ".join(show(float(np.ravel(place)[0])) for place in t.evaluated_at[0][:4])
        t.fail(
            "cost",
            "2 calls of f",
            f"{n_calls} calls of f, at {places}",
            "Which of these values does the formula not need, or need only once?",
        )
    places = sorted(float(np.ravel(place)[0]) for place in t.evaluated_at[0])
    if not agree(places, [x - eps, x + eps], rtol=1e-12, atol=1e-8):
        t.fail(
            "places",
            f"f called at {show(x - eps)} and {show(x + eps)}",
            f"f called at {show(places[0])} and {show(places[1])}",
            "One step to the left of x, one to the right.",
        )
