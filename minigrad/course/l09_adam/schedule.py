"""A schedule: warm-up in a straight line, then half a cosine."""

from __future__ import annotations

import math

from minigrad.course.l09_adam.lesson import lesson
from minigrad.grader.compare import agree
from minigrad.grader.tester import Mistake, Tester

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


def rate(t: int, warmup: int, steps: int, peak: float, minimum: float, *, kind: str = "") -> float:
    """Return the learning rate, or what people compute in its place."""
    height = peak - minimum
    if kind == "late_line" and t == warmup > 0:
        return peak * (t + 1) / warmup
    if t < warmup:
        if kind == "from_minimum":
            return minimum + height * (t + 1) / warmup
        return peak * (t + (0 if kind == "from_zero" else 1)) / warmup
    if t >= steps and kind != "rises_again":
        return minimum
    start = 0 if kind in ("whole", "shifted") else warmup
    done = (t - start) / (steps - (0 if kind == "whole" else warmup))
    half = 0.5 * (1 + math.cos(math.pi * done))
    if kind == "half":
        half = math.cos(math.pi * done / 2)
    if kind == "line":
        half = 1 - done
    if kind == "twice":
        half = 0.5 * (1 + math.cos(2 * math.pi * done))
    if kind == "no_minimum":
        return peak * half
    return minimum + (peak if kind == "on_top" else height) * half


WRONG = {
    "from_zero": "A first step of 0 moves nothing. What does the docstring say about t = 0?",
    "late_line": "The line is at peak one step earlier. Whose turn is t = warmup?",
    "from_minimum": "The line goes to peak in equal steps, from peak / warmup. The minimum is "
    "for the end.",
    "whole": "The cosine begins when the line ends. From where do you count t?",
    "shifted": "The cosine begins when the line ends. From where do you count t?",
    "half": "Half a cosine is flat at both ends. Yours falls steeply into its end.",
    "line": "That is a straight line down.",
    "twice": "That is a whole cosine: it ends where it began.",
    "no_minimum": "It ends at 0. Where should it end?",
    "on_top": "It begins above peak: by how much may it fall in all?",
    "rises_again": "A cosine goes on after its half. What does the docstring say beyond steps?",
}


def check_rate(t: Tester, at: int, warmup: int, steps: int, peak: float, minimum: float) -> None:
    """Ask for one step's rate and compare."""
    right = rate(at, warmup, steps, peak, minimum)
    wrong = [
        Mistake(kind, rate(at, warmup, steps, peak, minimum, kind=kind), text)
        for kind, text in WRONG.items()
    ]
    t.close(
        t.call("warmup_cosine", at, warmup, steps, peak, minimum),
        right,
        atol=1e-12,
        mistakes=[one for one in wrong if not agree(one.value, right, atol=1e-6)],
        attempt="Which of the three lines of the docstring is this t in? Put it in by hand.",
    )


def random_plan(t: Tester) -> tuple[int, int, float, float]:
    """Return warmup, steps, peak and minimum."""
    warmup = int(t.random.integers(4, 9))
    steps = warmup + 4 * int(t.random.integers(3, 8))
    peak = float(t.random.choice([0.1, 0.4, 0.8]))
    return warmup, steps, peak, round(peak / float(t.random.choice([4, 5, 10])), 4)


@warmup_cosine.check(points=1)
def the_line(t: Tester) -> None:
    """It rises in equal steps from peak / warmup to peak."""
    warmup, steps, peak, minimum = random_plan(t)
    for at in (0, warmup - 1, int(t.random.integers(1, warmup - 1))):
        check_rate(t, at, warmup, steps, peak, minimum)


@warmup_cosine.check(points=2)
def the_cosine(t: Tester) -> None:
    """It falls along half a cosine from peak to minimum, half way down half way along."""
    for _ in range(2):
        warmup, steps, peak, minimum = random_plan(t)
        length = steps - warmup
        for at in (warmup + length // 4, warmup, warmup + length // 2, steps - 1):
            check_rate(t, at, warmup, steps, peak, minimum)


@warmup_cosine.check(points=1)
def the_ends(t: Tester) -> None:
    """From steps on it stays at minimum, and it works without a warm-up."""
    warmup, steps, peak, minimum = random_plan(t)
    for at in (steps, steps + int(t.random.integers(1, 9)), 3 * steps):
        check_rate(t, at, warmup, steps, peak, minimum)
    for at in (0, int(t.random.integers(1, steps)), steps):
        check_rate(t, at, 0, steps, peak, 0.0)
