"""Runs kernels for the checks of lesson 11, and explains what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from minigrad.grader import samples
from minigrad.grader.compare import agree, disagreements
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

OUTPUTS = ("out", "c")
BEFORE = 7.25  # what outputs hold before a kernel writes to them
# nan and inf at places that no rounding moves
SPECIAL = (np.nan, np.inf, -np.inf)


class Counted:
    """What a run of a kernel left.

    Attributes:
        name, dtype: the output's.
        out: the output, afterwards.
        in_python: the output, after the run as plain Python.
        divided: whether compiled code divided by 0, and raised; `out` is `in_python` then.
        temporaries: how many arrays the compiled kernel asked Numba's allocator for.
        reads, writes, fetched: dicts, for each argument by name: elements read and written, and
            lines fetched; for numbers 0.
        elsewhere: accesses of arrays that the kernel made.
    """

    def __init__(self, arguments: dict[str, Any], answer: dict[str, Any]) -> None:
        names = [*arguments]
        place = next(k for k, name in enumerate(names) if name in OUTPUTS)
        self.name, self.dtype = names[place], arguments[names[place]].dtype
        self.out, self.in_python = answer["arguments"][place], answer["in_python"][place]
        self.divided = answer["divided"]
        self.temporaries = answer["temporaries"]
        self.elsewhere = answer["elsewhere"]
        self.reads, self.writes, self.fetched = (
            dict(zip(names, answer[what], strict=True)) for what in ("reads", "writes", "fetched")
        )


def described(call: str, arguments: dict[str, Any]) -> str:
    """Return a call for a message: the call, then its inputs."""
    inputs = [f"{name} = {show(value)}" for name, value in arguments.items() if name not in OUTPUTS]
    return f"{call}, {', '.join(inputs)}"


def launch(t: Tester, arguments: dict[str, Any], expected: str) -> Counted:
    """Run a kernel; see `examined`. arguments: by name, in order."""
    name = t.exercise.name
    given = described(f"{name}({', '.join(arguments)})", arguments)
    answer = t.drive("launched", name, [*arguments], [*arguments.values()], given=given)
    return examined(t, arguments, answer, expected)


def watch(t: Tester, arguments: dict[str, Any]) -> Counted:
    """Run a kernel as plain Python alone, for its counts: nothing is compiled."""
    name = t.exercise.name
    given = described(f"{name}({', '.join(arguments)})", arguments)
    answer = t.drive("only_watched", name, [*arguments], [*arguments.values()], given=given)
    return examined(t, arguments, answer, "out filled by the kernel")


def examined(t: Tester, arguments: dict[str, Any], answer: Any, expected: str) -> Counted:
    """Return what a driver's run left; fail if it was none, or an input was written to."""
    if isinstance(answer, dict) and "not_compiled" in answer:
        attempt = "What Numba compiles has @njit above it, or went through njit(...). Has yours?"
        t.fail("not_compiled", "a function that Numba compiles", answer["not_compiled"], attempt)
    if isinstance(answer, dict) and "parallel" in answer:
        attempt = "Threads that add into one element lose sums. Leave parallel=True out."
        t.fail("parallel", "a kernel that runs in one thread", "njit(parallel=True)", attempt)
    if isinstance(answer, dict) and "product" in answer:
        attempt = "Write the sums as loops: that is what this is about."
        t.fail("product", "loops of your own", "a product of whole arrays, by NumPy", attempt)
    if not isinstance(answer, dict) or "arguments" not in answer:
        attempt = "Return the kernel, and let the kernel write into out."
        t.fail("garbled", expected, show(answer)[:100], attempt)
    for (name, before), after in zip(arguments.items(), answer["arguments"], strict=True):
        if name in OUTPUTS or not isinstance(before, np.ndarray):
            continue
        if not np.array_equal(before, after, equal_nan=True):
            attempt = "A kernel writes into its output. Whoever called it needs the others."
            t.fail("changed_input", f"{name} as it was", f"{name} was written to", attempt)
    return Counted(arguments, answer)


def written(
    t: Tester,
    counted: Counted,
    right: np.ndarray,
    attempt: str,
    mistakes: Sequence[Mistake] = (),
    *,
    rtol: float,
    atol: float,
    before: float = BEFORE,
) -> None:
    """Fail unless the output holds what is right, in each element.

    Args:
        t: the check's tester.
        counted: what the kernel left.
        right: what is right, in float64.
        attempt: what to try where the mistake is unknown.
        mistakes: outputs of wrong kernels.
        rtol, atol: how close is close.
        before: what the output held.
    """
    out, what = counted.out, counted.name
    added = f"What stood in {what} before is part of it. Who writes there first?"
    left = f"These are what {what} held before. Who writes there?"
    all_mistakes = [
        *mistakes,
        Mistake("unwritten", np.full_like(right, before), left),  # first: a sum of nothing is 0
        Mistake("added", right + before, added),
    ]
    if np.isfinite(before) and out.shape == right.shape:  # in some elements alone
        off = disagreements(out, right, rtol=rtol, atol=atol)
        first = f", {what}{np.argwhere(off)[0].tolist()} the first" if off.any() else ""
        added = f"What {what} held before is part of some elements{first}. Who clears these?"
        left = f"Some elements{first}, are what {what} held before. Which loop comes to these?"
        all_mistakes += [
            Mistake("unwritten", np.where(off, before, out), left),
            Mistake("added", np.where(off, right + before, out), added),
        ]
    if right.size == 0:
        all_mistakes = []
    wanted = right.astype(counted.dtype)  # messages show one dtype
    shown, given = f"{what} = {show(wanted)}", t.given
    if counted.divided:
        t.given += "; run as plain Python, as compiled code raises ZeroDivisionError for it"
    elif not agree(out, right, rtol=rtol, atol=atol):
        if agree(counted.in_python, right, rtol=rtol, atol=atol):
            text = (
                "As plain Python these loops give what is right. What lets compiled code give "
                "something else: an option of njit, such as fastmath, or the type of a number?"
            )
            t.fail("compiled", shown, f"{what} = {show(out)}", text)
        if not np.isfinite(before) and agree(out, np.full_like(right, np.nan)):
            nans = f"{before} * 0 and {before} - {before} are nan"
            text = f"{what} held {before} before, and {nans}. Who writes there first?"
            t.fail("added", shown, f"{what} = {show(out)}", text)
        small_alone = agree(out, right, rtol=rtol, atol=1e-12)
        if np.isfinite(right).all() and not small_alone and agree(out, right, rtol=1e-5, atol=1e-5):
            attempt = (
                "Only the first digits are right. Which step rounds to float32, takes something "
                "close for a function, or adds a small number that is not in the formula?"
            )
    elif not agree(counted.in_python, right, rtol=1e-3, atol=1e-3):
        text = "A kernel runs twice: compiled, for its values, and as plain Python, to be counted."
        got = f"{shown}; as plain Python {show(counted.in_python)}"
        t.fail("two_functions", f"{shown} both times", got, text)
    t.close(out, wanted, attempt=attempt, mistakes=all_mistakes, what=what, rtol=rtol, atol=atol)
    if counted.divided:
        t.given = given
        text = (
            "NumPy gives inf or nan where compiled code raises. Which divisor is 0 here? Or does "
            "an option such as fastmath let Numba leave out nan and inf?"
        )
        t.fail("divided", shown, "ZeroDivisionError: division by zero, in compiled code", text)


def no_temporaries(t: Tester, counted: Counted) -> None:
    """Fail if the kernel made an array."""
    if counted.temporaries > 0:
        attempt = "Which line makes a whole array? Its elements are needed one at a time."
        got = f"{counted.temporaries} asked for"
        t.fail("temporaries", "no array from Numba's allocator", got, attempt)


def empty(shape: Any, dtype: Any, before: float = BEFORE) -> np.ndarray:
    """Return an output that is full of what nobody means."""
    return np.full(shape, before, dtype)


def laid_out(x: np.ndarray) -> Iterator[np.ndarray]:
    """Yield x as kernels meet it: reversed, every second row and column, both transposed."""
    for view in samples.views(x):
        yield view if not view.flags.f_contiguous else spaced_transpose(x)


def spaced_transpose(x: np.ndarray) -> np.ndarray:
    """Return a transposed view of every second row and column of another matrix, equal to x."""
    memory = np.zeros([2 * n for n in x.T.shape], x.dtype)
    view = memory[tuple(slice(None, None, 2) for _ in x.shape)].T
    view[...] = x
    return view


def with_specials(t: Tester, x: np.ndarray, n: int = 1) -> np.ndarray:
    """Return a copy of x with each special value at n random places."""
    x = x.copy()
    places = t.fixed.permutation(x.size)
    for k, value in enumerate(SPECIAL * n):
        x.flat[places[k]] = value
    return x
