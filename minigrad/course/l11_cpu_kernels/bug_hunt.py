"""The bug hunt: a kernel that is compiled again and again."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from minigrad.course.diagnosis import Part, diagnose
from minigrad.course.l11_cpu_kernels import lesson
from minigrad.grader import samples
from minigrad.grader.compare import agree
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

smooth_all = lesson.exercise(
    "smooth_all",
    difficulty=2,
    minutes=15,
    returns="a list of smoothed signals",
    hints=(
        "`k_smooth.signatures` lists the types for which the kernel was compiled. Call smooth_all "
        "with weights of 2, 3 and 4 numbers: what does the list say?",
        "Numba's type of an array has its dtype, its number of axes and how it lies in memory. "
        "How many elements it has is no part of it. Of which other thing that Python has is the "
        "length a part of the type?",
        "A tuple of three floats and one of four have two types. np.array of the same numbers has "
        "one type, however many they are.",
    ),
)
PART = partial(Part, start="Which types does k_smooth.signatures list after a few calls?")
PARTS = {
    "line": PART(
        "the line that makes the argument whose type changes",
        "F",
        {
            "C": "C makes float64 of all signals: so two of their dtypes become one type.",
            "D": "D makes an array of another length each time. Is the length part of its type?",
            "E": "E makes a number, which is no argument. Which line makes one of it?",
            "G": "G is the call. Which line makes the argument whose type is new?",
        },
        known="ABCDEFGHI",
        form="a letter, A to I",
        general="That line makes no argument of k_smooth. Which lines do?",
    ),
    "differs": PART(
        "what makes its type another one",
        "length",
        {
            "dtype": "All weights are floats after F, and all signals float64 after C.",
            "layout": "A layout differs for some signals: that is two types. There are many more.",
            "value": "No value is part of these types. Try other weights, as many as before.",
        },
        known=("dtype", "layout", "length", "value"),
        form="one of dtype, layout, length, value",
        general="Which of the four is part of the type of this argument?",
    ),
}
WHICH_TYPES = {  # of the kernel's arguments, in their order
    "x": "Signals of two dtypes came. Which line makes one dtype of them?",
    "weights": "Which argument has a type of its own in each? What is part of that type?",
    "out": "All results are float64. Which line makes out, and what is its dtype taken from?",
}
EXAMPLE = '{"line": "A", "differs": "value"}'
diagnose(smooth_all, PARTS, EXAMPLE)


def smoothed(x: np.ndarray, weights: list[float], scale: float | None = None) -> np.ndarray:
    """Return the weighted means of each element and those before it.

    The weights are divided by a scale, the largest of them if none is given.
    """
    scale = scale or max(weights)
    x = x.astype(np.float64)
    total, used = np.zeros(x.size), np.zeros(x.size)
    with np.errstate(all="ignore"):
        for k, weight in enumerate([weight / scale for weight in weights[: x.size]]):
            total[k:] += weight * x[: x.size - k]
            used[k:] += weight
        return total / used


def by_all(x: np.ndarray, weights: list[float]) -> np.ndarray:
    """Return the weighted sums, divided by the sum of all weights, also at the beginning."""
    used = np.cumsum([weight / max(weights) for weight in weights])
    share = np.full(x.size, used[-1])
    share[: len(weights)] = used[: x.size]
    return smoothed(x, weights) * (share / used[-1])


def run(t: Tester, signals: list[np.ndarray], weights: list[list[float]]) -> dict[str, Any]:
    """Smooth signals; fail unless the results are right. Return what was compiled."""
    lengths = [len(w) for w in weights]
    sizes = [x.size for x in signals]
    given = f"smooth_all of signals of {sizes} elements, with {lengths} weights"
    if 0 < sum(lengths) <= 4:
        given += f": {weights}"
    seen = t.drive("smoothed", signals, weights, given=given)
    if isinstance(seen, dict) and "not_compiled" in seen:
        attempt = "The kernel may stay as it is. Which line of smooth_all is wrong?"
        t.fail("not_compiled", "k_smooth, compiled by Numba", seen["not_compiled"], attempt)
    results = seen["results"]
    if not isinstance(results, list) or len(results) != len(signals):
        attempt = "A list with a result for each signal, in their order."
        t.fail("type", f"a list of {len(signals)} arrays", show(results)[:120], attempt)
    if seen["changed"]:
        attempt = "The lists belong to the caller. Make new numbers of them, and leave them alone."
        t.fail("changed_input", "weights as they were", "they were written to", attempt)
    if seen["shared"]:
        attempt = "A later result is written over an earlier one. Who makes each signal's array?"
        t.fail("shared", "an array of its own for each result", "results share memory", attempt)
    if seen["overwritten"]:
        attempt = "Another call of smooth_all wrote over them. Which array outlives a call?"
        got = "after the next call they hold other numbers"
        t.fail("shared", "results that stay as they are", got, attempt)
    for k, (x, w, got) in enumerate(zip(signals, weights, results, strict=True)):
        t.given = f"{given}; signal {k} with "
        t.given += f"the weights {show(w)}" if len(w) <= 16 else f"its {len(w)} weights"
        if not np.isfinite(x).all() or np.abs(x).max(initial=0) > 1e9:
            t.given += f" is {show(x)}"
        added = max(lengths) - len(w)
        nobody = "Weights that nobody gave are in it. What was put behind those of this signal?"
        half = smoothed(x, w[: max(1, len(w) // 2)])
        text = "Some of the weights are missing. How many does this signal have?"
        mistakes = [
            Mistake("reversed", smoothed(x, w[::-1]), "The first weight is that of the element."),
            Mistake("cut", half, text),
            Mistake("cut", smoothed(x, w[:-1] or w), text),
            Mistake("cut", smoothed(x, w[:1]), text),
            Mistake("even", smoothed(x, [1.0] * len(w)), "All weights are one here. Are yours?"),
            Mistake("by_all", by_all(x, w),
                    "At the beginning there are fewer elements than weights. What divides there?"),
            Mistake("padded", smoothed(x, w + w[-1:] * added), nobody),
            Mistake("padded", smoothed(x, w + [1.0] * added), nobody),
        ]  # fmt: skip
        if min(w) < 1e-9 * max(w):
            without = smoothed(x, [one if one >= 1e-9 * max(w) else 0.0 for one in w])
            text = "A weight that is small beside another one counts, where its element is large."
            mistakes += [Mistake("left_out", without, text)]
        if not np.isfinite(x).all() and np.shape(got) == x.shape:
            text = (
                "nan and inf are in the means that have them, and in no others: 0 * inf is nan, "
                "and inf - inf. What is there beside the weights, or goes on from mean to mean?"
            )
            spread = np.where(np.isnan(got), np.nan, smoothed(x, w))
            mistakes += [Mistake("spread", spread, text)]
        for key, scale in (("overflows", 1.0), ("scaled_up", min(w))):
            overflows = smoothed(x, w, scale)
            if (np.isfinite(smoothed(x, w)) & ~np.isfinite(overflows)).any():
                text = (
                    "A weight times an element, or the sum of the weights, is more than a float "
                    "can be. By what were the weights divided, and how large were they then?"
                )
                mistakes += [Mistake(key, overflows, text)]
        attempt = "The results were right before. Which of the numbers reach the kernel now?"
        if len(w) > 16:
            attempt = f"This signal has {len(w)} weights. How many reach the kernel?"
        elif agree(got, smoothed(x, w), rtol=1e-5, atol=1e-6):
            attempt = "Only the first digits are right. What rounds the weights, or the result?"
        t.close(got, smoothed(x, w), attempt=attempt, mistakes=mistakes, rtol=1e-9, atol=1e-12)
        t.dtype(got, "float64", "Which line makes the result, and of what is its dtype?")
    t.given = given
    return seen


@smooth_all.check(points=2, only_with=("compiled_once",))  # they were right before
def right(t: Tester) -> None:
    """The results are as before: for any weights, strides and dtypes."""
    signals, weights = [], []
    base = samples.numbers(t.random, (9,), "float64")
    views = (*samples.views(base), base.astype(np.float32), base[:1], base[:0], base[:3])
    lengths = (3, 1, 4, 2, 1, 4)
    for x, n in zip(views, lengths, strict=True):
        signals.append(x)
        weights.append([float(w) for w in t.random.uniform(0.25, 4, n).round(2)])
    run(t, signals, weights)
    run(t, [base, base], [[3, 1, 2], [1, 2.5, 1]])
    long = samples.numbers(t.random, (300,), "float64")
    run(t, [long, base], [[float(w) for w in t.random.uniform(1, 2, 270).round(2)], [2, 1]])
    large = base.copy()
    large[0] = 1e20
    run(t, [large], [[2.0, 3e-15]])
    inf, nan, minus = base.copy(), base.copy(), base.astype(np.float32)
    inf[0], nan[2], minus[3] = np.inf, np.nan, -np.inf
    run(t, [inf, nan, minus], [[2.5, 2.5], [1.5], [3.5, 1.5, 1.0, 2.0]])
    run(t, [], [])


@smooth_all.check(points=3)
def compiled_once(t: Tester) -> None:
    """The kernel is compiled once for each layout of the signals; any weights give numbers."""
    base = samples.numbers(t.random, (12,), "float64")
    spaced = [*samples.views(base)][1]
    narrow = base.astype(np.float32)
    signals = [base, spaced, base[:7], narrow[:4], spaced[:5], narrow, base]
    lengths = (2, 3, 1, 5, 4, 6)
    weights = [[float(w) for w in t.random.uniform(0.5, 2, n).round(2)] for n in lengths]
    weights.append([3, 1, 2])  # whole numbers
    signals.append(base)
    weights.append([2, 2])  # also when divided by the largest
    seen = run(t, signals, weights)
    types = max(seen["types"], seen["compiled"], key=len)
    if not types:
        attempt = (
            "k_smooth itself does the work, compiled: not its py_func, which is plain Python, nor "
            "a new njit of it, which is compiled anew. Who computes the means now?"
        )
        t.fail("unused", "k_smooth called, and compiled for it", "never called", attempt)
    if len(types) > 2:
        arguments = dict(zip(WHICH_TYPES, zip(*types, strict=True), strict=True))
        name = next((name for name in ("weights", "out") if len({*arguments[name]}) > 1), "x")
        attempt = WHICH_TYPES[name]
        if name == "weights" and all(kind.startswith("array") for kind in arguments[name]):
            attempt = (
                "An array has no length in its type, but a dtype and a layout. Which line leaves "
                "one of them to the numbers that it gets?"
            )
        kinds = ", ".join(sorted({*arguments[name]})[:3])
        got = f"{len(types)}, for {name} of the types {kinds}"
        t.fail("compiled_again", "k_smooth compiled for 2 layouts, 2 times", got, attempt)
    run(t, [base], [[1.5e308, 1e308]])
    run(t, [base, base], [[1e-200, 3e-200], [1e200]])
    run(t, [base, 1e120 * base], [[10**20, 1], [1e108, 1e308]])
