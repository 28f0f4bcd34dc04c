"""Launches kernels for the checks; explains what the machine said and what it counted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from minigrad.grader.compare import agree, disagreements
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

UNTOUCHED = np.float32(-98765.0)  # fills outputs before the launch

# For each error of the machine: the message's key and its Try line.
FAULTS = {
    "OutOfBoundsError": (
        "bounds",
        "Which thread was that, and does it have an element at this index?",
    ),
    "UninitializedReadError": (
        "uninitialised",
        "Nobody has written there. Should somebody have? Or has the thread that reads it nothing "
        "to do here?",
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
AT_ONE_LINE = (
    "Several threads write one element here, and one value stays. Which of them should write it?"
)
NOT_A_KERNEL = "A kernel is a small part of Python: numbers, indices, if, while, for, and cuda."


class Counted:
    """What a launch left: `arrays`, the arguments by name, and counts.

    Attributes:
        arrays: dict, the arguments after the launch.
        accesses: list of dicts, one per place in the source and array.
        float64: list of (line, text, operations).
        lines: dict, per argument int32 (its size,): the line that last wrote each element, 0 for
            none; None for an argument that nobody wrote.
        reads: the same with the number of reads of each element.
        writers, readers: the same with the number of the thread that last wrote or read each.
        of_one: the most reads of shared memory by one thread.
        of_round: the most of these between two barriers.
        shared: the name and number of elements of each shared array.
        texts: dict, the source text of these lines.
        barriers: list of (line, times).
    """

    FIELDS = (
        "kind", "space", "array", "line", "text", "warps", "lanes",
        "sectors", "least", "turns", "least_turns",
    )  # fmt: skip

    def __init__(self, names: Sequence[str], answer: dict) -> None:
        self.arrays = dict(zip(names, answer["arguments"], strict=True))
        self.accesses = [dict(zip(self.FIELDS, row, strict=True)) for row in answer["accesses"]]
        self.barriers, self.float64 = answer["barriers"], answer["float64"]
        self.lines = dict(zip(names, answer["lines"], strict=True))
        self.reads = dict(zip(names, answer["reads"], strict=True))
        self.writers = dict(zip(names, answer["writers"], strict=True))
        self.readers = dict(zip(names, answer["readers"], strict=True))
        self.of_one, self.of_round = answer["of_one"], answer["of_round"]
        self.shared = answer["shared"]
        self.texts = dict(answer["texts"])

    def lanes(self, kind: str, space: str) -> int:
        """Return how many elements all threads read, wrote or updated there."""
        return sum(a["lanes"] for a in self.accesses if (a["kind"], a["space"]) == (kind, space))

    def warps(self, space: str) -> int:
        """Return how many accesses warps made there."""
        return sum(a["warps"] for a in self.accesses if a["space"] == space)

    def most(self, t: Tester, kind: str, *spaces: str, array: str = "") -> str:
        """Return for a message the line with the most elements read, written or updated.

        array: if named, the only array to count.
        """
        here = [a for a in self.accesses if a["kind"] == kind and a["space"] in spaces]
        here = [a for a in here if array in ("", a["array"])] or here
        worst = max(here, key=lambda a: a["lanes"])
        return place(t, worst["line"], worst["text"])

    def writer(self, t: Tester, name: str, at: int | None = None) -> str | None:
        """Return for a message the line that last wrote an argument's element.

        at: the element's index in the flat array; without it, the only line that writes there.
        None if nobody wrote, or several lines did.
        """
        lines = self.lines[name]
        if lines is None:
            return None
        lines = lines if at is None else lines[at : at + 1]
        distinct = np.unique(lines[lines > 0])
        return (
            place(t, int(distinct[0]), self.texts[int(distinct[0])]) if distinct.size == 1 else None
        )


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
    """Return the machine's words with threads and blocks as people call them."""

    def named(match: re.Match) -> str:
        block, thread = match[1].split(", "), match[2].split(", ")
        if block[1:] == thread[1:] == ["0", "0"]:
            return f"thread {thread[0]} of block {block[0]}"
        return f"thread ({', '.join(thread[:2])}) of block ({', '.join(block[:2])})"

    text = re.sub(r"block \(([\d, ]+)\), thread \(([\d, ]+)\)", named, text)
    text = text.replace("thread thread", "thread")
    return re.sub(r"[\w.]*13_cuda_kernels\.py:(\d+)  ", r"line \1, ", text)


def said(answer: dict) -> str:
    """Return the machine's words about a fault, in one line."""
    details = dict(answer["details"])
    if answer["raised"] == "DataRaceError" and {"thread", "does", "other"} <= {*details}:
        what = details["does"].replace(" it", f" {answer['got']}", 1)
        where = f" ({details['at']})" if "at" in details else ""
        return f"{details['thread']} {what}; {details['other']}{where}; nobody waits for the other"
    parts = [answer["wanted"], answer["got"]]
    parts += [text if label == "at" else f"{label} {text}" for label, text in answer["details"]]
    return "; ".join(part for part in parts if part)


def one_line(answer: dict) -> bool:
    """Return whether a race is between writes of one line."""
    details = dict(answer["details"])
    at = re.search(r":(\d+)", details.get("at", ""))
    both = "writes" in details.get("does", "") and "written" in details.get("other", "")
    return both and at is not None and int(at[1]) == answer["line"]


def fault(t: Tester, answer: dict, expected: str) -> NoReturn:
    """Fail with the machine's words."""
    key, attempt = FAULTS.get(answer["raised"], ("not_a_kernel", answer["fix"] or NOT_A_KERNEL))
    if key == "race" and one_line(answer):
        attempt = AT_ONE_LINE
    got = plain(said(answer))
    where = place(t, answer["line"], answer["text"])
    t.fail(key, expected, got, attempt, where=where, full=answer["fix"])


def launch(
    t: Tester, blocks: Any, threads: Any, arguments: Mapping[str, Any], expected: str
) -> Counted:
    """Launch the exercise's kernel on the machine; fail with its words if it reports a fault."""
    name = t.exercise.name
    given = shown(name, blocks, threads, arguments)
    answer = t.drive("launched", name, blocks, threads, [*arguments.values()], given=given)
    if not isinstance(answer, dict) or ("raised" not in answer and "arguments" not in answer):
        t.fail("garbled", expected, show(answer)[:100], "The machine's answer was not its own.")
    if "raised" in answer:
        fault(t, answer, expected)
    counted = Counted([*arguments], answer)
    *inputs, _ = (name for name, value in arguments.items() if isinstance(value, np.ndarray))
    for name in inputs:
        if not np.array_equal(counted.arrays[name], arguments[name]):
            attempt = "A kernel writes into its last array. Whoever launched this one needs these."
            where = counted.writer(t, name)
            t.fail("changed_input", f"{name} as it was", f"{name} was written to", attempt,
                   where=where)  # fmt: skip
    by_the_kernel(t, counted, arguments)
    return counted


def by_the_kernel(t: Tester, counted: Counted, arguments: Mapping[str, Any]) -> None:
    """Fail if an output changed where the machine saw no line of the kernel write."""
    name = [key for key, value in arguments.items() if isinstance(value, np.ndarray)][-1]
    before, after, lines = arguments[name], counted.arrays[name], counted.lines[name]
    if not isinstance(after, np.ndarray) or after.shape != before.shape:
        return  # `written` reports that
    changed = (after != before).ravel()
    is_seen = isinstance(lines, np.ndarray) and lines.shape == changed.shape
    if changed.any() and not (is_seen and (lines[changed] > 0).all()):
        attempt = "What counts is what the kernel's own lines write. Who else writes there?"
        expected = f"{name} written by lines of the kernel"
        t.fail("elsewhere", expected, "something else that wrote it", attempt)


def one_each(t: Tester, counted: Counted, name: str) -> None:
    """Fail if a thread wrote several elements of an output."""
    _, n = np.unique(counted.writers[name], return_counts=True)
    if n.max(initial=0) > 1:
        attempt = "Which elements does one thread write? And which threads have nothing to do?"
        got = f"{n.max()} elements by one thread"
        where = counted.writer(t, name)
        t.fail("several", f"a thread for each element of {name}", got, attempt, where=where)


def in_turn(
    t: Tester, threads: np.ndarray, rows: int, width: int, expected: str, who: str, attempt: str
) -> None:
    """Fail unless thread k of a row's `width` threads did its columns k, k + width and so on.

    threads: for each element (rows * columns,) the grid-wide number of the thread that did it.
    """
    threads = threads.reshape(rows, -1)
    right = np.arange(threads.shape[1]) % width + width * np.arange(rows)[:, None]
    if (others := threads != right).any():
        row, column = np.argwhere(others)[0]
        did = f"that of [{row}, {column}], by {who} {threads[row, column] % width}"
        if threads[row, column] // width != row:
            did += ", of another row"
        t.fail("other_thread", f"{expected}: that of [{row}, {column}], by {who} {column % width}",
               did, attempt)  # fmt: skip


def in_rounds(t: Tester, counted: Counted, reductions: int = 1) -> None:
    """Fail if a thread read shared memory more often than rounds of half the threads need."""
    most = 28 * reductions  # 4 a round: of two elements to one more than it takes, and 7 rounds
    if counted.of_one > most:
        attempt = "How many threads add in each round, and how many rounds are there?"
        expected = f"at most {most} reads of shared memory by one thread"
        t.fail("serial", expected, f"{counted.of_one} by one thread", attempt)


def written(
    t: Tester,
    counted: Counted,
    expected: np.ndarray,
    what: str,
    *,
    attempt: str,
    mistakes: Sequence[Mistake] = (),
    rtol: float = 1e-6,
    atol: float = 1e-9,
) -> None:
    """Fail unless every element of an output was written with the right value.

    The message names the first wrong element and the line that wrote it; a mistake that fits all of
    them says why.
    """
    out = counted.arrays[what]
    if not isinstance(out, np.ndarray) or out.shape != expected.shape or out.dtype.kind not in "fi":
        t.close(out, expected, what=what, attempt=attempt)
    left = out == UNTOUCHED
    if left.any():
        got = f"{int(left.sum())} of {left.size} elements were left, first {entry(what, left)}"
        attempt = "Which thread should write it? Follow it: its index, and its way through each if."
        where = counted.writer(t, what)
        t.fail("unwritten", f"every element of {what} written", got, attempt, where=where)
    is_wrong = disagreements(out, expected, rtol=rtol, atol=atol)
    if not is_wrong.any():
        return
    key = "nan" if np.isnan(out).any() else "value"
    added = f"What stood in {what} before is part of it. Who wrote it there, and who adds to it?"
    for mistake in (*mistakes, Mistake("added", expected + UNTOUCHED, added)):
        if agree(out, mistake.value, rtol=rtol, atol=atol):
            key, attempt = mistake.key, mistake.attempt
            break
    element, at = entry(what, is_wrong), int(is_wrong.argmax())
    where = counted.writer(t, what, at)
    got = f"{element} = {out.flat[at]:.6g}{', written by the line below' if where else ''}"
    got += f"; {int(is_wrong.sum())} of {out.size} elements are wrong"
    t.fail(key, f"{element} = {expected.flat[at]:.6g}", got, attempt, where=where)


def entry(what: str, where: np.ndarray) -> str:
    """Return the first element of an array for which a condition holds, such as out[0, 3]."""
    return f"{what}[{', '.join(str(i) for i in np.argwhere(where)[0])}]"


def in_float32(t: Tester, counted: Counted) -> None:
    """Fail if anything was computed in float64."""
    if counted.float64:
        line, text, n = counted.float64[0]
        attempt = "One side is a Python number, or comes from one. Which type does it have?"
        got = f"{n} operations in float64, first in `{text}`"
        t.fail("float64", "all arithmetic in float32", got, attempt, where=place(t, line, text))


def floats(t: Tester, *shape: int, low: float = -2, high: float = 2) -> np.ndarray:
    """Return random float32 numbers, rounded as messages show them."""
    return np.round(t.random.uniform(low, high, shape), 2).astype(np.float32)


def empty(*shape: int) -> np.ndarray:
    """Return an output that shows which elements nobody wrote."""
    return np.full(shape, UNTOUCHED, np.float32)
