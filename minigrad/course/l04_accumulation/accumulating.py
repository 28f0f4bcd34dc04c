"""The sum of all gradients that arrive for one value."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.course.l04_accumulation.common import arrays, program, text
from minigrad.course.l04_accumulation.lesson import lesson
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


def stored(t: Tester, found: Any, key: str) -> np.ndarray:
    """Fail unless grads holds an array for this key; return it."""
    if not isinstance(found, np.ndarray | np.generic):
        missing = found is None
        t.fail(
            "not_stored" if missing else "type",
            f'an array in grads["{key}"]',
            "no such key" if missing else show(found),
            "Nothing that is returned is looked at: the sum has to stand in grads afterwards."
            if missing
            else "grads holds the sum itself, an array; not its parts.",
        )
    return np.asarray(found)


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
    found = t.drive("run", lines, ['grads.get("a")', 'grads.get("b")', "len(grads)"], given=given)
    wrong = [
        Mistake("overwrites", k, "The second gradient took the first one's place: add it."),
        Mistake("first_only", g, "The second gradient for this key went nowhere."),
        Mistake("doubled", 2 * g + k, "The first gradient was stored, and then added once more."),
        Mistake("doubled", 2 * g + 2 * k, "Each gradient was added twice."),
        Mistake("mixed", g + h + k, "Another key's gradient is in this sum, too."),
        Mistake("mean", (g + k) / 2, "Gradients that arrive are added, not averaged."),
    ]
    by_hand = "Go through the calls by hand: what is in grads after each?"
    t.close(stored(t, found[0], "a"), g + k, attempt=by_hand, mistakes=wrong, what='grads["a"]')
    t.close(
        stored(t, found[1], "b"),
        h,
        attempt=by_hand,
        mistakes=[Mistake("doubled", 2 * h, "It was stored, and then added once more.")],
        what='grads["b"]',
    )
    if found[2] != 2:
        t.fail("keys", "two keys in grads", f"{show(found[2])}", "Only the given key is changed.")


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
    wanted += ['np.shares_memory(grads["a"], g) or np.shares_memory(grads["b"], g)']
    after, of_b, of_a, shared = t.drive("run", lines, wanted, given=given)
    whose = "One array came for both keys. To whom does the array belong that is added into?"
    if not np.array_equal(after, g):
        t.fail("wrote_to_g", f"g = {show(g)}, as before", f"g = {show(after)}", whose)
    t.close(stored(t, of_b, "b"), g, attempt=whose, what='grads["b"]')
    t.close(stored(t, of_a, "a"), g + h, attempt=whose, what='grads["a"]')
    if shared is not False:
        t.fail(
            "shared",
            "arrays in grads that share no memory with g",
            "the very memory of g",
            "If somebody writes into g tomorrow, your sum changes with it. Which line allows that?",
        )
    lines, given = program(
        "grads, g = {}, np.broadcast_to(1.5, (2,))  # read-only",
        'accumulate(grads, "a", g)',
        'accumulate(grads, "a", g)',
    )
    found = t.drive("run", lines, ['grads.get("a")'], given=given)
    t.close(stored(t, found[0], "a"), np.full(2, 3.0), attempt=whose, what='grads["a"]')


@accumulate.check(points=1)
def in_place(t: Tester) -> None:
    """After the first gradient no new array is made: the sum grows in place."""
    g, h = arrays(t, 2)
    lines, given = program(
        f"grads, g, h = {{}}, {text(g)}, {text(h)}",
        'accumulate(grads, "a", g)',
        'first = grads["a"]',
        'accumulate(grads, "a", h)',
    )
    same, value = t.drive("run", lines, ['first is grads["a"]', 'grads["a"]'], given=given)
    t.close(
        stored(t, value, "a"),
        g + h,
        attempt="Go through the calls by hand: what is in grads after each?",
        what='grads["a"]',
    )
    if same is not True:
        t.fail(
            "new_array",
            'grads["a"] is the array that was made for the first gradient',
            "a new array, made for the second",
            "x = x + y makes a new array for the sum. What adds into the array that is there?",
        )
