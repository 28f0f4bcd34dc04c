"""The slope of a function from two of its values."""

from __future__ import annotations

import numpy as np

from minigrad.course.l00_start import lesson
from minigrad.grader import samples
from minigrad.grader.compare import agree
from minigrad.grader.formula import Formula
from minigrad.grader.message import show
from minigrad.grader.tester import Tester

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
LAYOUT = "This array lies in memory in another order. Which step goes by the order in memory?"
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


ONE_SIDED = "This is a slope between x and one neighbour. Which other point is missing?"


@central_difference.mistake("one_sided", ONE_SIDED)
def _(f, x, eps):
    return (f(x + eps) - f(x)) / eps


@central_difference.mistake("one_sided", ONE_SIDED)
def _(f, x, eps):
    return (f(x) - f(x - eps)) / eps


@central_difference.mistake("double", "Got is twice Expected. How far apart are your two points?")
def _(f, x, eps):
    return (f(x + eps) - f(x - eps)) / eps


@central_difference.mistake("half", "Got is half of Expected. How far apart are your two points?")
def _(f, x, eps):
    return (f(x + eps) - f(x - eps)) / (4 * eps)


@central_difference.mistake(
    "sign", "The sign is turned. Which of the two values has to be subtracted from which?"
)
def _(f, x, eps):
    return (f(x - eps) - f(x + eps)) / (2 * eps)


@central_difference.mistake(
    "half_step", "Your points are eps apart. How far from x does the docstring say, on either side?"
)
def _(f, x, eps):
    return (f(x + eps / 2) - f(x - eps / 2)) / eps


@central_difference.mistake("undivided", "This is the rise alone. A slope is rise over run.")
def _(f, x, eps):
    return f(x + eps) - f(x - eps)


@central_difference.mistake(
    "brackets", "Division binds before subtraction. What do you want to divide?"
)
def _(f, x, eps):
    return f(x + eps) - f(x - eps) / (2 * eps)


@central_difference.mistake(
    "brackets", "a / 2 * eps is (a / 2) * eps. What do you want to divide by?"
)
def _(f, x, eps):
    return (f(x + eps) - f(x - eps)) / 2 * eps


@central_difference.mistake(
    "own_eps", "Your step is much smaller than the one given. Where does the function use its own?"
)
def _(f, x, eps):
    eps = 1e-6
    return (f(x + eps) - f(x - eps)) / (2 * eps)


SCALED = "Your step grows with x. How far from x does the docstring say?"


@central_difference.mistake("scaled_eps", SCALED)
def _(f, x, eps):
    eps = eps * np.maximum(1, np.abs(x))
    return (f(x + eps) - f(x - eps)) / (2 * eps)


@central_difference.mistake("scaled_eps", SCALED)
def _(f, x, eps):
    eps = eps * (1 + np.abs(x))
    return (f(x + eps) - f(x - eps)) / (2 * eps)


@central_difference.mistake("summed", "One slope per entry of x, please: what adds them up?")
def _(f, x, eps):
    return np.sum(f(x + eps) - f(x - eps)) / (2 * eps)


@central_difference.mistake("summed", "One slope per entry of x, please: what adds them up?")
def _(f, x, eps):
    return np.mean(f(x + eps) - f(x - eps)) / (2 * eps)


@central_difference.mistake("raised")
def _(f, x, eps):
    x = float(x)
    return (f(x + eps) - f(x - eps)) / (2 * eps)


@central_difference.mistake("dtype")
def _(f, x, eps):
    x = np.asarray(x, dtype=np.float64)
    return (f(x + eps) - f(x - eps)) / (2 * eps)


@central_difference.mistake("cost")
def _(f, x, eps):
    f(x)
    return (f(x + eps) - f(x - eps)) / (2 * eps)


@central_difference.check(points=2)
def known_slopes(t: Tester) -> None:
    """It gives the derivative of random smooth functions."""
    numbers = [round(float(x), 2) for x in t.random.uniform(-2, 2, 2)]
    for x in numbers * 2:  # each comes with another function
        f, derivative = smooth_function(t)
        right = float(derivative.value(x))
        t.compare(right, f, x, 1e-4, rtol=2e-6, atol=2e-6, attempt=LOOK_AGAIN)


@central_difference.check(points=1)
def uses_eps(t: Tester) -> None:
    """It takes the step it is given, large ones too."""
    f, _ = smooth_function(t)
    for low, eps in ((-1, 0.5), (2, 0.5), (-4, 0.125), (None, 0.5), (0, 3.0)):
        x = 0.0 if low is None else round(float(t.random.uniform(low, low + 2)), 2)
        right = float((f.value(x + eps) - f.value(x - eps)) / (2 * eps))
        t.compare(right, f, x, eps, rtol=1e-9, attempt=LOOK_AGAIN)
    steep, too_large = t.formula("1e305*x"), "What do you divide by before you subtract?"
    t.compare(1e305, steep, 1.0, 1e-4, rtol=1e-9, attempt=too_large)


@central_difference.check(points=1)
def arrays(t: Tester) -> None:
    """It works elementwise on arrays."""
    f, derivative = smooth_function(t)
    for x in samples.arrays(t.random, low=-1, high=1, dtypes=["float64"]):
        attempt = LOOK_AGAIN if x.flags.c_contiguous else LAYOUT
        t.compare(derivative.value(x), f, x, 1e-4, rtol=2e-6, atol=2e-6, attempt=attempt)
    two = "This f returns the very array that it is given. How many arrays does yours make?"
    t.compare(np.ones(2), t.formula("x"), np.array([1.0, 2.0]), 0.125, rtol=1e-9, attempt=two)


@central_difference.check(points=1)
def keeps_float32(t: Tester) -> None:
    """float32 in, float32 out: the lesson measures what its rounding does."""
    f, derivative = smooth_function(t)
    for shape, eps in (((), np.float32(0.01)), ((2, 3), 0.01)):
        x = samples.numbers(t.random, shape, "float32", -1, 1)[()]
        right = derivative.value(np.asarray(x, np.float64))
        got = t.compare(right, f, x, eps, rtol=0.02, atol=0.02, attempt=LOOK_AGAIN)
        t.dtype(
            got,
            np.float32,
            "Something turned x into a float64. float(x) and np.float64 do; + - * / "
            "with Python numbers do not.",
        )


@central_difference.check(points=1)
def two_calls(t: Tester) -> None:
    """It calls f exactly twice, a step to either side of x."""
    smooth, _ = smooth_function(t)
    for shape, eps in (((), 0.125), ((3,), 0.125), ((0,), 0.125), ((), 2.0**-30), (None, 0.125)):
        f, x = smooth, samples.numbers(t.random, shape or (), low=-1, high=1)[()]
        if shape is None:
            f, x = t.formula("sqrt(x)"), 0.0  # has no value on one side
        elif shape:
            x[:1] = 0.0
        t.call("central_difference", f, x, eps)
        n_calls = t.n_calls[0] if t.n_calls else 0
        places = t.evaluated_at[0] if t.evaluated_at else []
        if n_calls != 2:
            t.fail(
                "cost",
                "2 calls of f",
                f"{n_calls} calls of f, at {', '.join(map(show, places[:4]))}",
                "Which of these values does the formula not need, or need only once?"
                if not shape
                else "f takes a whole array at once. What do you call it for?",
            )
        for order in (places, places[::-1]):
            sides = zip(order, (x - eps, x + eps), strict=True)
            if all(agree(place, side, rtol=0, atol=0.01 * eps) for place, side in sides):
                break
        else:
            t.fail(
                "places",
                f"f called at {show(x - eps, 12)} and {show(x + eps, 12)}",
                f"f called at {show(places[0], 12)} and {show(places[1], 12)}",
                "One step to the left of x, one to the right.",
            )
