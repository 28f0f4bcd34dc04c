"""The bug hunt: a histogram that loses counts, where luck does not hide it."""

from __future__ import annotations

from functools import partial

import numpy as np

from minigrad.course.diagnosis import Part, diagnose
from minigrad.course.l13_cuda_kernels import lesson
from minigrad.course.l13_cuda_kernels.launching import fault, launch, shown
from minigrad.grader.message import show
from minigrad.grader.tester import Tester

k_histogram = lesson.exercise(
    "k_histogram",
    difficulty=3,
    minutes=15,
    returns="counts filled by the kernel",
    hints=(
        "Think of two warps of one block. One of them is slow, and still in the loop, when the "
        "other has left it. What does the fast one do next, and with what?",
        "Atomic operations make sure that no addition is lost. They do not make anybody wait. "
        "Which of the lines reads what all warps of the block have added up?",
        "Between the loop and H, all threads of the block must have finished counting. All of them "
        "must reach what makes them wait: not inside the loop, whose rounds differ from thread to "
        "thread, and not inside an `if`.",
    ),
)
line = partial(
    Part,
    known="ABCDEFGHI",
    form="a letter, A to I",
    start="Let two warps walk through the lines, one far ahead of the other.",
    general="Which line uses, in shared memory, what other threads may not have finished?",
)
PARTS = {
    "kind": line(
        "what is missing",
        "barrier",
        {
            "atomic": "G and I are atomic, and D has an element for each thread. Is that all it "
            "takes?",
            "guard": "F ends at values.size, and C and H let in GREYS threads. Which index is "
            "outside?",
        },
        known=("barrier", "atomic", "guard"),
        form="one of barrier, atomic, guard",
    ),
    "write": line(
        "the line whose write is lost or comes too late",
        "G",
        {
            "D": "D writes zeros, and E waits for all of them. Who writes after that?",
            "I": "I adds to counts, atomically. From where does it take what it adds?",
            "E": "E is a barrier. It writes nothing.",
            "A": "A sets memory aside. It writes nothing into it.",
            "B": "t is the thread's own: nobody else reads it. Which line writes what others read?",
            **dict.fromkeys("CFH", "That line reads, and writes nothing that others read."),
        },
    ),
    "read": line(
        "the line that reads or writes what it should not yet",
        "I",
        {
            "G": "G reads and writes in one go: nothing of it is lost. Who uses the sum of them "
            "all?",
            "H": "H compares two numbers that belong to the thread. Which line uses what is "
            "shared?",
            "D": "D comes before all others. Who uses what G has added up?",
            "E": "E waits, and reads nothing. Behind which line does nobody wait?",
            **dict.fromkeys("AB", "That line reads nothing that is shared. Which line does?"),
            "C": "C compares two numbers that belong to the thread. Which line uses what is "
            "shared?",
            "F": "F reads values, which nobody writes. Which line reads what others write?",
        },
    ),
}
EXAMPLE = '{"kind": "guard", "write": "A", "read": "B"}'
GREYS = 17
EXPECTED = "counts[g] = how often g is in values, plus what stood there"
diagnose(k_histogram, PARTS, EXAMPLE)


def data(t: Tester, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random grey values, and initial counts that are not all zero."""
    values = t.random.integers(0, GREYS, n).astype(np.int32)
    return values, t.random.integers(0, 3, GREYS).astype(np.int32)


def compare(t: Tester, after: object, values: np.ndarray, before: np.ndarray, attempt: str) -> None:
    """Fail unless the counts are right."""
    right = before + np.bincount(values, minlength=GREYS)
    if not isinstance(after, np.ndarray) or after.shape != right.shape:
        t.fail("type", f"an array of shape {right.shape}", show(after), attempt)
    if not np.array_equal(after, right):
        less = int(right.sum() - before.sum()) - int(after.sum() - before.sum())
        key = "lost" if less > 0 else "value"
        if before.any() and np.array_equal(after, right - before):
            key, attempt = "overwritten", "What stood in counts before stays. Who takes it away?"
        got = f"{show(after)}: {abs(less)} counts {'missing' if less > 0 else 'too many'}"
        t.fail(key, show(right), got, attempt)


@k_histogram.check(points=2)
def no_fault(t: Tester) -> None:
    """The counts are right, and the machine sees no thread run ahead of another."""
    n = int(t.fixed.integers(400, 900))
    for blocks, threads, n_values in (
        (1, 64, 200),
        (3, 64, n),
        (7, GREYS, n),
        (2, 96, 5),
        (2, 20, 0),
    ):
        values, before = data(t, n_values)
        given = {"values": values, "counts": before.copy()}
        counted = launch(t, blocks, threads, given, EXPECTED)
        attempt = "Which values are counted twice, or not at all?"
        compare(t, counted.arrays["counts"], values, before, attempt)


# These orders run the kernel as plain Python, where NumPy could do all in one thread.
@k_histogram.check(points=2, only_with=("no_fault",))
def in_any_order(t: Tester) -> None:
    """The counts are right in every order in which the warps of a block may come along."""
    values, before = data(t, 260)
    given = {"values": values, "counts": before}
    seeds = [int(seed) for seed in t.random.integers(0, 10_000, 12)]
    text = f"{shown('k_histogram', 2, 96, given)}, warps in {len(seeds)} random orders"
    arguments = [2, 96, [*given.values()], seeds]
    answer = t.drive("in_orders", "k_histogram", *arguments, given=text)
    if "raised" in answer:
        fault(t, answer, EXPECTED)
    for after in answer["results"]:
        attempt = "In some orders it is right, in others not. Who does not wait for whom?"
        compare(t, after[1], values, before, attempt)
