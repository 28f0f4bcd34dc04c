"""Launches for the checks: what went in, what the machine said, and what it counted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

UNTOUCHED = np.float32(-98765.0)  # stands in outputs before the launch

# Per error of the machine: the key of the message, and what to try.
FAULTS = {
    "OutOfBoundsError": (
        "bounds",
        "Which thread was that, and does it have an element at this index?",
    ),
    "UninitializedReadError": (
        "uninitialised",
        "Nobody has written there. Who should have, and does every thread that should do so?",
    ),
    "DataRaceError": (
        "race",
        "Two threads use one element, and at least one writes. Should both? If so: who waits?",
    ),
    "DivergentBarrierError": (
        "divergent",
        "A barrier opens when all threads of the block have come. Which of them does not come?",
    ),
    "InactiveLaneError": (
        "inactive",
        "A shuffle asks another lane for its value. Is that lane at this line, too?",
    ),
    "EndlessLoopError": ("endless", "What changes from one round of the loop to the next?"),
}
NOT_A_KERNEL = "A kernel is a small part of Python: numbers, indices, if, while, for, and cuda."


class Counted:
    """What a launch left: `arrays`, the arguments by name, and counts.

    Attributes:
        arrays: dict, the arguments after the launch.
        accesses: list of dicts, one a place in the source and array.
        float64: list of (line, text, operations).
        barriers: list of (line, times).
    """

    FIELDS = (
        "kind", "space", "array", "line", "text", "warps", "lanes",
        "sectors", "least", "turns", "least_turns",
    )  # fmt: skip

    def __init__(self, arrays: dict, accesses: list, barriers: list, float64: list) -> None:
        self.arrays = arrays
        self.accesses = [dict(zip(self.FIELDS, row, strict=True)) for row in accesses]
        self.barriers, self.float64 = barriers, float64

    def lanes(self, kind: str, space: str) -> int:
        """Return how many elements were read, written or updated there, by all threads."""
        return sum(a["lanes"] for a in self.accesses if (a["kind"], a["space"]) == (kind, space))

    def warps(self, space: str) -> int:
        """Return how many accesses warps made there."""
        return sum(a["warps"] for a in self.accesses if a["space"] == space)


def place(t: Tester, line: int, text: str) -> str:
    """Return a line of the learner's file as messages show it."""
    file = t.runner.line_of("").partition(":")[0]
    return f"{file}:{line}\n  {text}" if line else t.runner.line_of(t.exercise.name)


def shown(name: str, blocks: Any, threads: Any, arguments: Mapping[str, Any]) -> str:
    """Return a launch for a message."""
    texts = [
        f"{key} {value.dtype} {value.shape}"
        if isinstance(value, np.ndarray)
        else f"{key} = {show(value)}"
        for key, value in arguments.items()
    ]
    return f"{name}[{blocks}, {threads}] (blocks, threads of each), with {', '.join(texts)}"


def plain(text: str) -> str:
    """Return what the machine says with threads and blocks as people call them."""

    def named(match: re.Match) -> str:
        block, thread = match[1].split(", "), match[2].split(", ")
        if block[1:] == thread[1:] == ["0", "0"]:
            return f"thread {thread[0]} of block {block[0]}"
        return f"thread ({', '.join(thread[:2])}) of block ({', '.join(block[:2])})"

    text = re.sub(r"block \(([\d, ]+)\), thread \(([\d, ]+)\)", named, text)
    text = text.replace("thread thread", "thread")
    return re.sub(r"[\w.]*13_cuda_kernels\.py:(\d+)  ", r"line \1, ", text)


def said(found: dict) -> str:
    """Return what the machine says about a fault, in one line."""
    details = dict(found["details"])
    if found["raised"] == "DataRaceError" and {"thread", "does", "other"} <= {*details}:
        what = details["does"].replace(" it", f" {found['got']}", 1)
        where = f" ({details['at']})" if "at" in details else ""
        return f"{details['thread']} {what}; {details['other']}{where}; nobody waits for the other"
    parts = [found["wanted"], found["got"]]
    parts += [text if label == "at" else f"{label} {text}" for label, text in found["details"]]
    return "; ".join(part for part in parts if part)


def fault(t: Tester, found: dict, expected: str) -> NoReturn:
    """Fail with what the machine said."""
    key, attempt = FAULTS.get(found["raised"], ("not_a_kernel", found["fix"] or NOT_A_KERNEL))
    got = plain(said(found))
    where = place(t, found["line"], found["text"])
    t.fail(key, expected, got, attempt, where=where, full=found["fix"])


def launch(
    t: Tester, blocks: Any, threads: Any, arguments: Mapping[str, Any], expected: str
) -> Counted:
    """Launch the exercise's kernel on the machine; fail with what it says if it is a fault."""
    name = t.exercise.name
    given = shown(name, blocks, threads, arguments)
    found = t.drive("launched", name, blocks, threads, [*arguments.values()], given=given)
    if not isinstance(found, dict) or ("raised" not in found and "arguments" not in found):
        t.fail("garbled", expected, show(found)[:100], "The machine's answer was not its own.")
    if "raised" in found:
        fault(t, found, expected)
    after = dict(zip(arguments, found["arguments"], strict=True))
    return Counted(after, found["accesses"], found["barriers"], found["float64"])


def written(
    t: Tester,
    out: Any,
    expected: np.ndarray,
    what: str,
    *,
    attempt: str,
    mistakes: Sequence[Mistake] = (),
    rtol: float = 1e-6,
    atol: float = 1e-9,
) -> None:
    """Fail unless every element of an output was written, and with the right value.

    The message names the first element that is wrong; a mistake that fits all of them says why.
    """
    if not isinstance(out, np.ndarray) or out.shape != expected.shape or out.dtype.kind not in "fi":
        t.close(out, expected, what=what, attempt=attempt)
    left = out == UNTOUCHED
    if left.any():
        got = f"{int(left.sum())} of {left.size} elements were left, first {entry(what, left)}"
        attempt = "Which thread should write it? Follow it: its index, and its way through each if."
        t.fail("unwritten", f"every element of {what} written", got, attempt)
    is_wrong = ~np.isclose(out, expected, rtol=rtol, atol=atol)
    if not is_wrong.any():
        return
    key = "nan" if np.isnan(out).any() else "value"
    for mistake in mistakes:
        if np.allclose(out, mistake.value, rtol=rtol, atol=atol):
            key, attempt = mistake.key, mistake.attempt
            break
    place, at = entry(what, is_wrong), tuple(np.argwhere(is_wrong)[0])
    n = f"{int(is_wrong.sum())} of {out.size} elements are wrong"
    t.fail(key, f"{place} = {expected[at]:.6g}", f"{place} = {out[at]:.6g}; {n}", attempt)


def entry(what: str, where: np.ndarray) -> str:
    """Return the first element of an array for which a condition holds, such as out[0, 3]."""
    return f"{what}[{', '.join(str(i) for i in np.argwhere(where)[0])}]"


def in_float32(t: Tester, counted: Counted) -> None:
    """Fail if something was computed in float64."""
    if counted.float64:
        line, text, n = counted.float64[0]
        attempt = "One side is a Python number, or comes from one. Which type does it have?"
        got = f"{n} operations in float64, first in `{text}`"
        t.fail("float64", "all arithmetic in float32", got, attempt, where=place(t, line, text))


def floats(t: Tester, *shape: int, low: float = -2, high: float = 2) -> np.ndarray:
    """Return random float32, rounded as they are shown."""
    return np.round(t.random.uniform(low, high, shape), 2).astype(np.float32)


def empty(*shape: int) -> np.ndarray:
    """Return an output that shows which elements nobody has written."""
    return np.full(shape, UNTOUCHED, np.float32)
