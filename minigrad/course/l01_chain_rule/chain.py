"""The derivative of a chain of functions."""

from __future__ import annotations

import functools
import math

import numpy as np

from minigrad.course.l01_chain_rule import lesson
from minigrad.grader.formula import Formula
from minigrad.grader.tester import Mistake, Tester

chain = lesson.exercise(
    "chain",
    difficulty=3,
    minutes=15,
    returns="a number: the derivative of the whole chain",
    hints=(
        "Take two functions and write the chain rule on paper. At which point is the second "
        "derivative taken? Not at x.",
        "Walk along the chain with two numbers in hand: the value that goes into the next "
        "function, and the product of the derivatives so far.",
        "For each f, df: first multiply the product by df(value), then let value = f(value). "
        "The order of these two lines matters.",
    ),
)
STAGES = [
    ("sin({a}*x)", "{a}*cos({a}*x)"),
    ("{a}*x + {b}", "{a} + 0*x"),
    ("{a}*tanh(x) + {b}", "{a}*(1 - tanh(x)**2)"),
    ("{b}*x**2 + x", "2*{b}*x + 1"),
    ("cos(x) + {a}*x", "-sin(x) + {a}"),
]


def random_chain(t: Tester, n: int) -> tuple[list[Formula], list[Formula], float]:
    """Return n functions, their derivatives and a start that keeps all values moderate."""
    while True:
        fs, dfs = [], []
        for _ in range(n):
            f, df = STAGES[t.random.integers(len(STAGES))]
            numbers = {"a": t.random.uniform(0.6, 1.4), "b": t.random.uniform(0.1, 0.5)}
            fs.append(t.formula(f, **numbers))
            dfs.append(t.formula(df, **numbers))
        x = round(float(t.random.uniform(-1, 1)), 2)
        values = values_along(fs, x)
        derivative = chain_derivative(dfs, values)
        if max(map(abs, values)) < 20 and 1e-4 < abs(derivative) < 1e4:
            return fs, dfs, x


def values_along(fs: list[Formula], x: float) -> list[float]:
    """Return the input of each function, and the output of the last."""
    values = [x]
    for f in fs:
        values.append(float(f.value(values[-1])))
    return values


def chain_derivative(dfs: list[Formula], values: list[float]) -> float:
    """Return the product of the derivatives, each at its function's input."""
    return float(np.prod([df.value(value) for df, value in zip(dfs, values, strict=False)]))


MISSING = "One stage is missing from the product: which end of the list?"


def walk(fs, dfs, x):
    """Return the derivative of the chain, computed by a loop."""
    slope = 1.0
    for f, df in zip(fs, dfs, strict=True):
        slope *= df(x)
        x = f(x)
    return slope


@chain.mistake("value", "This is the chain's value. Asked for is its slope.")
def _(fs, dfs, x):
    for f in fs:
        x = f(x)
    return x


@chain.mistake(
    "all_at_x", "Every derivative was taken at x. What really goes into the second function?"
)
def _(fs, dfs, x):
    return math.prod(df(x) for df in dfs)


@chain.mistake(
    "after", "Each derivative was taken at what comes out of its function. What went in?"
)
def _(fs, dfs, x):
    slope = 1.0
    for f, df in zip(fs, dfs, strict=True):
        x = f(x)
        slope *= df(x)
    return slope


@chain.mistake("backwards", "The list was run from its end. x goes into fs[0].")
def _(fs, dfs, x):
    return walk(fs[::-1], dfs[::-1], x)


@chain.mistake("sum", "Two stages that each double a change: is the whole change 2 + 2 or 2 * 2?")
def _(fs, dfs, x):
    total = 0.0
    for f, df in zip(fs, dfs, strict=True):
        total += df(x)
        x = f(x)
    return total


@chain.mistake("last_missing", MISSING)
def _(fs, dfs, x):
    return walk(fs[:-1], dfs[:-1], x)


@chain.mistake("first_missing", MISSING)
def _(fs, dfs, x):
    return walk(fs[1:], dfs[1:], fs[0](x))


@chain.mistake("value")
def _(fs, dfs, x):
    return abs(walk(fs, dfs, x))


@chain.mistake("cost")
def _(fs, dfs, x):
    return math.prod(df(functools.reduce(lambda y, f: f(y), fs[:i], x)) for i, df in enumerate(dfs))


@chain.mistake("value")
def _(fs, dfs, x):
    def whole(x):
        return functools.reduce(lambda y, f: f(y), fs, x)

    return (whole(x + 1e-3) - whole(x)) / 1e-3


def check_chain(t: Tester, n: int) -> None:
    """Check the derivative of a random chain of n functions."""
    while True:  # until every mistake gives a different number
        fs, dfs, x = random_chain(t, n)
        right = chain_derivative(dfs, values_along(fs, x))
        mistakes = t.mistakes(fs, dfs, x) if n > 1 else []
        answers = sorted([right, *(mistake.value for mistake in mistakes)])
        if np.min(np.diff(answers), initial=1.0) > 1e-4:
            break
    t.compare(
        right,
        fs,
        dfs,
        x,
        rtol=1e-9,
        atol=0,
        attempt="Follow a chain of two by hand: which derivative is taken at which value?",
    )


@chain.check(points=1)
def two_functions(t: Tester) -> None:
    """It is right for chains of two."""
    for _ in range(3):
        check_chain(t, 2)


@chain.check(points=1)
def any_length(t: Tester) -> None:
    """It is right for chains of 1 to 12 functions."""
    for n in (1, 12, *t.random.integers(3, 12, 3)):
        check_chain(t, int(n))


@chain.check(points=1, only_with=("any_length",))
def the_same_twice(t: Tester) -> None:
    """It is right where a function comes several times, where slopes are 0, below it, or huge."""
    bend, falling = ("1.5*x - x**2", "1.5 - 2*x"), ("cos(x)", "-sin(x)")
    to_zero = "x*(x - 0.5)", "2*x - 0.5"
    steep, shallow = ("10*x", "10 + 0*x"), ("0.01*x", "0.01 + 0*x")
    for (text, slope), n, x in (
        (bend, 3, 0.25),
        (falling, 2, 0.5),
        (falling, 1, 0.5),
        (falling, 3, 0.75),
        (bend, 2, 0.75),
        (bend, 2, 0.5),
        (bend, 3, 0.0),
        (to_zero, 3, 0.5),
        (steep, 9, 0.5),
        (shallow, 12, 0.5),
    ):
        f, df = t.formula(text), t.formula(slope)
        fs, dfs = [f] * n, [df] * n
        right = chain_derivative(dfs, values_along(fs, x))
        got = t.call("chain", fs, dfs, x)
        slopes = [df.value(value) for df, value in zip(dfs, values_along(fs, x), strict=False)]
        attempt = "One and the same function may come again, with another number going in."
        if 0 in slopes:
            attempt = "One of the slopes is 0 here. What does your function do with it?"
        if "x" not in slope.replace("0*x", ""):
            attempt = f"Each slope is {df.value(x):g}. Multiply them by hand: who stops, or rounds?"
        size = Mistake("value", abs(right), "The size is right. Which sign has a falling function?")
        t.close(
            got,
            right,
            rtol=1e-9,
            atol=0,
            attempt=attempt,
            mistakes=[*t.mistakes(fs, dfs, x), size],
        )


@chain.check(points=1)
def each_once(t: Tester) -> None:
    """It calls each function at most once."""
    n = 8
    fs, dfs, x = random_chain(t, n)
    t.call("chain", fs, dfs, x)
    calls = t.n_calls[:n]
    if sum(t.n_calls[n:]) == 0:
        t.fail(
            "no_derivatives",
            "calls of the functions in dfs",
            "no call of any of them",
            "The derivatives are given in dfs. How would you use them?",
        )
    if max(calls, default=0) > 1:
        t.fail(
            "cost",
            f"at most {n} calls of functions in fs, one each",
            f"{sum(calls)} calls, {max(calls)} of the same function",
            "Which value is computed again that you had in hand already?",
        )
