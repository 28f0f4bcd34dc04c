"""The bug hunt: a donated value that is read when its memory has been overwritten."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from minigrad.course.diagnosis import Part, diagnose
from minigrad.course.l14_compile import lesson
from minigrad.grader.compare import agree
from minigrad.grader.tester import Mistake, Tester

step_in_place = lesson.exercise(
    "step_in_place",
    difficulty=4,
    minutes=15,
    returns="(w1, w2, v1, v2, loss)",
    hints=(
        "List the lines that write over a donated array, and ask of each: who reads this array "
        "further down, and which of the two values does it want?",
        "h, d and dh are overwritten, too, but are made in the step, and read before. Of the four "
        "donated arrays, two are read further down than they are written. For one of them that is "
        "right: the velocity is meant to be the new one. And a view has no bytes of its own.",
        "The gradient with respect to h needs the weights that the forward pass used. Move the "
        "line that changes them below the line that needs them; copy nothing.",
    ),
)
DONATED = ("w1", "w2", "v1", "v2")
line = partial(
    Part,
    known="ABCDEFGHIJKLMNOP",
    form="a letter, A to P",
    start="Follow each donated array down the lines: read, written, read again by whom?",
    general="Which line wants the value from before the update, and gets the one after it?",
)
PARTS = {
    "value": line(
        "the donated argument that is read too late",
        "w2",
        {
            "w1": "w1 is overwritten by the very last line. Who could read it after that?",
            "v1": "v1 is read after it was written, and wants the new value. Which one wants the "
            "old?",
            "v2": "v2 is read after it was written, and wants the new value. Which one wants the "
            "old?",
        },
        known=DONATED,
        form="one of w1, w2, v1, v2",
    ),
    "written": line(
        "the line that overwrites it",
        "J",
        {
            "A": "A writes nothing: a transpose is a view. Which line writes over an old value?",
            **dict.fromkeys(
                "BDK", "That line makes a new array. Which one writes over an old one?"
            ),
            **dict.fromkeys(
                "CEGLM",
                "It writes over what this step has made. Which line writes over a donated array?",
            ),
            "F": "F makes a number, and writes over nothing.",
            **dict.fromkeys(
                "HINO",
                "That line writes the new velocity, which later lines want. Which one is in the "
                "way?",
            ),
            "P": "Nobody reads anything after P.",
        },
    ),
    "read": line(
        "the line that reads it although it is gone",
        "K",
        {
            "A": "A computes nothing: a transpose is a view. Whose bytes are read, and where?",
            "B": "B reads w1 before anything is overwritten. Who reads later than it should?",
            "D": "D reads w2 while all is well. Who reads it again, under which name?",
            **dict.fromkeys(
                "CEFGLM",
                "It reads what this step has made. Which line reads a donated array?",
            ),
            **dict.fromkeys(
                "HINO",
                "It reads the velocity of the step before, which is still there. Which line wants "
                "an old value that is gone?",
            ),
            "J": "J reads an entry of w2 and then writes that very entry. Who comes too late?",
            "P": "P reads an entry of w1 and then writes that very entry. Who comes too late?",
        },
    ),
}
EXAMPLE = '{"value": "v1", "written": "A", "read": "B"}'
diagnose(step_in_place, PARTS, EXAMPLE)


LAID = {
    "C": "",
    "F": "; the donated arrays are in Fortran order, as transposes are",
    "apart": "; the donated arrays are views, with other numbers between theirs",
}


def expected(arrays: list[np.ndarray], rate: float) -> list[Any]:
    """Return a step's results, computed with every value in memory of its own."""
    x, target, w1, w2, v1, v2 = arrays
    h = np.tanh(x @ w1)
    d = h @ w2 - target
    loss = (d * d).sum() / len(x)
    g = d * (2 / len(x))
    dw2, dw1 = h.T @ g, x.T @ ((g @ w2.T) * (1 - h * h))
    v1, v2 = 0.9 * v1 + dw1, 0.9 * v2 + dw2
    return [w1 - rate * v1, w2 - rate * v2, v1, v2, float(loss)]


def step(t: Tester, n: int, hidden: int, rate: float, order: str = "C", least: int = 0) -> dict:
    """Take a step; fail unless its numbers are right, in their memory; return the report.

    Before it, allocate and free `least` bytes.
    """
    shapes = [(n, 64), (n, 10), (64, hidden), (hidden, 10), (64, hidden), (hidden, 10)]
    arrays = [t.random.uniform(-0.5, 0.5, shape) for shape in shapes]
    given = f"step_in_place: a batch of {n}, {hidden} hidden units, learning_rate {rate}"
    given += LAID[order]
    seen = t.drive("in_place", *arrays, rate, order, least, given=given)
    results = t.pair(seen["returned"], 5, "w1, w2, v1, v2, loss")
    for name, before, after in zip("xt", arrays, seen["after"], strict=False):
        if not np.array_equal(after, before):
            attempt = "x and t are not donated: the caller trains on them again. Who writes there?"
            t.fail("changed_input", f"{name} as it was", f"{name} was written to", attempt)
    right = expected(arrays, rate)
    x, target, w1, w2, v1, _ = arrays
    h = np.tanh(x @ w1)
    g = (h @ w2 - target) * (2 / n)
    late = 0.9 * v1 + x.T @ ((g @ right[1].T) * (1 - h * h))
    stale = "It is still the gradient through the new w2. Which line wants the old one?"
    wrong = "Compare with the formulas of the docstring, line by line."
    if order != "C":
        wrong = (
            "With other arrays it was right. Which step makes a copy of one that lies like this?"
        )
    names = ("w1", "w2", "v1", "v2", "loss")
    for place in (4, 1, 3, 2, 0):  # the others first, as the symptom is in v1 and w1
        value = late if place == 2 else w1 - rate * late
        mistakes = [Mistake("late", value, stale)] if place in (0, 2) else []
        t.close(
            results[place],
            right[place],
            rtol=1e-7,
            atol=1e-9,
            attempt=wrong,
            what=f"the new {names[place]}" if place < 4 else "loss",
            mistakes=mistakes,
        )
    memories = zip(DONATED, right, seen["same_memory"], seen["after"][2:], strict=False)
    for name, values, same, donated in memories:
        if not same or not agree(donated, values, rtol=1e-7):
            attempt = "w = w - … makes a new array. Which operator writes into the old one?"
            place = f"the new {name} in the memory of the old"
            t.fail("moved", place, "an array elsewhere", attempt)
    return seen


@step_in_place.check(points=3)
def right_numbers(t: Tester) -> None:
    """A step gives what the formulas give."""
    for n in (1, int(t.fixed.integers(2, 6))):
        step(t, n, int(t.fixed.integers(3, 7)), round(float(t.random.uniform(0.2, 0.6)), 2))
    step(t, 2, 3, 0.0)
    for order in ("F", "apart"):
        step(t, 3, 4, 0.5, order)


@step_in_place.check(points=2)
def in_donated_memory(t: Tester) -> None:
    """The new values lie in the memory of the donated ones, and no weight is copied."""
    hidden = 2000
    weight = 8 * 64 * hidden
    least, most = int(1.1 * weight), int(1.12 * weight)
    peak = step(t, 1, hidden, 0.5, least=least)["peak"]
    if peak < least:
        attempt = "Bytes are counted from the first line on to the last. Which line stops that?"
        t.fail("uncounted", f"{least} bytes or more: so many were taken before", str(peak), attempt)
    if peak > most:
        attempt = "A copy is one more weight in memory. Can the lines stand in another order?"
        expected = f"at most {most} bytes at a time: one array as large as w1, and small ones"
        t.fail("copied", expected, f"{peak} bytes", attempt)
