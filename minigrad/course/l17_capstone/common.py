"""What the checks of all capstones look at: the numbers that a training records."""

from __future__ import annotations

from operator import lt
from typing import Any

import numpy as np

from minigrad.grader.limits import Limits
from minigrad.grader.message import a_kind, counted, show
from minigrad.grader.tester import Tester

# A training of a second or two, with room for a busy machine.
LIMITS = Limits(call_seconds=120.0, total_seconds=600.0, cpu_seconds=240)
ALIVE_AT = 5  # the call of record at which the driver looks for weights
NEWS = "record(loss.item()): a number. The Variable holds the graph of its step."
LATER = (
    "It begins alike. What comes after that the seed does not set: batches, a rate, a count that "
    "goes on from an earlier call, a clock?"
)
ROUND = "A loss is no whole number, in any call. What rounds it, or stands in for it?"
MEANT = "A float, also where it happens to be a whole number. What rounds it?"


def recorded(t: Tester, told: Any, least: int, what: str = "loss") -> np.ndarray:
    """Return the recorded numbers; fail unless there are enough, all of them finite floats."""
    numbers = np.asarray(told["losses"])
    wanted = f"record called with a float, the {what}, {least} times or more"
    if strange := [kind for kind in told["kinds"] if kind not in ("float", "float32", "float64")]:
        rounded = ROUND if what == "loss" else MEANT
        attempt = rounded if "int" in strange[0] else NEWS
        t.fail("record_kind", wanted, f"record called with {a_kind(strange[0])}", attempt)
    if told["steps"] < least:
        got = f"record called {counted(told['steps'], 'time')}"
        ends = "step" if what == "loss" else "game"
        t.fail("not_recorded", wanted, got, f"Where does a {ends} end? There is what it came to.")
    if len(numbers) >= ALIVE_AT and not told["has_weights"]:
        t.fail(
            "no_network",
            f"a network that learns: Variables with gradients, alive at call {ALIVE_AT} of record",
            "no Variable with gradients",
            "Let a mg.nn.Module with an optimizer learn it: tables and rules are no network.",
        )
    if not np.isfinite(numbers).all():
        first = int(np.flatnonzero(~np.isfinite(numbers))[0])
        before = f", after {show(float(numbers[first - 1]))}" if first else ""
        attempt = "Which step made it so large? A learning rate that is too large grows first."
        t.fail(
            "nan", f"each {what} finite", f"{what} {first + 1} is {numbers[first]}{before}", attempt
        )
    return numbers


def keeps_nothing(t: Tester, told: Any, at: tuple[int, ...] = (5, 25)) -> None:
    """Fail if nodes of earlier steps stay alive: they were counted at some steps, and only grew."""
    nodes = told["nodes"]
    if told.get("climb"):
        at, nodes = told["climb"]
    if len(nodes) == len(at) and all(map(lt, nodes, nodes[1:])):
        more = nodes[-1] - nodes[0]
        t.fail(
            "grows",
            f"as many live nodes at step {at[-1]} as at step {at[0]}",
            f"{more} more",
            "Who holds the graphs of earlier steps? A list of losses, a sum of them?",
        )


def same_numbers(
    t: Tester, first: Any, again: Any, other: Any, seeds: tuple[int, int], of: str = "losses"
) -> None:
    """Fail unless a seed repeats a training to the bit, and another one does not.

    `other` may be None: where what is given depends on the seed, another one says nothing, and
    the first numbers may come of that alone.
    """
    what = "numbers" if of == "losses" else of
    if not np.array_equal(first[of], again[of]):
        pairs = zip(first[of], again[of], strict=False)
        alike = next((i for i, (a, b) in enumerate(pairs) if not np.array_equal(a, b)), 0)
        attempt = (
            "What is drawn before the seed is set, or by what it does not set: a clock, a text's "
        )
        t.fail(
            "not_repeated",
            f"seed {seeds[0]} twice: the same {what}, to the last bit",
            f"other {what} the second time, from number {alike + 1} on",
            (LATER if alike and other is not None else attempt + "hash? What outlives a call?"),
        )
    if other is not None and np.array_equal(first[of], other[of]):
        t.fail(
            "same_for_all",
            f"seeds {seeds[0]} and {seeds[1]}: two trainings",
            "the same numbers to the last bit",
            "Which seed is set: the one that came, or always the same?",
        )
