"""The bug hunt: gradients are clipped while they are still scaled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial

import numpy as np

from minigrad.course.diagnosis import named_place, not_it
from minigrad.course.l15_mixed_precision import lesson
from minigrad.grader import samples
from minigrad.grader.compare import agree
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

train_clipped = lesson.exercise(
    "train_clipped",
    difficulty=3,
    minutes=15,
    returns="an array: the weights after each step",
    hints=(
        "Run the stages by hand, one after the other, on one slope, with scale 1 and then with "
        "scale 1024. What should depend on the scale, and what should not?",
        "Print the norm of s['g'] after each stage, and ask of each stage that uses a number of s: "
        "is that number meant for gradients of the loss, or of the scaled loss?",
        "max_norm is meant for the gradients of the loss itself. Which stage has to be done before "
        "s['g'] holds these?",
    ),
)
STAGES = ("backward", "clip", "unscale", "look", "move", "adapt")
CULPRIT = 1
NUDGES = {
    0: "backward is first: nothing else has a gradient to work on before it.",
    2: "unscale gives what it should: s['g'] / scale. Is it too early, or is another one?",
    3: "look finds every inf and nan, before or after a division: 0 of 1000 are missed.",
    4: "move waits for all the others that change s['g']. Print what it gets.",
    5: "adapt is last: the scale stays the same from backward to move, as it should.",
}


@train_clipped.check(points=2)
def diagnosis(t: Tester) -> None:
    """BUG names the stage that is called too early."""
    start = "Run the stages by hand with two scales. From which one on do they differ?"
    place = named_place(t, "stage", len(STAGES), "STAGES", start)
    if place != CULPRIT:
        not_it(
            t,
            "the stage that is called before s['g'] is what it needs",
            f"stage {place}, {STAGES[place]}",
            NUDGES[place],
        )


def clipped(g, max_norm, dtype="float64", more=0.0):
    """Return a gradient, shortened to max_norm if it is longer."""
    norm = float(np.sqrt(np.sum(g.astype(dtype) ** 2)))
    return g * np.float32(max_norm / (norm + more)) if norm > max_norm else g


def path_of(w, slopes, scale, max_norm=1.0, learning_rate=0.1, *, kind=""):
    """Return the weights after each step, right or with a common mistake."""
    path, first, was_finite = [], scale, True
    with np.errstate(all="ignore"):
        for slope in slopes:
            g = (slope * np.float32(scale)).astype(np.float16).astype(np.float32)
            is_long = kind == "limit_alone" and np.linalg.norm(g) > max_norm * scale
            if kind in ("too_early", "twice") or is_long:
                g = clipped(g, max_norm)
            if kind == "next_power":
                g = g / np.float32(2.0 ** np.ceil(np.log2(scale)))
            elif kind != "never_unscaled":
                g = g / np.float32(first if kind == "first_scale" else scale)
            if kind == "unscaled_twice":
                g = g / np.float32(scale)
            whole, is_finite = g, bool(np.isfinite(g).all())
            if kind in ("entries", "entries_first"):
                g = np.clip(g, -max_norm, max_norm)
                is_finite |= kind == "entries_first" and not np.isnan(g).any()
            elif kind == "rescaled":
                g = g * np.float32(max_norm / np.linalg.norm(g))
            elif kind == "half_norm":
                g = clipped(g, max_norm, "float16")
            elif kind == "padded":
                g = clipped(g, max_norm, more=1e-6)
            elif kind == "first_limit":
                g = clipped(g, max_norm * first / scale)
            elif kind not in ("too_early", "limit_alone", "no_clipping"):
                g = clipped(g, max_norm)
            if kind == "always":
                is_finite = True
            elif kind == "sum_looked_at":
                is_finite = bool(np.isfinite(np.sum(g.astype(np.float16))))
            if kind == "finite_entries":
                is_finite, g = True, clipped(np.where(np.isfinite(whole), whole, 0), max_norm)
            if kind == "never" and np.sqrt(np.sum(slope.astype(np.float64) ** 2)) > max_norm:
                is_finite = True
                g = 0 * g
            if kind == "one_late" and not was_finite:
                scale = scale / 2
            was_finite = is_finite
            if is_finite:
                w = w - np.float32(learning_rate) * g
                scale = scale * 2 if kind == "grows" else scale
            elif kind not in ("same_scale", "one_late"):
                scale = max(scale / 2, 1.0) if kind == "not_below_1" else scale / 2
            path.append(w.copy())
    return np.array(path)


ENTRIES = "Each entry was cut by itself. clip shortens the whole gradient, as it did."
TOO_EARLY = (
    "Each gradient is max_norm / scale long. What is clipped here: gradients of the loss, or of "
    "the scaled loss?"
)
AS_LONG = (
    "However short the slope is, the step is as long as max_norm allows: is it clipped only if it "
    "is longer, divided by the scale, and moved by the rate that was given?"
)
for key, attempt in {
    "too_early": TOO_EARLY,
    "no_clipping": "Nothing is clipped any more: this slope is longer than max_norm.",
    "entries": ENTRIES,
    "never_unscaled": AS_LONG,
    "limit_alone": "Where it is clipped, it is max_norm / scale long. Which of the two norms in "
    "clip is that of a scaled gradient?",
    "first_limit": "The scale was halved, and what is clipped is too long now. Which scale is in "
    "your limit?",
    "one_late": "The scale is halved one step late. What does adapt go by, and is that of this "
    "step?",
    "unscaled_twice": "Divided by the scale twice.",
    "always": "Here a gradient was inf, and the step was made. Which stage is to prevent it?",
    "never": "A gradient that is too long is to be shortened, and the step made.",
    "grows": "After a step that is made the scale stays as it was. Which stage changes it?",
    "first_scale": "Divided by the scale at first. By which one was the slope multiplied here?",
    "half_norm": "In float16 the squares of large entries are inf, and those of small ones 0. In "
    "which type is the norm taken?",
    "padded": "Shorter than max_norm, and the more so the smaller max_norm is. What is added to "
    "the norm?",
    "same_scale": "A scaled gradient was inf: the step is left out, the scale is halved, and the "
    "next steps may fit again.",
    "finite_entries": "One entry was inf, and the others moved. Is the step left out, or a part?",
    "not_below_1": "The scale is halved here, also where that makes it less than 1.",
    "next_power": "By which number was the slope multiplied, and by which is it divided? The scale "
    "need not be a power of two.",
    "sum_looked_at": "No entry is inf here. Each entry is asked, not a sum of them.",
}.items():
    train_clipped.mistake(key, attempt)(partial(path_of, kind=key))


train_clipped.mistake("entries", ENTRIES)(partial(path_of, kind="entries_first"))
train_clipped.mistake("too_early", TOO_EARLY)(partial(path_of, kind="twice"))
train_clipped.mistake("never_unscaled", AS_LONG)(partial(path_of, kind="rescaled"))


def check_path(t: Tester, w: np.ndarray, slopes: np.ndarray, *numbers: float, why: str) -> None:
    """Check the weights after each step; the first wrong ones are shown."""
    got = t.call("train_clipped", w, slopes, *numbers)
    rows = ", then ".join(show(one.astype(float), bare=True) for one in slopes[:3])
    more = ", …" if len(slopes) > 3 else ""
    names = ("scale", "max_norm", "learning_rate")
    t.given = f"train_clipped(w, slopes, …), w = {show(w.astype(float), bare=True)}, slopes {rows}"
    t.given += more + "".join(f", {n} {x:g}" for n, x in zip(names, numbers, strict=False))
    right = path_of(w, slopes, *numbers)
    if isinstance(got, np.ndarray) and got.shape[1:] == w.shape and len(got) < len(right):
        said = f"{len(got)} rows"
        each = "A step that is left out has its weights, too: those that were there before."
        t.fail("rows", f"{len(right)} rows, one for each step", said, each)
    if not isinstance(got, np.ndarray) or got.shape != right.shape:
        t.close(got, right, attempt=why)
    t.dtype(got, np.float32, "Which step makes the weights wider than they were?")
    is_one = len(got) > 1 and (got == got[-1]).all()
    if is_one and not agree(got[-1], right[0], rtol=0, atol=1e-3):
        last = "Is one array appended in every step, and then written to? Append a copy."
        t.fail("one_row", "the weights after each step", f"{show(got[0])}, in every row", last)
    known = cache(lambda: [*t.mistakes(w, slopes, *numbers)])  # a right answer needs none of them

    def at(k: int) -> Iterator[Mistake]:
        for one in known():
            yield replace(one, value=one.value[k])

    for k, row in enumerate(right):
        what = f"w after step {k + 1}"
        t.close(got[k], row, rtol=2e-3, atol=1e-6, mistakes=at(k), what=what, attempt=why)


@train_clipped.check(points=3)
def repair(t: Tester) -> None:
    """A step is that of float32, clipped, for every scale; one with an inf is left out."""
    by_hand = "Compute the first step in float32: the slope, clipped to max_norm, times the rate."
    zero = np.zeros(2, np.float32)
    for scale in (512.0, 16.0, 2048.0):
        for n in (2, 3):
            long = samples.numbers(t.random, (1, n), "float32", low=1.5, high=6.0)
            check_path(t, np.zeros(n, np.float32), long, scale, 1.0, 0.5, why=by_hand)
        short = samples.numbers(t.random, (1, 2), "float32", low=0.1, high=0.6)
        check_path(t, zero, short, scale, 1.0, 0.5, why=by_hand)
        mixed = samples.numbers(t.random, (4, 2), "float32", low=-3.0, high=3.0)
        mixed[1] *= 0.05
        w = samples.numbers(t.random, (2,), "float32")
        check_path(t, w, mixed, scale, 0.8, 0.25, why=by_hand)
        check_path(t, w, mixed, scale, why=by_hand)
    large = samples.numbers(t.random, (5, 2), "float32", low=1.5, high=4.0)
    why = "Where the scaled slope is beyond 65504, nothing moves and the scale is halved."
    check_path(t, zero, large, 2.0**17, 1.0, 0.5, why=why)
    check_path(t, zero, np.float32(1e-3) * large, 2.0**26, 0.001, 0.5, why=why)
    check_path(t, zero, np.float32(1e-6) * large, 2.0**30, 1e-6, 2e5, why=by_hand)
    check_path(t, zero, 100 * large, 16.0, 1.0, 0.5, why=by_hand)
    check_path(t, zero, np.float32(1e5) * large, 2.0, 1.0, 0.5, why=why)
    for scale in (48.0, 1000.0):  # no powers of two
        check_path(t, zero, np.float32(0.1) * large, scale, 1.0, 0.5, why=by_hand)
    for size in (45000, -40000):  # finite, and their sum is not
        check_path(t, zero, np.full((1, 2), size, np.float32), 1.0, 1e9, 1e-5, why=by_hand)
    one_is_inf = np.tile(np.array([[3.0, 0.001]], np.float32), (4, 1)) * large[0, 0]
    check_path(t, zero, one_is_inf, 2.0**15, 1.0, 0.5, why=why)
