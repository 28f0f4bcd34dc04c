"""The bug hunt: an array that goes back to its pool while backward still needs it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from minigrad.course.diagnosis import Part, diagnose
from minigrad.course.l10_allocator import lesson
from minigrad.grader import samples
from minigrad.grader.compare import agree
from minigrad.grader.message import counted, show
from minigrad.grader.tester import Tester

hand_step = lesson.exercise(
    "hand_step",
    difficulty=3,
    minutes=20,
    returns="(dw1, dw2)",
    hints=(
        "Go through the lines that give memory back, one after the other. Which lines below it "
        "read numbers of the same array? (z.shape reads none.)",
        "Of five of the six arrays, no line below reads a number. Of one, two lines below do. "
        "Which is the first, and which is the last?",
        "The gradient of w2 reads h first, the slope of tanh last. pool.give(h) belongs below the "
        "last of them, and above the next take.",
    ),
)
GIVES = {
    "C": "C gives z back. Below it, is more read of z than its shape? (h is another array.)",
    "G": "G gives y back, when dy is there. Is y read below it?",
    "J": "J gives dy back. Both products with it are above.",
    "N": "N gives the slope back. It is in dh by now.",
    "P": "P gives dh back, and nothing comes below it but the return.",
}
READS = {
    **dict.fromkeys("ABD", "That line comes before any of its arrays is given back."),
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
diagnose(hand_step, PARTS, EXAMPLE)


def gradients(
    x: np.ndarray, goal: np.ndarray, w1: np.ndarray, w2: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the two gradients, with memory for everything."""
    h = np.tanh(x @ w1)
    dy = h @ w2 - goal
    return x.T @ ((dy @ w2.T) * (1 - h * h)), h.T @ dy


KINDS = {
    "much room": "a pool with much room, which gives no memory again",
    "poison": "a pool that writes nan over what comes back",
    "used again": "a pool that gives out again what came back last",
}


class Step:
    """The learner's step on random numbers, with n rows, i inputs, h hidden and o outputs."""

    def __init__(self, t: Tester, n: int, i: int, h: int, o: int) -> None:
        self.t, self.shapes = t, ((n, i), (n, o), (i, h), (h, o))
        self.arrays = [samples.numbers(t.random, shape) for shape in self.shapes]
        self.right = gradients(*self.arrays)
        self.most = 5 * n * h + 2 * n * o + i * h + h * o  # all arrays together

    def given(self, kind: str) -> str:
        """Return what is given, in words."""
        x, goal, w1, w2 = self.shapes
        return f"x {x}, goal {goal}, w1 {w1}, w2 {w2}; {KINDS[kind]}"

    def seen(self, kind: str, spoilt: list[int] | None = None) -> dict[str, Any]:
        """Run it on such a pool; return what was seen."""
        return self.t.drive("hand_steps", *self.arrays, kind, spoilt, given=self.given(kind))

    def is_right(self, seen: dict[str, Any]) -> bool:
        """Return whether both gradients are right."""
        returned = seen["returned"]
        return all(
            isinstance(got, np.ndarray) and agree(got, right, rtol=1e-6, atol=1e-9)
            for got, right in zip(returned, self.right, strict=True)
        )

    def run(self, kind: str) -> dict[str, Any]:
        """Run it, and fail where a gradient is wrong. Return what was seen."""
        t, seen = self.t, self.seen(kind)
        if seen["wrong"]:
            attempt = "Each array that was taken goes back once. Which one, and where, went before?"
            t.fail(
                "gave_twice", "arrays of this pool given back, each once", seen["wrong"], attempt
            )
        if changed := seen["changed"]:
            attempt = "The caller's arrays are only read. Which line writes into one of them?"
            said = " and ".join(changed)
            t.fail("changed_input", f"{said} as it was", f"{said} was written to", attempt)
        returned = t.pair(seen["returned"], 2, "dw1, dw2")
        attempt = nan = "Which array is read below the line that gives it back? Follow each name."
        if kind == "much room":
            attempt = "Nothing is given out twice here: a line computes something else. Which one?"
            nan = "Nothing is given out twice here: is an array read that nobody has written to?"
        for name, got, right in zip(("dw1", "dw2"), returned, self.right, strict=True):
            if isinstance(got, np.ndarray) and got.dtype.kind == "f" and np.isnan(got).any():
                t.fail("nan", f"{name} = {show(right)}", f"{name} = {show(got)}", nan)
            t.close(got, right, attempt=attempt, what=name, rtol=1e-6, atol=1e-9)
        return seen

    def check_arrays(self, is_large: bool) -> None:
        """Fail unless its arrays are the pool's, no more than it takes, and go back early."""
        t, seen = self.t, self.run("poison")
        if not all(seen["owned"]):
            attempt = "Which line makes it: a take of the pool, or something else?"
            t.fail("copied", "dw1 and dw2 as arrays of the pool, in use", "another array", attempt)
        if seen["left"] != 2:
            attempt = "Whoever takes gives back, or returns it. Which one is forgotten?"
            got = counted(seen["left"], "array")
            t.fail("not_given", "2 arrays in use at the end: dw1, dw2", got, attempt)
        for name, most, got in (
            ("pool.take", 8, seen["n_taken"]),
            ("np.tanh", 1, seen["n_tanh"]),
        ):
            if got > most:
                attempt = "Keep what is there a little longer: no copy, and nothing computed twice."
                wanted = f"{name} called at most {counted(most, 'time')}"
                t.fail("more", wanted, counted(got, "time"), attempt)
        if is_large:
            self.check_outside()
        self.check_early(seen)

    def check_outside(self) -> None:
        """Fail if it makes arrays that are not the pool's; views and such are small."""
        t, given = self.t, self.given("much room")
        beside = t.drive("outside", *self.arrays, self.most, given=given)
        if beside > 8 * min(one.size for one in self.arrays) // 2:
            attempt = "Which line makes an array by itself: a copy, or an operator without out=?"
            got = f"{beside:,} bytes beside it"
            t.fail("outside", "all arrays taken from the pool", got, attempt)

    def check_early(self, seen: dict[str, Any]) -> None:
        """Fail if an array is taken before it is filled, or could go back before the last take.

        For the latter: nan in it from that take on harms none.
        """
        t, sizes = self.t, seen["sizes"]
        for number in seen["unfilled"]:
            which = f"array number {number + 1} of those taken, of {sizes[number]} numbers"
            attempt = "Which line is the first that writes into it, and where is it taken?"
            wanted = f"{which}, filled before number {number + 2} is taken"
            t.fail("early", wanted, "taken earlier, and not filled by then", attempt)
        for number, n_taken in seen["gives"]:
            if n_taken - 1 > number and self.is_right(
                self.seen("much room", [number, n_taken - 1])
            ):
                which = f"array number {number + 1} of those taken, of {sizes[number]} numbers"
                late = f"given back before number {n_taken} is taken: nobody reads it any more"
                attempt = "Which line is the last that reads it, and where is it given back?"
                t.fail("late", f"{which}, {late}", "given back later", attempt)


@hand_step.check(points=2)
def right(t: Tester) -> None:
    """Both gradients are right, whatever the pool does with what comes back."""
    for n, i, h, o in ((5, 3, 4, 4), (4, 2, 6, 3), (1, 7, 5, 5), (6, 3, 2, 8)):
        step = Step(t, n, i, h, o)
        for kind in KINDS:
            step.run(kind)


@hand_step.check(points=2, only_with=("right",))
def early(t: Tester) -> None:
    """Arrays are the pool's, no more than needed; all but the results go back early."""
    for n, i, h, o in ((30, 5, 8, 3), (3, 60, 20, 2), (4, 5, 30, 40), (64, 48, 80, 40)):
        Step(t, n, i, h, o).check_arrays(is_large=n == 64)
