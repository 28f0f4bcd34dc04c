"""The sum of all gradients that arrive for one value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minigrad.course.l04_accumulation import lesson
from minigrad.course.l04_accumulation.common import arrays, program, text
from minigrad.grader import samples
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

accumulate = lesson.exercise(
    "accumulate",
    difficulty=2,
    minutes=10,
    returns="nothing: it changes the dict grads",
    hints=(
        "Two cases: the key is missing, or it is there. What is stored in the first case will be "
        "added to in the second: whose array is it then?",
        "The backward pass of a + b hands one and the same dy to a and to b. If grads holds that "
        "very array twice, adding to one of them changes the other.",
        "Missing: store a copy of g. There: add into the stored array with +=, which for arrays "
        "works in place.",
    ),
)
NOWHERE = "The second gradient is not in it. Into which array was it added, and who has that one?"
BY_HAND = "Go through the calls by hand: what is in grads after each?"


def stored(t: Tester, value: Any, key: str) -> np.ndarray:
    """Return the array that grads holds for this key; fail unless it holds one."""
    if not isinstance(value, np.ndarray | np.generic):
        missing = value is None
        t.fail(
            "not_stored" if missing else "type",
            f"an array in grads[{key}]",
            "no such key" if missing else show(value),
            "The sum has to stand in grads afterwards; nothing is returned."
            if missing
            else "grads holds the sum itself, an array; not its parts.",
        )
    return np.asarray(value)


def add_two(t: Tester) -> Iterator[list]:
    """Add two gradients of each shape, dtype and layout; fail where the sum is wrong.

    Yields:
        grads[0], whether it is the array that was stored first, the second call's result, and that
        array before and after others wrote into the first gradient.
    """
    for g in samples.arrays(t.random):
        h = np.array(2.5 - 2 * g)
        lines = [
            "grads = {}",
            "accumulate(grads, 0, g)",
            "first = grads.get(0)",
            "returned = accumulate(grads, 0, h)",
            "both = grads.get(0), first",
            "total, then = (x + 0 if isinstance(x, np.ndarray) else x for x in both)",
            "g[...] = g == 0",
        ]
        kind = "isinstance(grads.get(0), np.ndarray)"
        wanted = ["total", "grads.get(0) is first", "returned", "then", "first", kind]
        given = f"accumulate(grads, 0, g) with g = {show(g)}, then with {show(h)}"
        results = t.drive("run", lines, wanted, [g, h], given=given)
        rtol = samples.tolerance(g.dtype)
        now = stored(t, results[0], "0")
        lost = now.shape == g.shape and np.array_equal(now, g)
        attempt = samples.attempt_for(g, now, NOWHERE if lost else BY_HAND)
        t.close(now, g + h, rtol=rtol, attempt=attempt, what="grads[0]")
        yield results


@accumulate.check(points=1)
def sums(t: Tester) -> None:
    """The sum for a key is that of all its gradients; keys do not mix."""
    g, h, k = arrays(t, 3)
    lines, given = program(
        f"grads, g, h, k = {{}}, {text(g)}, {text(h)}, {text(k)}",
        'accumulate(grads, "a", g)',
        'accumulate(grads, "b", h)',
        'accumulate(grads, "a", k)',
    )
    results = t.drive("run", lines, ['grads.get("a")', 'grads.get("b")', "len(grads)"], given=given)
    wrong = [
        Mistake("overwrites", k, "The second gradient took the first one's place: add it."),
        Mistake("first_only", g, "The second gradient for this key went nowhere."),
        Mistake("doubled", 2 * g + k, "The first gradient was stored, and then added once more."),
        Mistake("doubled", 2 * g + 2 * k, "Each gradient was added twice."),
        Mistake("mixed", g + h + k, "Another key's gradient is in this sum, too."),
        Mistake("mean", (g + k) / 2, "Gradients that arrive are added, not averaged."),
    ]
    t.close(stored(t, results[0], '"a"'), g + k, attempt=BY_HAND, mistakes=wrong, what='grads["a"]')
    t.close(
        stored(t, results[1], '"b"'),
        h,
        attempt=BY_HAND,
        mistakes=[Mistake("doubled", 2 * h, "It was stored, and then added once more.")],
        what='grads["b"]',
    )
    if results[2] != 2:
        t.fail("keys", "two keys in grads", f"{show(results[2])}", "Only the given key is changed.")
    for _, _, returned, *_ in add_two(t):
        if returned is not None:
            t.fail("returned", "None", show(returned), "The caller has grads. What changes there?")


@accumulate.check(points=2)
def nobody_else(t: Tester) -> None:
    """The array that arrives stays as it is, and no sum shares memory with it."""
    g, h = arrays(t, 2)
    lines, given = program(
        f"grads, g, h = {{}}, {text(g)}, {text(h)}",
        'accumulate(grads, "a", g)',
        'accumulate(grads, "b", g)',
        'accumulate(grads, "a", h)',
    )
    wanted = ["g", 'grads.get("b")', 'grads.get("a")']
    after, of_b, of_a = t.drive("run", lines, wanted, given=given)
    whose = "One array came for both keys. To whom does the array belong that is added into?"
    if not np.array_equal(after, g):
        t.fail("wrote_to_g", f"g = {show(g)}, as before", f"g = {show(after)}", whose)
    t.close(stored(t, of_b, '"b"'), g, attempt=whose, what='grads["b"]')
    t.close(stored(t, of_a, '"a"'), g + h, attempt=whose, what='grads["a"]')
    lines, given = program(
        "grads, g = {}, np.broadcast_to(1.5, (2,))  # read-only",
        'accumulate(grads, "a", g)',
        'accumulate(grads, "a", g)',
    )
    results = t.drive("run", lines, ['grads.get("a")'], given=given)
    t.close(stored(t, results[0], '"a"'), np.full(2, 3.0), attempt=whose, what='grads["a"]')
    for _, _, _, then, first, _ in add_two(t):
        if not np.array_equal(then, first):
            t.fail(
                "shared",
                "an array in grads that shares no memory with g",
                "the very memory of g",
                "If somebody writes into g tomorrow, your sum changes with it. Which line allows "
                "that?",
            )


@accumulate.check(points=1)
def in_place(t: Tester) -> None:
    """After the first gradient no new array is made: the sum grows in place."""
    kept, new, numbers = [], [], []
    for now, same, *_, is_array in add_two(t):
        kind = numbers if is_array is not True else kept if same is True else new
        kind.append((t.given, now))
    for t.given, _ in new:
        attempt = "x = x + y makes a new array for the sum. What adds into the array that is there?"
        if kept:
            attempt = "For others the array stays. How does your code ask whether a key is there?"
        t.fail(
            "new_array",
            "grads[0] is the array that was made for the first gradient",
            "a new array, made for the second",
            attempt,
        )
    for t.given, now in numbers:
        attempt = "Arithmetic with an array of shape () gives a number. What makes an array?"
        t.fail("number", "an array of shape () in grads[0]", f"a number, {show(now)}", attempt)
