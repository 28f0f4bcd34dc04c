"""The largest batch that fits, from two measurements of a straight line."""

from __future__ import annotations

import math

import numpy as np

from minigrad.course.l06_memory_growth import lesson
from minigrad.grader.formula import Formula
from minigrad.grader.message import counted, show
from minigrad.grader.tester import Tester

max_batch = lesson.exercise(
    "max_batch",
    difficulty=2,
    minutes=10,
    returns="an int: a number of samples",
    hints=(
        "Two points fix a straight line. What is measure(2) - measure(1)?",
        "per_sample = measure(2) - measure(1). And what is left of measure(1) without its one "
        "sample?",
        "fixed = measure(1) - per_sample. How often does per_sample go into limit - fixed? "
        "Whole samples only, and never fewer than none.",
    ),
)


NEAREST = "A part of a sample does not fit: to which side do you round?"


@max_batch.mistake("strict", "What just fits does fit: may the peak be equal to the limit?")
def _(measure, limit):
    one, two = measure(1), measure(2)
    return max(0, (limit - 1 - (2 * one - two)) // (two - one))


@max_batch.mistake(
    "proportional", "Does a batch of 2 need twice the bytes of a batch of 1? Measure."
)
def _(measure, limit):
    return limit // measure(1)


@max_batch.mistake("no_fixed", "The fixed part is in memory too, before the first sample comes.")
def _(measure, limit):
    return limit // (measure(2) - measure(1))


@max_batch.mistake("one_missing", "measure(1) is not the fixed part: what else is in it?")
def _(measure, limit):
    one, two = measure(1), measure(2)
    return (limit - one) // (two - one)


@max_batch.mistake("rounded", NEAREST)
def _(measure, limit):
    one, two = measure(1), measure(2)
    return -(-(limit - (2 * one - two)) // (two - one))


@max_batch.mistake("rounded", NEAREST)
def _(measure, limit):
    one, two = measure(1), measure(2)
    return round((limit - (2 * one - two)) / (two - one))


@max_batch.mistake(
    "inexact", "A float has 16 digits, and these bytes more. Which operator stays with ints?"
)
def _(measure, limit):
    one, two = measure(1), measure(2)
    return max(0, math.floor((limit - (2 * one - two)) / (two - one)))


@max_batch.mistake(
    "inexact", "A float32 has 7 digits. Which numbers, and which operator, are exact?"
)
def _(measure, limit):
    one, two = (np.float32(measure(batch)) for batch in (1, 2))
    return max(0, math.floor((limit - (2 * one - two)) / (two - one)))


@max_batch.mistake("float")
def _(measure, limit):
    one, two = measure(1), measure(2)
    return (limit - (2 * one - two)) / (two - one)


@max_batch.mistake("value")
def _(measure, limit):
    one, two = measure(1), measure(2)
    return (limit - (2 * one - two)) // (two - one) if limit > one else 0


@max_batch.mistake("negative")
def _(measure, limit):
    one, two = measure(1), measure(2)
    return (limit - (2 * one - two)) // (two - one)


@max_batch.mistake("cost")
def _(measure, limit):
    batch = 0
    while measure(batch + 1) <= limit:
        batch += 1
    return batch


@max_batch.mistake("no_sample")
def _(measure, limit):
    fixed = measure(0)
    return max(0, (limit - fixed) // (measure(1) - fixed))


class Step:
    """A training step whose peak memory is fixed + per_sample * batch."""

    def __init__(self, t: Tester, fixed: int | None = None, per_sample: int | None = None) -> None:
        self.t = t
        self.per_sample = per_sample or int(t.random.integers(20, 90))
        if fixed is None:
            fixed = int(t.random.integers(3, 9)) * self.per_sample
            fixed += int(t.random.integers(1, self.per_sample))
        self.fixed = fixed
        self.measure = Formula(f"{self.fixed} + {self.per_sample}*x")

    def peak(self, batch: int) -> int:
        """Return a batch's peak memory."""
        return self.fixed + self.per_sample * batch

    def check(self, limit: int, batch: int, attempt: str) -> None:
        """Fail unless max_batch gives this batch for this limit."""
        t = self.t
        got = t.call("max_batch", self.measure, limit)
        expected = f"{batch}: peak {self.peak(batch)} fits into {limit}, {self.peak(batch + 1)} not"
        if not batch:
            expected = f"0: a batch of 1 needs {self.peak(1)}, and there are {limit}"
        if isinstance(got, float) and math.isfinite(got) and int(got) == batch:
            whole = "A batch has a whole number of samples. Which operator gives a float?"
            t.fail("float", expected, f"{got!r}, a float", whole)
        if isinstance(got, np.integer) and got == batch:
            attempt = f"{type(got).__name__} is NumPy's. Which of your numbers is an array's?"
            t.fail("numpy", f"{expected}, an int", f"{got}, a {type(got).__name__}", attempt)
        if isinstance(got, int) and got < 0 == batch:
            t.fail("negative", expected, show(got), "How many samples are fewer than none?")
        t.close(
            got,
            batch,
            rtol=0,
            atol=0,
            attempt=attempt,
            mistakes=t.mistakes(self.measure, limit),
        )
        calls = t.n_calls[0]
        if not calls:
            t.fail(
                "not_measured",
                "one or two calls of measure",
                "none",
                "Of the step you know nothing but what measure(batch) says. Ask it.",
            )
        if calls > 2:
            t.fail(
                "cost",
                "at most 2 calls of measure",
                counted(calls, "call"),
                "Each call is a training step. How many points fix a straight line?",
            )
        if any(np.asarray(point).dtype.kind not in "iu" for point in t.evaluated_at[0]):
            t.fail(
                "float_batch",
                "measurements at whole batches, ints",
                f"measure({show(t.evaluated_at[0][0].item())}), a float",
                "The step takes so many samples. Which of your numbers is no int?",
            )
        if any(point < 1 for point in t.evaluated_at[0]):
            t.fail(
                "no_sample",
                "measurements at batches of 1 or more",
                f"measure({float(min(t.evaluated_at[0])):g})",
                "There is no step without samples. Can you get the fixed part from two others?",
            )


@max_batch.check(points=2)
def somewhere_between(t: Tester) -> None:
    """It is right for limits between two batches, from at most two measurements."""
    for _ in range(3):
        step = Step(t)
        batch = int(t.random.integers(30, 400))
        limit = step.peak(batch) + int(t.random.integers(step.per_sample // 2 + 1, step.per_sample))
        step.check(limit, batch, "Draw the line: at which batch does it reach the limit?")


def line_of(t: Tester) -> tuple[int, int]:
    """Return the fixed bytes, and the bytes per sample."""
    return int(t.random.integers(50, 90)), int(t.random.integers(5, 9))


@max_batch.check(points=1)
def at_the_limit(t: Tester) -> None:
    """A batch that just fits fits; one byte less, and it does not, however many bytes there are."""
    step = Step(t)
    batch = int(t.random.integers(30, 400))
    exactly = "What does your function do where the line meets the limit exactly?"
    step.check(step.peak(batch), batch, exactly)
    step.check(step.peak(batch) - 1, batch - 1, exactly)
    step.check(step.peak(1), 1, exactly)
    other = Step(t, fixed=step.fixed + 1, per_sample=step.per_sample + 1)
    other.check(step.peak(1), 0, "Another step, and the limit of the call before.")
    step = Step(t, fixed=100, per_sample=1)
    for limit in (101, 150, 201, 202, 250):
        step.check(limit, limit - 100, "Nearly all is fixed here. How large is a step of batch 2?")
    lines = [line_of(t), line_of(t)]
    lines[1] = lines[1][0] + 100, lines[1][1] + 10
    limits = [fixed + 20 * each for fixed, each in lines]
    given = f"one measure, asked twice; its model grows between: fixed and per sample {lines}; "
    batches = t.drive("grown", lines, limits, given=given + f"limits {limits}")
    if list(t.pair(batches, 2, "two batches")) != [20, 20]:
        attempt = "Of the same function, too, the line may be another one by now. What do you keep?"
        t.fail("kept", "20, then 20", ", then ".join(map(show, batches)), attempt)
    step = Step(t, fixed=0)
    step.check(step.peak(5) + 1, 5, "Nothing is fixed here: every byte is for samples.")
    for fixed in (0, 10**17 + 1):
        step = Step(t, fixed, per_sample=3)
        large = f"{exactly} And where does its search end, if it searches?"
        for batch in (10**17, 10**17 + 1):
            step.check(step.peak(batch) - 1, batch - 1, large)
            step.check(step.peak(batch), batch, large)


@max_batch.check(points=1, only_with=("somewhere_between", "at_the_limit"))
def nothing_fits(t: Tester) -> None:
    """It is 0 where not even one sample fits."""
    step = Step(t)
    for limit in (step.peak(1) - 1, step.fixed, step.fixed // 2, 0):
        step.check(limit, 0, "How many samples fit beside the fixed part?")
