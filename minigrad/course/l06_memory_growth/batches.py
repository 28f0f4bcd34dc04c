"""The largest batch that fits, from two measurements of a straight line."""

from __future__ import annotations

import math

from minigrad.course.l06_memory_growth.lesson import lesson
from minigrad.grader.formula import Formula
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

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


class Step:
    """A training step whose peak memory is fixed + per_sample * batch."""

    def __init__(self, t: Tester) -> None:
        self.t = t
        self.per_sample = int(t.random.integers(20, 90))
        self.fixed = int(t.random.integers(3, 9)) * self.per_sample + int(
            t.random.integers(1, self.per_sample)
        )
        self.measure = Formula(f"{self.fixed} + {self.per_sample}*x")

    def peak(self, batch: int) -> int:
        """Return the peak memory of a batch."""
        return self.fixed + self.per_sample * batch

    def check(self, limit: int, batch: int, attempt: str, *, exact: bool = False) -> None:
        """Fail unless max_batch gives this batch for this limit (`exact`: met to the byte)."""
        t = self.t
        got = t.call("max_batch", self.measure, limit)
        expected = f"{batch}: peak {self.peak(batch)} fits into {limit}, {self.peak(batch + 1)} not"
        if not batch:
            expected = f"0: a batch of 1 needs {self.peak(1)}, and there are {limit}"
        if isinstance(got, float) and math.isfinite(got) and int(got) == batch:
            whole = "A batch has a whole number of samples. Which operator gives a float?"
            t.fail("float", expected, f"{got!r}, a float", whole)
        if isinstance(got, int) and got < 0 == batch:
            t.fail("negative", expected, show(got), "How many samples are fewer than none?")
        t.close(
            got,
            batch,
            rtol=0,
            atol=0,
            attempt=attempt,
            mistakes=self.mistakes(limit, exact),
        )
        calls = t.n_calls[0]
        if calls > 2:
            t.fail(
                "cost",
                "at most 2 calls of measure",
                f"{calls} calls",
                "Each call is a training step. How many points fix a straight line?",
            )
        if any(point < 1 for point in t.evaluated_at[0]):
            t.fail(
                "no_sample",
                "measurements at batches of 1 or more",
                f"measure({float(min(t.evaluated_at[0])):g})",
                "There is no step without samples. Can you get the fixed part from two others?",
            )

    def mistakes(self, limit: int, exact: bool) -> list[Mistake]:
        """Return what people answer instead."""
        per_sample, room = self.per_sample, limit - self.fixed
        nearest = "A part of a sample does not fit: to which side do you round?"
        equal = "What just fits does fit: may the peak be equal to the limit?"
        strict = Mistake("strict", (room - 1) // per_sample, equal)
        others = [
            Mistake(
                "proportional",
                limit // self.peak(1),
                "Does a batch of 2 need twice the bytes of a batch of 1? Measure.",
            ),
            Mistake(
                "no_fixed",
                limit // per_sample,
                "The fixed part is in memory too, before the first sample comes.",
            ),
            Mistake(
                "one_missing",
                (limit - self.peak(1)) // per_sample,
                "measure(1) is not the fixed part: what else is in it?",
            ),
            Mistake("rounded", -(-room // per_sample), nearest),
            Mistake("rounded", round(room / per_sample), nearest),
        ]
        return [strict, *others] if exact else others


@max_batch.check(points=2)
def somewhere_between(t: Tester) -> None:
    """It is right for limits between two batches, from at most two measurements."""
    for _ in range(3):
        step = Step(t)
        batch = int(t.random.integers(30, 400))
        limit = step.peak(batch) + int(t.random.integers(step.per_sample // 2 + 1, step.per_sample))
        step.check(limit, batch, "Draw the line: at which batch does it reach the limit?")


@max_batch.check(points=1)
def at_the_limit(t: Tester) -> None:
    """A batch that just fits fits; one byte less, and it does not."""
    step = Step(t)
    batch = int(t.random.integers(30, 400))
    exactly = "What does your function do where the line meets the limit exactly?"
    step.check(step.peak(batch), batch, exactly, exact=True)
    step.check(step.peak(batch) - 1, batch - 1, exactly)


@max_batch.check(points=1, only_with=("somewhere_between", "at_the_limit"))
def nothing_fits(t: Tester) -> None:
    """It is 0 where not even one sample fits."""
    step = Step(t)
    for limit in (step.peak(1) - 1, step.fixed // 2):
        step.check(limit, 0, "How many samples fit beside the fixed part?")
