"""Lesson 00: what is checked, for how many points, and the hints."""

from __future__ import annotations

import math

import numpy as np

from minigrad.grader.formula import Formula
from minigrad.grader.message import show
from minigrad.grader.spec import Lesson
from minigrad.grader.tester import Mistake, Tester

lesson = Lesson("00_start", "The run loop, and a derivative from nothing but function calls")

# ---- hello ------------------------------------------------------------------------------------

hello = lesson.exercise(
    "hello",
    difficulty=1,
    minutes=2,
    returns="a text",
    hints=(
        "Read Expected and Got letter by letter.",
        "Two letters stand in the wrong order.",
        "g-r-a, not g-a-r.",
    ),
)
GREETING = "hello, gradients"


@hello.check(points=1)
def text(t: Tester) -> None:
    """It returns the greeting, exactly."""
    got = t.call("hello")
    if got is None:
        t.none(show(GREETING))
    if not isinstance(got, str):
        t.fail(
            "type",
            f"{show(GREETING)}, a str",
            f"{show(got)}, a {type(got).__name__}",
            "Return a text in quotes.",
        )
    if got == GREETING:
        return
    if got.strip() == GREETING:
        t.fail("spaces", show(GREETING), show(got), "Is there a blank or a line end too many?")
    if got.lower() == GREETING:
        t.fail("capitals", show(GREETING), show(got), "Capital letters are other letters.")
    if sorted(got) == sorted(GREETING):
        t.fail(
            "order",
            show(GREETING),
            show(got),
            "The letters are all there. Compare their order, one word at a time.",
        )
    if letters(got) == letters(GREETING):
        t.fail("punctuation", show(GREETING), show(got), "The words are right. And between them?")
    t.fail("value", show(GREETING), show(got), "Compare the two texts letter by letter.")


def letters(value: str) -> str:
    """Return only the letters."""
    return "".join(letter for letter in value if letter.isalpha())


# ---- central_difference -----------------------------------------------------------------------

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
    if not np.allclose(places, [x - eps, x + eps], rtol=1e-12):
        t.fail(
            "places",
            f"f called at {show(x - eps)} and {show(x + eps)}",
            f"f called at {show(places[0])} and {show(places[1])}",
            "One step to the left of x, one to the right.",
        )


# ---- slope: the bug hunt ----------------------------------------------------------------------

slope = lesson.exercise(
    "slope",
    difficulty=3,
    minutes=15,
    returns="the derivative of f at x",
    hints=(
        "The step is a millionth. Is x + eps always another number than x?",
        "Floats have 53 bits: between 1 and 2 they are 2e-16 apart, around 1e10 already 2e-6. "
        "Print x + eps - x for x = 1, 1e6, 1e9, 1e12.",
        "Let the step grow with |x|, but never below a small constant, so that it works at 0 too: "
        "something like c * max(1.0, abs(x)), with c between 1e-6 and 1e-4.",
    ),
)
PLANTED_STEP = 1e-6


def planted_slope(x: float) -> float:
    """Return what the planted defect gives for f(x) = x * x."""
    left, right = x - PLANTED_STEP, x + PLANTED_STEP
    return (right * right - left * left) / (2 * PLANTED_STEP)


@slope.check(points=2)
def diagnosis(t: Tester) -> None:
    """BUG names an x for which the slope as it came is wrong."""
    bug = t.get("BUG")
    where = t.runner.line_of("BUG")
    expected = '("x", a number), such as ("x", 2.0)'
    well_formed = isinstance(bug, tuple | list) and len(bug) == 2 and bug[0] == "x"
    if not well_formed or isinstance(bug[1], bool) or not isinstance(bug[1], int | float):
        untouched = well_formed and bug[1] is None
        t.fail(
            "untouched" if untouched else "form",
            expected,
            show(bug),
            "Try slope(lambda x: x * x, x) for x of many sizes and compare with 2 * x.",
            where=where,
        )
    x = float(bug[1])
    t.given = f"slope as it came, f(x) = x * x, x = {show(x)}"
    if not math.isfinite(x) or abs(x) > 1e100 or (x != 0 and abs(x) < 1e-100):
        t.fail(
            "extreme",
            "an x whose square is an ordinary number",
            show(x),
            "x * x itself overflows or vanishes here; look at less extreme numbers.",
            where=where,
        )
    got = planted_slope(x)
    error = abs(got - 2 * x) / abs(2 * x) if x else abs(got)
    if error <= 0.1:
        t.fail(
            "not_wrong",
            "a slope that is off by more than 10 %",
            f"{show(got, 12)}, off by {100 * error:.2g} %",
            "It is nearly right there. Does the error grow or shrink with x?",
            where=where,
        )


def power(t: Tester, n: int) -> tuple[Formula, Formula]:
    """Return a random multiple of x to the n, with its derivative."""
    a = float(t.random.uniform(0.5, 2.5))
    return t.formula(f"{{a}}*x**{n}", a=a), t.formula(f"{n}*{{a}}*x**{n - 1}", a=a)


def check_sizes(t: Tester, low: float, high: float, key: str, attempt: str) -> None:
    """Ask for the slope at random points between two powers of ten, of both signs."""
    for number, exponent in enumerate(np.linspace(low, high, 8)):
        # On a square alone any step would do, but for rounding.
        f, derivative = power(t, 3 - number % 2)
        x = float(f"{t.random.choice([-1.0, 1.0]) * t.random.uniform(0.8, 1.2) * 10**exponent:.4g}")
        got = t.call("slope", f, x)
        expected = float(derivative.value(x))
        wrong = (
            []
            if got is None or not isinstance(got, int | float | np.generic)
            else [Mistake(key, got, attempt)]
        )
        t.close(got, expected, rtol=1e-3, attempt=attempt, mistakes=wrong)


@slope.check(points=3)
def every_size(t: Tester) -> None:
    """It is right for large and for ordinary numbers, and finite at 0."""
    check_sizes(t, 8, 12, "large_x", "How far apart are neighbouring floats near this x?")
    check_sizes(t, -2, 2, "small_x", "Is the step small beside x, and yet far above its rounding?")
    f, _ = power(t, 2)
    got = t.call("slope", f, 0.0)
    t.close(got, 0.0, atol=1e-6, attempt="How long is your step when x is 0?")
