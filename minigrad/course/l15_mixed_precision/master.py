"""A parameter in float16 with a master copy in float32."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from minigrad.course.l15_mixed_precision import lesson
from minigrad.grader import samples
from minigrad.grader.compare import agree
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

master_step = lesson.exercise(
    "master_step",
    difficulty=3,
    minutes=15,
    returns="None: the results are in half and state",
    hints=(
        "Without anybody who writes to the parameter it is three lines: the copy, if there is "
        "none; the step, in the copy; and the copy, rounded, into half.",
        "Writing to half shows: before a step, each entry of half is its master, rounded. "
        "master.astype(np.float16) != half says where that is no longer so.",
        "is_written = master.astype(np.float16) != half; master[is_written] = half[is_written]. "
        "Then master -= learning_rate * gradient, and half[...] = master.",
    ),
)


def cut(x):
    """Return numbers, rounded towards 0 to float16."""
    new = x.astype(np.float16)
    away = np.abs(new.astype(np.float32)) > np.abs(x)
    return np.where(away, np.nextafter(new, np.float16(0)), new)


def step(half, gradient, master, rate, *, kind=""):
    """Return half and master after a step, right or with a common mistake."""
    remembered = master is not None
    if not remembered or kind == "master_anew":
        master = half.astype(np.float32)
    if kind == "half_only":
        half = half - (rate * gradient).astype(np.float16)
        return half, half.astype(np.float32)
    written = master.astype(np.float16) != half
    if kind == "cut_off":
        written = cut(master) != half
    if kind == "first_lost" and not remembered:
        return half, master
    if kind == "first_in_half" and not remembered:
        half = (master - np.float32(rate) * gradient).astype(np.float16)
        return half, half.astype(np.float32)
    if kind == "stale":
        written = np.zeros_like(written)
    elif kind == "all_anew":
        written = np.full_like(written, written.any())
    elif kind == "nan_stays":
        written &= ~np.isnan(master)
    elif kind == "inf_unseen":
        written &= np.isfinite(half)
    elif kind == "zero_unseen":
        written &= half != 0
    elif kind == "unseen_at_rest":
        written &= gradient != 0
    wide = half.astype(np.float32)
    shift = wide - master.astype(np.float16)
    if kind == "shifted_in_half":
        shift = half - master.astype(np.float16)
    shifted = kind.startswith("shifted")
    master = master + shift if shifted else np.where(written, wide, master)
    if kind == "skipped" and not np.isfinite(gradient).all():
        return half, master
    size = np.float32(rate) * gradient
    if kind == "half_rate":
        size = np.float32(np.float16(rate)) * gradient
    if kind == "half_step":
        size = size.astype(np.float16).astype(np.float32)
    elif kind == "half_gradient":
        size = np.float32(rate) * gradient.astype(np.float16).astype(np.float32)
    if kind == "written_stays":
        size = np.where(written, np.float32(0), size)
    master = master + size if kind == "uphill" else master - size
    if kind == "half_master":
        master = master.astype(np.float16).astype(np.float32)
    new = master.astype(np.float16)
    if kind in ("truncated", "cut_off"):
        new = cut(master)
    elif kind == "saturated":
        new = np.clip(new, -65504, 65504)
    elif kind == "unseen_at_rest":
        new = np.where(gradient != 0, new, half)
    elif kind == "flushed":
        new = np.where(np.abs(new) < 2**-14, np.float16(0), new)
    return new, master


SHIFTED = (
    "Something from before the writing was added to it. What was written takes the master's place."
)
CUT = "Rounded towards 0. What does float16 do between two numbers?"
WRONG = {
    "half_only": "The step was made in float16, where it is lost. Which of the two makes it?",
    "master_anew": "The copy was made anew from the rounded parameter. What did it forget?",
    "half_master": "What you keep has the digits of float16: what is too small for it is lost.",
    "half_step": "The step itself was rounded to float16. A small one is 0 there.",
    "half_gradient": "The gradient was rounded to float16. A small one is 0 there.",
    "uphill": "It goes uphill: which way does the gradient point?",
    "stale": "Somebody wrote to the parameter, and the old master copy undid it.",
    "shifted": SHIFTED,
    "shifted_in_half": SHIFTED,
    "skipped": "A gradient with inf or nan is a gradient, too: what does the formula make of it? "
    "(To leave such a step out is the scaler's part.)",
    "flushed": "What is below 2**-14 became 0. Subnormal numbers of float16 are numbers, too.",
    "first_lost": "The first call made the copy and no step. It is a step like all others.",
    "all_anew": "Only one entry was written, and the masters of all began anew.",
    "truncated": CUT,
    "cut_off": CUT,
    "half_rate": "The learning rate was rounded to float16. In which type is the step made?",
    "written_stays": "What was written is where the step begins. It is moved like the rest.",
    "first_in_half": "The first step was rounded to float16 before the copy was made of it.",
    "nan_stays": "Numbers were written over nan, and it is nan still. What does a comparison with "
    "nan say?",
    "inf_unseen": "inf was written, and the old master undid it. Which writings do you ask for?",
    "zero_unseen": "0 was written, and the old master undid it. Which writings do you ask for?",
    "unseen_at_rest": "Where the gradient is 0 nothing moves, but what was written counts there, "
    "too: look at the master copy.",
    "saturated": "The master is beyond 65504. What does rounding to float16 make of it?",
}


def listed(x: np.ndarray) -> str:
    """Return an array in words: the numbers alone if it has one axis."""
    return show(x.astype(float) if x.ndim == 1 else x, bare=True)


def run(
    t: Tester,
    half: np.ndarray,
    gradients: list,
    rate: float,
    writes: dict[int, Any],
    attempt: str,
    anew: Sequence[int] = (),
) -> None:
    """Check several steps of one parameter; before the calls in `anew` the state is a new {}."""
    shown = ", then ".join(map(listed, gradients[:3]))
    calls = "1 call" if len(gradients) == 1 else f"{len(gradients)} calls"
    given = f"master_step, {calls}: half = {listed(half)}, "
    given += f"gradient = {shown}, learning_rate = {rate:g}"
    for call, new in writes.items():
        given += f"; before call {call + 1} somebody writes {show(new, bare=True)} into half"
        given += " (nan: stays)" if np.isnan(new).any() else ""
    for call in anew:
        given += f"; before call {call + 1} the state is a new {{}}, as of another optimizer"
    rows = t.drive("master_steps", half, gradients, rate, writes, [*anew], given=given)
    states = dict.fromkeys(("", *WRONG), (half, None))
    for call, (row, gradient) in enumerate(zip(rows, gradients, strict=True)):
        if (new := writes.get(call)) is not None:
            states = {
                kind: (np.where(np.isnan(new), h, new).astype(np.float16), m)
                for kind, (h, m) in states.items()
            }
        if call in anew:
            states = {kind: (h, None) for kind, (h, _) in states.items()}
        before = states[""][0]
        with np.errstate(all="ignore"):
            states = {k: step(h, gradient, m, rate, kind=k) for k, (h, m) in states.items()}
        wanted, master = states[""]
        when = f" after call {call + 1}" if len(gradients) > 1 else ""
        if row["returned"] is not None:
            t.fail("returned", "None", show(row["returned"]), "The results are in half and state.")
        if not np.array_equal(row["gradient"], gradient, equal_nan=True):
            said = f"gradient = {show(row['gradient'])}{when}"
            t.fail("changed_gradient", f"gradient = {show(gradient)}, as it came", said,
                   "Two names for one array: which line writes into the gradient?")  # fmt: skip
        if "master" not in (row["names"] or ()) or row["is_half"]:
            said = "half itself" if row["is_half"] else f"state with {row['names']}"
            t.fail("no_master", f"state = {{'master': an array}}{when}", said,
                   "Where is the float32 copy, when the next call looks for it?")  # fmt: skip
        moved = [
            what
            for what, at_first, now in zip(
                ("half", "state['master']"), (row["half"], row["master"]), row["now"], strict=True
            )
            if not np.array_equal(at_first, now, equal_nan=True)
        ]
        if moved:
            t.fail("shared", f"{moved[0]}{when}, as it is until its own next step",
                   f"{moved[0]} changed by the step of another parameter of the same shape",
                   "Each parameter has a state of its own. What do these two share?")  # fmt: skip
        if isinstance(row["master"], np.ndarray | np.generic):
            t.dtype(row["master"], np.float32, "The copy is a float32, from the first step on.")
        for what, key, value, rtol in (
            ("half", "half", wanted, 0.6 * 2**-10),
            ("state['master']", "master", master, 3e-7),
        ):
            is_kept = key == "half" and np.array_equal(row[key], before)
            if is_kept and not np.array_equal(value, before) and row["master"] is not None:
                with np.errstate(over="ignore"):
                    kept = np.asarray(row["master"]).astype(np.float16)
                if np.array_equal(kept, value):
                    t.fail("not_in_place", f"half = {show(value)}{when}", "half as it was",
                           samples.attempt_for(before, row[key], INTO))  # fmt: skip
            why = attempt
            if key == "master" and agree(row[key], value, rtol=1e-4):
                why = CLOSE
            t.close(
                row[key],
                value,
                what=f"{what}{when}",
                rtol=rtol,
                atol=1e-9 if key == "master" else 2**-24,
                attempt=samples.attempt_for(before, row[key], why) if is_kept else why,
                mistakes=[
                    Mistake(kind, states[kind][key == "master"], WRONG[kind]) for kind in WRONG
                ],
            )


INTO = "The copy is right. `half = …` gives the name to a new array: write into the old one."
CLOSE = (
    "Close, and not the float32 that the formula gives. In which type do you compute, and in which "
    "order?"
)
BY_HAND = "Follow the master copy of one entry by hand; half is what it rounds to."


def halves(t: Tester, *shape: int) -> np.ndarray:
    """Return a parameter in float16."""
    return samples.numbers(t.random, shape or (2,), "float16")


def slope(t: Tester, *shape: int, size: float = 1.0) -> np.ndarray:
    """Return a gradient in float32."""
    return (size * samples.numbers(t.random, shape or (2,))).astype(np.float32)


@master_step.check(points=1)
def single_steps(t: Tester) -> None:
    """A step writes the new values into half, and the copy into state."""
    for calls in (1, 2):
        for x in samples.arrays(t.random, dtypes=("float16",)):
            gradients = [samples.numbers(t.random, x.shape, "float32") for _ in range(calls)]
            run(t, x, gradients, 0.1, {}, BY_HAND)
    for _ in range(6):
        run(t, halves(t), [slope(t), slope(t)], 0.01, {}, BY_HAND)


@master_step.check(points=2)
def small_steps(t: Tester) -> None:
    """Steps that are too small for float16 add up in the copy."""
    for size in (1.0, 0.01):
        gradients = [slope(t, size=size) for _ in range(6)]
        run(t, halves(t), gradients, 1e-3, {}, BY_HAND)
    tiny = [slope(t, size=1e-5) for _ in range(4)]
    run(t, (halves(t) * np.float16(1e-3)).astype(np.float16), tiny, 1e-3, {}, BY_HAND)
    small = [slope(t, size=1e-8) for _ in range(4)]
    run(t, (halves(t) * np.float16(1e-3)).astype(np.float16), small, 1.0, {}, BY_HAND)
    sign = float(t.random.choice([-1.0, 1.0]))
    half, g = np.full(2, sign, np.float16), np.full(2, sign, np.float32)
    rate, n = 2.0**-13, 1000
    given = f"{n} calls of master_step, half = {show(half.astype(float), bare=True)}, "
    given += f"gradient = {show(g.astype(float), bare=True)}, learning_rate = 2**-13"
    got = t.drive("many_master_steps", half, g, rate, n, given=given)
    t.close(
        got,
        (half.astype(float) - rate * n * g).astype(np.float16),
        what="half",
        rtol=2e-3,
        attempt="Each of these steps is an eighth of what float16 can tell near 1. What adds them?",
        mistakes=[Mistake("half_only", half, WRONG["half_only"])],
    )


@master_step.check(points=2)
def somebody_writes(t: Tester) -> None:
    """What somebody writes to half is where its master goes on, entry by entry."""
    for _ in range(3):
        gradients = [slope(t) for _ in range(4)]
        run(t, halves(t), gradients, 1e-3, {2: samples.numbers(t.random, (2,))}, BY_HAND)
        for place in (0, 1):
            one = np.full(2, np.nan)
            one[place] = float(samples.numbers(t.random, ()))
            run(t, halves(t), gradients, 3e-4, {3: one}, BY_HAND)
    half, rest = halves(t), [np.zeros(2, np.float32), slope(t), slope(t)]
    run(t, half, rest, 3e-4, {1: np.nextafter(half, np.float16(4))},
        "The next number of float16 was written. Is it what the master rounds to?")  # fmt: skip
    half[1] = -half[0] / 2
    run(t, half, rest, 3e-4, {1: half[::-1].copy()},
        "Two entries changed places. Each is compared with its own master.")  # fmt: skip
    gradients = [slope(t, 2, 3) for _ in range(4)]
    run(t, halves(t, 2, 3), gradients, 3e-4, {1: samples.numbers(t.random, (2, 3))}, BY_HAND)
    rest = [slope(t), np.zeros(2, np.float32), slope(t)]
    run(t, halves(t), rest, 3e-4, {1: samples.numbers(t.random, (2,))}, BY_HAND)
    run(t, halves(t), rest, 3e-4, {1: np.zeros(2)}, BY_HAND)
    more = [slope(t) for _ in range(5)]
    twice = {call: samples.numbers(t.random, (2,)) for call in (1, 3)}
    run(t, halves(t), more, 3e-4, twice, "Somebody wrote twice. Is it noticed before each step?")
    tiny = np.array([5.0, -9.0], np.float16) * np.float16(2**-24)
    for new in (np.zeros(2), tiny + np.float16(2**-24), -tiny):
        run(t, tiny, more, 1e-9, {1: new}, SMALL)
    for power in range(-3, 4):
        edge = np.array([2.0**power, -(2.0**power)], np.float16)
        toward = np.array([1.0, -1.0], np.float32)
        run(t, edge, [toward, toward, 0 * toward], 4e-4 * 2.0**power, {1: edge.copy()}, EDGE)


SMALL = "These numbers are tiny, and others were written. Ask for every difference, however small."
EDGE = (
    "Below a power of two the numbers of float16 lie twice as close as above. Is what was written "
    "what the master rounds to?"
)


@master_step.check(points=1)
def beyond_the_ends(t: Tester) -> None:
    """A parameter becomes inf or nan and comes back; another state begins anew."""
    half = np.array([60000.0, -60000.0], np.float16)
    out = np.array([-10000.0, 10000.0], np.float32) * np.float32(t.random.uniform(0.9, 1.1))
    back = (
        "The master was never infinite. What is its rounding to float16 while it is beyond 65504?"
    )
    run(t, half, [out, -out, out, -out / 2], 1.0, {}, back)
    for bad in (np.nan, np.inf):
        gradients = [np.array([bad, 1.0], np.float32), *(slope(t) for _ in range(2))]
        loaded = "A checkpoint was loaded over numbers that were lost. Is it noticed?"
        run(t, halves(t), gradients, 1e-3, {1: samples.numbers(t.random, (2,))}, loaded)
    three = [slope(t) for _ in range(3)]
    run(t, halves(t), three, 3e-4, {1: np.array([-np.inf, np.nan])}, BY_HAND)
    run(t, halves(t), three, 3e-4, {}, "A state that is {} has no master yet: whose was used?", [1])


def all_of_it(half, gradient, state, learning_rate, *, kind):
    """Make a wrong step."""
    half[...], state["master"] = step(half, gradient, state.get("master"), learning_rate, kind=kind)


for key, attempt in WRONG.items():
    master_step.mistake(key, attempt)(partial(all_of_it, kind=key))


@master_step.mistake("no_master")
def _(half, gradient, state, learning_rate):
    half[...], _ = step(half, gradient, None, learning_rate)


@master_step.mistake("returned")
def _(half, gradient, state, learning_rate):
    half[...], state["master"] = step(half, gradient, state.get("master"), learning_rate)
    return half


@master_step.mistake("not_in_place")
def _(half, gradient, state, learning_rate):
    _, state["master"] = step(half, gradient, state.get("master"), learning_rate)
    half = state["master"].astype(np.float16)


@master_step.mistake("changed_gradient")
def _(half, gradient, state, learning_rate):
    gradient *= learning_rate
    half[...], state["master"] = step(half, gradient, state.get("master"), 1.0)
