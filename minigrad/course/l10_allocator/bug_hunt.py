"""The bug hunt: an array that goes back to its pool while backward still needs it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from minigrad.course.diagnosis import Part, check_part
from minigrad.course.l10_allocator import lesson
from minigrad.grader import samples
from minigrad.grader.message import counted, show
from minigrad.grader.tester import Tester

hand_step = lesson.exercise(
    "hand_step",
    difficulty=3,
    minutes=20,
    returns="(dw1, dw2)",
    hints=(
        "Go through the lines that give memory back, one after the other. Which lines below it "
        "name the same array?",
        "C, G, J, N and P are in order: below them nobody reads that array. Below E, two lines "
        "read h. Which is the first, and which is the last?",
        "The gradient of w2 reads h first, the slope of tanh last. pool.give(h) belongs below the "
        "last of them, and above the next take.",
    ),
)
GIVES = {
    "C": "C gives z back. Is z read below it? (h has a memory of its own.)",
    "G": "G gives y back, when dy is there. Is y read below it?",
    "J": "J gives dy back. Both products with it are above.",
    "N": "N gives the slope back. It is in dh by now.",
    "P": "P gives dh back, and nothing comes below it but the return.",
}
READS = {
    "F": "F reads y and goal. Was one of them given back?",
    "H": "H reads dy and w2. Was one of them given back?",
    "K": "K reads it, too. But is it the first line that does?",
    "L": "L reads only the slope, which is alive.",
    "M": "M reads dh and the slope, which are alive.",
    "O": "O reads x and dh, which are alive.",
}
line = partial(
    Part,
    known="ABCDEFGHIJKLMNOP",
    form="a letter, A to P",
    start="For each line that gives an array back: which lines below it read that array?",
    general="Which array does that line give back, or read? Was it given back, and read later?",
)
PARTS = {
    "given": line("the line that gives an array back too early", "E", GIVES),
    "read": line("the first line that reads this array after it was given back", "I", READS),
}
EXAMPLE = '{"given": …, "read": …}, each a letter, such as "A"'


@hand_step.check(points=1)
def diagnosis_given(t: Tester) -> None:
    """BUG names the line that gives memory back too early."""
    check_part(t, PARTS, "given", EXAMPLE)


@hand_step.check(points=1)
def diagnosis_read(t: Tester) -> None:
    """BUG names the first line that still reads it."""
    check_part(t, PARTS, "read", EXAMPLE)


def gradients(
    x: np.ndarray, goal: np.ndarray, w1: np.ndarray, w2: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the two gradients, with memory for everything."""
    h = np.tanh(x @ w1)
    dy = h @ w2 - goal
    return x.T @ ((dy @ w2.T) * (1 - h * h)), h.T @ dy


def run(t: Tester, n: int, i: int, h: int, o: int, poison: bool) -> dict[str, Any]:
    """Run the step on a pool; fail where it uses what is no array of it. Return what was seen."""
    shapes = ((n, i), (n, o), (i, h), (h, o))
    x, goal, w1, w2 = (samples.numbers(t.random, shape) for shape in shapes)
    what = "writes nan over what comes back" if poison else "gives out again what came back last"
    given = f"x {shapes[0]}, goal {shapes[1]}, w1 {shapes[2]}, w2 {shapes[3]}; a pool that {what}"
    seen = t.drive("hand_steps", x, goal, w1, w2, poison, given=given)
    if seen["wrong"]:
        attempt = "Each array that was taken goes back once. Which one, and where, went before?"
        t.fail("gave_twice", "arrays of this pool given back, each once", seen["wrong"], attempt)
    found = t.pair(seen["returned"], 2, "dw1, dw2")
    early = "Which array is read below the line that gives it back? Follow each name down."
    for name, got, right in zip(("dw1", "dw2"), found, gradients(x, goal, w1, w2), strict=True):
        t.close(got, right, attempt=early, what=name, rtol=1e-6, atol=1e-9)
    return seen


@hand_step.check(points=2)
def right(t: Tester) -> None:
    """Both gradients are right, on a pool that gives memory out again, and on one with poison."""
    for poison in (True, False):
        for n, i, h, o in ((5, 3, 4, 4), (4, 2, 6, 3), (1, 7, 5, 5), (6, 3, 2, 8)):
            run(t, n, i, h, o, poison)


@hand_step.check(points=2, only_with=("right",))
def early(t: Tester) -> None:
    """All but the results goes back, as early as it can: the peak is no higher than it must be."""
    for n, i, h, o in ((30, 5, 8, 3), (3, 60, 20, 2), (4, 5, 30, 40)):
        seen = run(t, n, i, h, o, poison=True)
        if seen["left"] != 2:
            attempt = "Whoever takes gives back, or returns it. Which is forgotten, or was copied?"
            got = (
                counted(seen["left"], "array") if type(seen["left"]) is int else show(seen["left"])
            )
            t.fail("not_given", "2 arrays in use at the end: dw1, dw2", got, attempt)
        wide, narrow, w1, w2 = n * h, n * o, i * h, h * o
        peak = max(
            2 * wide,  # z and h
            wide + 2 * narrow,  # h, y and dy
            2 * wide + narrow + w2,  # h, dy, dh and dw2
            3 * wide + w2,  # h, dh, dw2 and the slope
            wide + w2 + w1,  # dh, dw2 and dw1
        )
        if seen["peak"] > peak:
            attempt = "Which array is kept longer than somebody reads it, or is one too many?"
            t.fail("late", f"at most {peak} numbers in use", f"{seen['peak']}", attempt)
