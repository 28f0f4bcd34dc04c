"""A chain of operations as one kernel, compiled once."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from minigrad.course.l11_cpu_kernels import lesson
from minigrad.course.l11_cpu_kernels.launching import (
    BEFORE,
    Counted,
    empty,
    examined,
    laid_out,
    no_temporaries,
    written,
)
from minigrad.grader import samples
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

fuse = lesson.exercise(
    "fuse",
    difficulty=3,
    minutes=25,
    returns="a kernel, compiled by Numba",
    hints=(
        "A kernel for one operation is a loop over the elements. Where in this loop does the "
        "second operation go, and what is its x?",
        "The text of a function can be put together like any text. Two lines begin it: def and "
        "for. Then a line for each operation, then one that writes. exec makes a function of it, "
        "njit a kernel. A dict that outlives the call remembers it.",
        "lines = ['def kernel(values, out):', '    for i in range(values.size):', '        x = "
        "values[i]'], then f'        x = {op}' for each, then '        out[i] = x'. names = "
        "{'math': math}; exec('\\n'.join(lines), names); njit(names['kernel']). The key of the "
        "dict is tuple(ops).",
    ),
)
EXPECTED = "out = the chain of x"
WHY_IT_BROKE = {
    "unhashable": "A list is no key, as it can change. What holds the same texts and cannot?",
    "AttributeError": "Print the text that exec gets. Is each letter x in an operation the name x?",
    "SyntaxError": "Print the text that exec gets. Is each operation in it as it was, and each x "
    "the name x?",
    "NameError": "A kernel finds its globals in the dict that exec was given. What is in yours?",
    "TypeError": "Were types given to njit? Arrays of float32 and float64 come, with any strides.",
}
# What the operations mean, in NumPy.
CHAINS: tuple[tuple[str, ...], ...] = (
    ("x * 0.5", "x + 3", "math.sqrt(x)"),
    ("-x", "math.exp(x)", "1.0 + x", "1.0 / x"),
    ("x if x > 0.75 else 0.5", "x * 2.0"),
)
# chains that are asked for, and at which times
LISTS = [
    ["x * 2.0", "x + 1.0"],
    ["x + 1.0", "x * 2.0"],
    ["x * 2.0"],
    [],
    ["-x", "-x"],
    ["-x-x"],
    ["-x"],
    ["x + x * 0.5"] * 12,
    ["x -x"],
    ["x", "-x"],
    ["x -x", "- 1"],
    ["x", "-x - 1"],
    ["x + 1.0"] * 40,
    ["math.fabs(x)"],
    *([f"x + {k}.5"] for k in range(130)),  # more than a cache of functools keeps, unless told
]
ORDER = [0, 2, 0, 1, 3, 1, 2, 0, 3, 4, 5, 6, 4, 7, *range(8, len(LISTS)), 0, 6, 7]
# long, and each operation again after another one
LONG = ("x + 1.0", "x * 0.5") * 6


def applied(ops: tuple[str, ...], x: np.ndarray) -> np.ndarray:
    """Return the chain of x, by NumPy."""
    with np.errstate(all="ignore"):
        for op in ops:
            x = np.array([eval(op, {"math": np, "x": one}) for one in x], np.float64)
    return x


def ask(t: Tester, ops: tuple[str, ...], x: np.ndarray) -> Counted:
    """Fuse, and run the kernel; fail unless out is the chain of x."""
    arguments = {"x": x, "out": empty(x.shape, x.dtype)}
    given = f"fuse({shortened([*ops])})(x, out), x = {show(x)}"
    answer = t.drive("fused", list(ops), [*arguments.values()], given=given)
    if isinstance(answer, dict):
        fail_if_broken(t, ops, answer)
    counted = examined(t, arguments, answer, EXPECTED)
    wide = x.astype(np.float64)
    mistakes = []
    right = applied(ops, wide)
    if not np.isfinite(x).all():
        text = "There nan or inf came out as it went in. Does it go through the chain?"
        stopped = (np.where(kept, x, right) for kept in (np.isnan(x), ~np.isfinite(x)))
        mistakes = [Mistake("stopped", one, text) for one in stopped]
    if len(ops) > 1 and x.size:
        mistakes += [
            Mistake("last_only", applied(ops[-1:], wide),
                    "That is the last operation of x alone. What is x for it?"),
            Mistake("first_only", applied(ops[:1], wide),
                    "That is the first operation alone. Who takes its result?"),
            Mistake("reversed", applied(ops[::-1], wide),
                    "That is the chain from the end. Which operation sees the element of x?"),
            Mistake("pasted", applied((pasted(ops),), wide),
                    "One text was put into the next. What binds stronger there? (Parentheses.)"),
            Mistake("from_out", applied(ops, np.full_like(wide, BEFORE)),
                    "That is the chain of what out held before. What is the first x?"),
        ]  # fmt: skip
    rtol, atol = (1e-5, 1e-6) if x.dtype == np.float32 else (1e-9, 1e-9)
    attempt = "Follow one element through the chain, operation by operation."
    if not np.isfinite(x).all():
        attempt = "nan and inf are numbers like any other. Which operation makes what of them?"
    if np.isinf(right[np.isfinite(x)]).any():
        attempt = (
            "exp(1000) is inf, and what comes after works on inf: an operation counts, also where "
            "it seems to undo the one before."
        )
    written(t, counted, right, attempt, mistakes, rtol=rtol, atol=atol)
    return counted


def fail_if_broken(t: Tester, ops: tuple[str, ...], answer: dict[str, Any]) -> None:
    """Fail if the list of operations was changed, or the kernel did not run at all."""
    if "changed" in answer:
        attempt = "Whoever called fuse still needs the list. Take a copy, or go through it."
        t.fail("changed_input", f"ops as it was, {list(ops)}", show(answer["changed"]), attempt)
    if "broke" in answer:
        kind, text = answer["broke"]
        attempt = WHY_IT_BROKE.get(kind, "Print the text that exec gets. Is it what you meant?")
        if "nested" in text:
            attempt = "How many are in each other there? Give each operation a line of its own."
        key, kind = ("unhashable", "TypeError") if kind == "unhashable" else ("raised", kind)
        t.fail(key, EXPECTED, f"{kind}: {text}", attempt)


def pasted(ops: tuple[str, ...]) -> str:
    """Return a chain as one text, without the parentheses that it needs."""
    text = "x"
    for op in ops:
        text = re.sub(r"\bx\b", text, op)
    return text


def positive(t: Tester, n: int, dtype: str = "float32") -> np.ndarray:
    """Return n random numbers above 0."""
    return samples.numbers(t.random, (n,), dtype, low=0.25)


@fuse.check(points=2)
def chains(t: Tester) -> None:
    """The kernel computes the chain, each operation of the result before; also when empty."""
    for ops in CHAINS:
        for n in (1, 6, 0):
            ask(t, ops, positive(t, n))
    ask(t, (), positive(t, 5))
    ask(t, ("2.5",), positive(t, 3))


@fuse.check(points=2, only_with=("chains",))
def any_strides(t: Tester) -> None:
    """It is right in float64, for views, and for nan and inf."""
    for view in laid_out(positive(t, 7, "float64")):
        ask(t, CHAINS[1], view)
    x = positive(t, 6, "float64")
    x[[1, 2, 4]] = np.inf, np.nan, -np.inf
    for ops in CHAINS[1:]:
        ask(t, ops, next(laid_out(x)))
    x[0] = 1000.0
    ask(t, ("math.exp(x)", "math.log(x)"), next(laid_out(x)))


@fuse.check(points=2, only_with=("chains",))
def one_pass(t: Tester) -> None:
    """It makes no array, reads each element once, and writes each once."""
    for ops in (*CHAINS, ("x * x", "x + x * 0.5"), LONG):
        x = positive(t, 40)
        counted = ask(t, ops, x)
        no_temporaries(t, counted)
        reads, writes = counted.reads["x"] + counted.reads["out"], counted.writes["out"]
        if reads > x.size or writes > x.size or counted.elsewhere:
            attempt = "Between two operations, where does the element wait: in memory, or in x?"
            if reads > x.size and writes <= x.size and not counted.elsewhere:
                attempt = (
                    "Where x stands twice in an operation, yours goes to memory for each. What "
                    "holds the result so far, for all the places where x stands?"
                )
            got = f"{reads} reads, {writes} writes"
            t.fail("passes", f"{x.size} reads of x and {x.size} writes of out", got, attempt)


@fuse.check(points=2, only_with=("chains",))
def once(t: Tester) -> None:
    """A chain that was asked for before gives the same kernel, another chain another one."""
    given = "fuse of chains, some of them again"
    answers = t.drive("fused_again", LISTS, ORDER, given=given)
    for n, (k, one) in enumerate(zip(ORDER, answers, strict=False)):  # it ends where one broke
        ops, wanted = LISTS[k], ORDER.index(k)
        t.given = f"fuse({shortened(ops)})" + (", asked for before" if wanted < n else "")
        if "broke" in one:
            fail_if_broken(t, tuple(ops), one)
        if "first" not in one:  # a dict of the learner's own
            attempt = "Return the kernel, and let the kernel write into out."
            t.fail("garbled", "a kernel", show(one)[:100], attempt)
        first = one["first"]
        if not one.get("kept", True):
            attempt = "Nobody held the kernel for a while, and it is gone. Who keeps it for later?"
            t.fail("again", "the kernel of the first time", "a new one", attempt)
        if first == n and not one["again"]:
            attempt = "Each new function is compiled anew. Which object outlives a call?"
            t.fail("again", "the kernel of the first time", "a new one", attempt)
        if first == n > wanted:
            others = len({*ORDER[wanted:n]}) - 1
            t.given += f"; since then other chains, {others}, and a change of the list of that time"
            attempt = (
                "Asked for at once, it came again. What does your memory keep: the texts, or the "
                "list itself, which is the caller's? And of how many chains?"
            )
            t.fail("again", "the kernel of the first time", "a new one", attempt)
        if one["code"] > 400 * (1 + len(ops)):
            attempt = (
                "Where x stands twice in an operation, yours computes all before it twice, and so "
                "on. Where can their result wait instead?"
            )
            got = f"{one['code']:,} bytes of Python's code for {len(ops)} operations"
            t.fail("repeated", "each operation once in the kernel", got, attempt)
        if first != wanted:
            other = LISTS[ORDER[first]]
            attempt = "What is the key made of: of the texts, or of what else the lists share?"
            if sorted(other) == sorted(ops):
                attempt = "In which order its operations come belongs to a chain. What is the key?"
            elif "".join(other) == "".join(ops) or " ".join(other) == " ".join(ops):
                attempt = "Joined, the texts are the same. Where does one operation end in the key?"
            elif {*other} == {*ops}:
                attempt = "An operation may come twice. What is lost where the key is made?"
            elif (n := min(len(ops), len(other))) and ops[:n] == other[:n]:
                attempt = "One chain begins as the other does. How far do you compare them?"
            t.fail("confused", "a kernel of its own", f"the kernel of {shortened(other)}", attempt)


def shortened(ops: list[str]) -> str:
    """Return a list of operations for a message."""
    return f"{ops}" if len(ops) < 9 else f"[{ops[0]!r}, …], {len(ops)} operations"
