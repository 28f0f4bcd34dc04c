"""A schedule: warm-up in a straight line, then half a cosine."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from minigrad.course.l09_adam import lesson
from minigrad.grader.message import show
from minigrad.grader.tester import Tester

warmup_cosine = lesson.exercise(
    "warmup_cosine",
    difficulty=2,
    minutes=10,
    returns="a number: the learning rate of step t",
    hints=(
        "Three cases, three lines of code. Put t = 0, t = warmup and t = steps into the docstring "
        "and write down what each must give.",
        "In the middle part let done run from 0 to 1: how much of the way from warmup to steps is "
        "behind us. cos(pi * done) then runs from 1 to -1.",
        "peak * (t + 1) / warmup; minimum; and minimum + (peak - minimum) * (1 + cos(pi * done)) "
        "/ 2 with done = (t - warmup) / (steps - warmup).",
    ),
)


def rate(t, warmup, steps, peak, minimum=0.0, *, kind=""):
    """Return the learning rate, right or with a common mistake."""
    height = peak - minimum
    if kind == "late_line" and t == warmup > 0:
        return peak * (t + 1) / warmup
    if t < max(warmup, kind == "raised"):
        if kind == "from_minimum":
            return minimum + height * (t + 1) / warmup
        line = peak * (t + (kind != "from_zero")) / warmup
        return max(minimum, line) if kind == "value" else line
    if t >= steps and kind != "rises_again":
        return minimum
    start = 0 if kind in ("whole", "shifted") else warmup
    start += {"late_cosine": 1, "early_cosine": -1}.get(kind, 0)
    done = (t - start) / (steps - (0 if kind == "whole" else warmup))
    half = 0.5 * (1 + math.cos(math.pi * done * (2 if kind == "twice" else 1)))
    if kind in ("half", "line"):
        half = math.cos(math.pi * done / 2) if kind == "half" else 1 - done
    if kind == "no_minimum":
        return peak * half
    return minimum + (peak if kind == "on_top" else height) * half


for key, attempt in {
    "from_zero": "A first step of 0 moves nothing. What does the docstring say about t = 0?",
    "late_line": "The line is at peak one step earlier. Whose turn is t = warmup?",
    "from_minimum": "The line goes to peak in equal steps, from peak / warmup. The minimum is "
    "for the end.",
    "whole": "The cosine begins when the line ends. From where do you count t?",
    "shifted": "The cosine begins when the line ends. From where do you count t?",
    "late_cosine": "It is at peak one step too late. How far along the cosine is t = warmup?",
    "early_cosine": "It has left peak one step too early. How far along the cosine is t = warmup?",
    "half": "Half a cosine is flat at both ends. Yours falls steeply into its end.",
    "line": "That is a straight line down.",
    "twice": "That is a whole cosine: it ends where it began.",
    "no_minimum": "It ends at 0. Where should it end?",
    "on_top": "It begins above peak: by how much may it fall in all?",
    "rises_again": "A cosine goes on after its half. What does the docstring say beyond steps?",
    "value": "",
    "raised": "",
}.items():
    warmup_cosine.mistake(key, attempt)(partial(rate, kind=key))


def check_rate(t: Tester, *arguments: Any) -> None:
    """Check one step's rate; the arguments are those of warmup_cosine."""
    right = rate(*arguments)
    got = t.call("warmup_cosine", *arguments)
    if isinstance(got, np.ndarray):
        t.fail("type", f"{right}, a float", f"{show(got)}, an array", "A rate is one number.")
    t.close(
        got,
        right,
        rtol=1e-9,
        atol=1e-12 * abs(arguments[3]),
        mistakes=t.mistakes(*arguments),
        attempt="Which of the three lines of the docstring is this t in? Put it in by hand.",
    )


# Warmup, steps, peak and minimum; the second line begins below its minimum.
PLANS = ((5, 25, 0.1, 0.01), (8, 40, 0.4, 0.1), (2000, 9000, 1e-5, 1e-7))


@warmup_cosine.mistake("value")
def _(t, warmup, steps, peak, minimum=0.0):
    return round(rate(t, warmup, steps, peak, minimum), 8)


@warmup_cosine.check(points=1)
def the_line(t: Tester) -> None:
    """It rises in equal steps from peak / warmup to peak."""
    for warmup, *rest in PLANS:
        for at in (0, warmup - 1, int(t.random.integers(1, warmup - 1))):
            check_rate(t, at, warmup, *rest)
    check_rate(t, 0, 1, 9, 0.5, 0.1)


@warmup_cosine.check(points=2)
def the_cosine(t: Tester) -> None:
    """It falls along half a cosine from peak to minimum, half way down half way along."""
    for warmup, steps, *rest in PLANS:
        length = steps - warmup
        for at in (warmup + length // 4, warmup, warmup + length // 2, steps - 1):
            check_rate(t, at, warmup, steps, *rest)
    plan = list(PLANS[0])
    for place, other in enumerate((4, 20, 0.3, 0.02)):  # change one argument at a time
        for number in (plan[place], other):
            check_rate(t, 12, *plan[:place], number, *plan[place + 1 :])


@warmup_cosine.check(points=1)
def the_ends(t: Tester) -> None:
    """From steps on it stays at minimum, 0 by default, and it works without a warm-up."""
    for warmup, steps, *rest in PLANS:
        for at in (steps, steps + 1, steps + 7, 3 * steps, 100_000):
            check_rate(t, at, warmup, steps, *rest)
        for at in (0, int(t.random.integers(1, steps)), steps):
            check_rate(t, at, 0, steps, rest[0], 0.0)
            check_rate(t, at, 0, steps, rest[0])
