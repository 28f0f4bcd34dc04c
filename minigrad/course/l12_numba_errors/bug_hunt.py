"""The bug hunt: a parallel loop in which two rounds may write one element."""

from __future__ import annotations

from functools import partial

import numpy as np

from minigrad.course.diagnosis import Part, diagnose
from minigrad.course.l12_numba_errors import lesson
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

ink_of_digits = lesson.exercise(
    "ink_of_digits",
    difficulty=4,
    minutes=18,
    returns="the ink of all images, a float",
    hints=(
        "Take two rounds of D that run at the same time. Which of the lines write something that "
        "both can reach?",
        "A variable is safe: each thread has its own, and Numba adds them up after the loop. An "
        "element of an array is safe if no other round can have the same index.",
        "Two images may show the same digit, so J is the race. The ink of each image is in "
        "of_image: add it up by digit after the loop, in a plain loop.",
    ),
)
line = partial(
    Part,
    known="ABCDEFGHIJ",
    form="a letter, A to J",
    start="Let two rounds of the loop in D run at the same time, for two images of one digit.",
    general="Which names and elements can two rounds of the loop in D both reach?",
)
OUTSIDE = "That line runs before the loop in D begins, in one thread."
PARTS = {
    "race": line(
        "the line in which two rounds may write the same element",
        "J",
        {
            **dict.fromkeys("ABC", OUTSIDE),
            "D": "D hands out the rounds. Which line writes what two of them may reach?",
            "E": "E makes a variable, and each thread has one of its own.",
            "F": "F is a plain loop, inside of one round.",
            "G": "own belongs to one round. Which element may belong to two?",
            "H": "of_image[i] has the number of the round as its index. Which index may two share?",
            "I": "total is a variable, not an element. What does Numba make of `+=` on a variable?",
        },
    ),
    "reduction": line(
        "the line that adds up over all rounds and is no race: a reduction",
        "I",
        {
            **dict.fromkeys("ABC", OUTSIDE),
            "G": "own begins anew in each round. Which variable goes on over all rounds?",
            "J": "ink[label[i]] is an element of an array. Reductions are variables.",
            "H": "H adds nothing up. Which line does, over all rounds?",
            **dict.fromkeys("DEF", "That line adds nothing up. Which ones do?"),
        },
    ),
    "private": line(
        "the line that adds up within one round alone",
        "G",
        {
            **dict.fromkeys("ABC", OUTSIDE),
            "I": "total goes on over all rounds. Which variable begins anew in each?",
            "J": "That element goes on over all rounds. Which variable begins anew in each?",
            "H": "H writes the finished sum. Which line adds it up?",
            **dict.fromkeys("DEF", "That line adds nothing up. Which ones do?"),
        },
    ),
}
EXAMPLE = '{"race": "A", "reduction": "B", "private": "C"}'
diagnose(ink_of_digits, PARTS, EXAMPLE)


def images(t: Tester, n: int, m: int, digits: int) -> list[np.ndarray]:
    """Return images, their labels, and two arrays that are not empty before the call."""
    label = t.fixed.integers(0, digits, n)
    if n > 1:
        label[1] = label[0]  # two images of one digit
    x = np.round(t.random.uniform(0.1, 1, (n, m)), 2)
    return [x, label, np.full(n, 77.0), np.full(10, 55.0)]


def shown(given: list[np.ndarray]) -> str:
    """Return a call for a message."""
    x, label, *_ = given
    return f"ink_of_digits: {x.shape[0]} images of {x.shape[1]} pixels, label {show(label)}"


REBOUND = "The caller's array is as it was. `{0} = …` names another one; `{0}[…] = …` writes."


LEFT = "{} stood in {} before the call. To which elements does nobody write?"


def left(got: np.ndarray, right: np.ndarray, before: float) -> np.ndarray:
    """Return what is right, but for the elements that have what stood there before."""
    return np.where(got == before, before, right) if np.shape(got) == right.shape else right


def compare(t: Tester, result: object, after: list, given: list[np.ndarray]) -> None:
    """Fail unless the results are those of a loop in one thread."""
    x, label, *_ = given
    of_image = x.sum(axis=1)
    ink = np.bincount(label, weights=of_image, minlength=10)
    for name, was, now in (("x", x, after[0]), ("label", label, after[1])):
        if not np.array_equal(was, now):
            attempt = "The caller still needs it. Who writes there?"
            t.fail("changed_input", f"{name} as it was", f"{name} was written to", attempt)
    follow = "Follow the ink of one image: where is it added?"
    mistakes = [
        Mistake("kept", ink + 55, "What stood in ink before is part of it. Who sets it to 0?"),
        Mistake("unwritten", np.full(10, 55.0), REBOUND.format("ink")),
        Mistake("counted", np.bincount(label, minlength=10) * 1.0, "Images are counted, not ink."),
        Mistake("doubled", 2 * ink, "Each image is counted twice. Where, and where again?"),
    ]
    last = np.zeros(10)
    last[label] = of_image
    mistakes.append(Mistake("last", last, "Only one image of each digit is left. Who adds?"))
    mistakes.append(Mistake("left", left(after[3], ink, 55.0), LEFT.format(55, "ink")))
    alone = [
        Mistake(
            "running",
            np.cumsum(of_image),
            "The sum of an image has those before it in it. Where does `own` begin?",
        ),
        Mistake("no_images", np.full(len(x), 77.0), REBOUND.format("of_image")),
        Mistake("unseen", left(after[2], of_image, 77.0), LEFT.format(77, "of_image")),
    ]
    t.close(after[2], of_image, what="of_image", attempt=follow, mistakes=alone)
    t.close(after[3], ink, what="ink", attempt=follow, mistakes=mistakes)
    lost = "It is not what a plain loop adds up. Numba makes a reduction only of `total += …`."
    t.close(result, float(of_image.sum()), what="the result", attempt=lost)


SIZES = ((5, 3, 4), (8, 2, 4), (1, 4, 4), (20, 1, 1))  # images, pixels, digits: at last one digit


@ink_of_digits.check(points=3)
def no_race(t: Tester) -> None:
    """No two rounds of a loop use one element, and the numbers are right."""
    for n, m, digits in SIZES:
        given = images(t, n, m, digits)
        seen = t.drive("watched", "ink_of_digits", given, given=shown(given))
        if "raised" in seen:
            a, b = seen["rounds"]
            got = f"{seen['element']}, used by the rounds {a} and {b}, and one of them writes it"
            attempt = "Let each round write what no other reaches. What is left to do after it?"
            file = t.runner.line_of("").partition(":")[0]
            where = f"{file}:{seen['lines'][1]}\n  {seen['text']}"
            expected = "elements that one round of the loop uses, or that are only read"
            t.fail("race", expected, got, attempt, where=where)
        compare(t, seen["result"], seen["after"], given)
        if t.survey is None and (type(seen["rounds"]) is not int or seen["rounds"] < n):
            attempt = (
                "A plain loop is right, and uses one core. The loop over images stays a prange."
            )
            got = f"a prange of {show(seen['rounds'])}" if seen["rounds"] else "no prange"
            t.fail("serial", f"a prange of {n}, a round for each image", got, attempt)


@ink_of_digits.check(points=2, only_with=("no_race",))
def in_parallel(t: Tester) -> None:
    """It compiles for several threads, and what it returns is right there, too."""
    for n, m in ((40, 3), (7, 5), (0, 3)):
        given = images(t, n, m, digits=10)
        seen = t.drive("in_threads", "ink_of_digits", given, given=shown(given))
        compare(t, seen["result"], seen["after"], given)
        if seen["state"] != "compiled" or seen["parallel"] is not True:
            attempt = "@njit(parallel=True) stays above the function."
            expected = "a function that Numba has compiled for several threads"
            t.fail("not_parallel", expected, "one that runs in a single thread", attempt)
