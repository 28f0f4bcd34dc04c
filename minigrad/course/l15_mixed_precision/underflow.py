"""What float16 does to gradients: which become 0, lose bits, or become infinite."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from minigrad.course.l15_mixed_precision import lesson
from minigrad.grader import samples
from minigrad.grader.compare import agree
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

find_underflow = lesson.exercise(
    "find_underflow",
    difficulty=2,
    minutes=15,
    returns="a dict, name -> {'zero': n, 'subnormal': n, 'inf': n}",
    hints=(
        "Do not compute where float16 ends: do what it does. Multiply, round with astype, and then "
        "look at what came out, beside what went in.",
        "half = (g * scale).astype(np.float16). An entry got lost where half is 0 and "
        "g is not. np.sum of an array of bools counts the True ones.",
        "zero: (half == 0) & (g != 0). subnormal: the size of half is above 0 and below 2**-14. "
        "inf: np.isinf(half). np.sum of each, in a dict for each name.",
    ),
)
KINDS = ("zero", "subnormal", "inf")
SMALLEST, NORMAL, LARGEST = 2.0**-24, 2.0**-14, 65504.0


def counts(gradients, scale=1.0, *, kind=""):
    """Return the counts, right or with a common mistake."""
    found, before = {}, dict.fromkeys(KINDS, 0)
    for name, g in gradients.items():
        with np.errstate(all="ignore"):
            wide = g * np.float32({"unscaled": 1.0, "divided": 1 / scale}.get(kind, scale))
            half = wide.astype(np.float16)
            if kind == "scaled_late":
                half = (g.astype(np.float16) * np.float16(scale)).astype(np.float16)
            elif kind == "rounded_first":
                half = (g.astype(np.float16) * np.float32(scale)).astype(np.float16)
            elif kind == "half_scale":
                half = (g * np.float16(scale)).astype(np.float16)
            elif kind == "in_float64":
                half = (g * np.float64(scale)).astype(np.float16)
            elif kind == "by_inverse":
                half = (g / np.float32(1 / scale)).astype(np.float16)
        size = np.abs(half)
        if kind == "signed":
            size = half
        zero = (half == 0) & (g != 0)
        if kind == "zeros_too":
            zero = half == 0
        elif kind in ("smallest", "not_rounded", "exponents"):
            zero = (np.abs(wide) < SMALLEST) & (g != 0)
        elif kind == "minus_zero":
            zero &= ~np.signbit(half)
        elif kind == "flushed":
            zero = (np.abs(wide) < NORMAL) & (g != 0)
        subnormal = (size > 0) & (size < NORMAL)
        if kind == "subnormal_zero":
            subnormal = (size < NORMAL) & (g != 0)
        elif kind == "subnormal_zeros":
            subnormal = size < NORMAL
        elif kind == "normal_too":
            subnormal = (size > 0) & (size <= NORMAL)
        elif kind == "up_to_twice":
            subnormal = (size > 0) & (size < 2 * NORMAL)
        elif kind == "exact_out":
            subnormal &= half != wide
        elif kind == "smallest_out":
            subnormal = (size > SMALLEST) & (size < NORMAL)
        elif kind == "exponents":
            subnormal = (np.abs(wide) >= SMALLEST) & (np.abs(wide) < NORMAL)
        inf = np.isinf(half)
        if kind in ("largest", "not_rounded"):
            inf = np.abs(wide) > LARGEST
        elif kind == "exponents":
            inf = np.abs(wide) >= 2.0**16
        elif kind == "plus_inf":
            inf = half == np.inf
        found[name] = {
            key: int(np.sum(one)) for key, one in zip(KINDS, (zero, subnormal, inf), strict=True)
        }
        if kind == "share":
            found[name] = {key: n / max(1, g.size) for key, n in found[name].items()}
        elif kind == "whether":
            found[name] = {key: int(n > 0) for key, n in found[name].items()}
        elif kind == "goes_on":
            found[name] = {key: n + before[key] for key, n in found[name].items()}
            before = found[name]
        elif kind == "one_for_all":
            found = dict.fromkeys(found, found[name])
    if kind == "from_next":
        after = None
        for name, g in reversed(gradients.items()):
            if g.size:
                after = counts({name: np.ravel(g)[:1]}, scale)[name]
            found[name] = after if after and not g.size else found[name]
    if kind == "all_together":
        found = {name: {key: sum(one[key] for one in found.values()) for key in KINDS}
                 for name in found}  # fmt: skip
    return found


TO_NEAREST = (
    "float16 rounds to the nearest: what is a little below its smallest number, or above its "
    "largest, may still become that number. Round, then look."
)
ROUNDED_FIRST = "Rounded first, scaled afterwards: what has become 0 stays 0. In which order?"
LOWER_END = "What became 0 is counted as subnormal, too: where is the lower end?"
for key, attempt in {
    "zeros_too": "Entries that are 0 already lose nothing. Are they among yours?",
    "signed": "A gradient of -1e-6 is as small as one of 1e-6. What does your comparison say?",
    "smallest": TO_NEAREST,
    "largest": TO_NEAREST,
    "flushed": "Below 2**-14 float16 has subnormal numbers, down to 2**-24: they are not 0.",
    "subnormal_zero": LOWER_END,
    "plus_inf": "Gradients may be negative, too: what is -1e5 in float16?",
    "unscaled": "These are the counts for scale 1. Where does your scale come in?",
    "divided": "The loss is multiplied by scale. And its gradients?",
    "scaled_late": ROUNDED_FIRST,
    "share": "These are shares. The docstring wants how many.",
    "half_scale": "In float16, a scale of 65536 is inf. In which type is the product computed?",
    "smallest_out": "2**-24, the smallest number of float16, is above 0. What drops it?",
    "in_float64": "These products lie just beside the middle between two numbers of float16. In "
    "which type does the docstring compute them, and in which do you?",
    "by_inverse": "Divided by 1 / scale, which is rounded, too. The docstring multiplies by scale.",
    "minus_zero": "-1e-9 becomes -0.0 in float16, and that is 0. Does your test know it?",
    "up_to_twice": "Numbers from 2**-14 on are normal, although up to 2**-13 they lie no further "
    "apart than the subnormal ones. Which of the two does the docstring ask for?",
    "exact_out": "A subnormal number counts as such, also where nothing of it was lost.",
    "normal_too": "2**-14 itself is a normal number. Which comparison leaves it out?",
    "goes_on": "The counts of one name go on in the next. Where do they begin?",
    "one_for_all": "Every name has the counts of the last one: is it one dict under all names?",
    "whether": "That says whether there are any. How many are there?",
    "from_next": "This one has no entries. Whose are counted here?",
    "all_together": "These are the counts of all gradients together. Each name has its own.",
}.items():
    find_underflow.mistake(key, attempt)(partial(counts, kind=key))
find_underflow.mistake("smallest", TO_NEAREST)(partial(counts, kind="not_rounded"))
find_underflow.mistake("smallest", TO_NEAREST)(partial(counts, kind="exponents"))
find_underflow.mistake("scaled_late", ROUNDED_FIRST)(partial(counts, kind="rounded_first"))
find_underflow.mistake("subnormal_zero", LOWER_END)(partial(counts, kind="subnormal_zeros"))


@find_underflow.mistake("form")
def _(gradients, scale=1.0):
    return {name: tuple(one.values()) for name, one in counts(gradients, scale).items()}


@find_underflow.mistake("form")
def _(gradients, scale=1.0):
    return counts({"": np.concatenate([g.ravel() for g in gradients.values()])}, scale)[""]


@find_underflow.mistake("dropped")
def _(gradients, scale=1.0):
    return {name: one for name, one in counts(gradients, scale).items() if any(one.values())}


@find_underflow.mistake("changed_input")
def _(gradients, scale=1.0):
    for g in gradients.values():
        g *= np.float32(scale)
    return counts(gradients)


def check_counts(t: Tester, gradients: dict, *scale: float, attempt: str) -> None:
    """Check the counts of one call."""
    got = t.call("find_underflow", gradients, *scale)
    check_answer(t, got, gradients, *scale, attempt=attempt)


def check_answer(t: Tester, got: Any, gradients: dict, *scale: float, attempt: str) -> None:
    """Check the counts that came back."""
    if all(g.size <= 8 for g in gradients.values()):
        rows = ", ".join(f"{name!r}: {_entries(g)}" for name, g in gradients.items())
        more = "".join(f", {number:g}" for number in scale)
        t.given = f"find_underflow({{{rows}}}{more}), arrays of float32"
    wanted = counts(gradients, *scale)
    if got is None:
        t.none(show(wanted))
    form = "a dict, name -> {'zero': n, 'subnormal': n, 'inf': n}"
    if not isinstance(got, dict):
        t.fail("form", form, show(got), "One dict, with a dict for each name.")
    names = [name for name in gradients if name not in got]
    if names and not any(key in got for key in KINDS):
        attempt = "An entry for each of the gradients, also where all three counts are 0."
        t.fail("dropped", f"{form}, for {', '.join(gradients)}", f"no {names[0]!r}", attempt)
    known = cache(lambda: [*t.mistakes(gradients, *scale)])  # a right answer needs none of them

    def mistakes(name: str, key: str) -> Iterator[Mistake]:
        for m in known():
            yield Mistake(m.key, m.value[name][key], m.attempt)

    for place, name in enumerate(gradients):
        one = got.get(name)
        if not isinstance(one, dict) or set(one) != set(KINDS):
            said = f"{name!r}: {show(one)}" if name in got else show(got)
            t.fail("form", form, said, "Three counts for each name, under these three keys.")
        rest = [later for later in [*gradients][place:] if any(wanted[later].values())]
        ended = place > 0 and len(rest) > 1 and all(is_nothing(got.get(later)) for later in rest)
        for key in KINDS:
            t.close(
                one[key],
                wanted[name][key],
                rtol=0,
                atol=0,
                what=f"{name!r}: {key!r}",
                mistakes=mistakes(name, key),
                attempt=ENDED if ended else attempt,
            )
    if extra := [name for name in got if name not in gradients]:
        t.fail("form", f"the names {', '.join(gradients)}", f"{extra[0]!r}", "Whose is that?")


ENDED = "From this name on all counts are 0. Where does your loop over the names end?"


def is_nothing(counts: Any) -> bool:
    """Return whether all counts of a name are 0."""
    return isinstance(counts, dict) and all(agree(n, 0) for n in counts.values())


def _entries(g: np.ndarray) -> str:
    """Return entries with the digits that tell which side of a limit they are on."""
    text = np.array2string(g, separator=", ", formatter={"float": lambda x: f"{x:.7g}"})
    return " ".join(text.split())


ROUND = "Round each entry times scale to float16, by hand: what is it then?"


def spread(t: Tester, shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
    """Return float32 numbers of both signs whose exponents lie between low and high."""
    size = 2.0 ** t.random.uniform(low, high, shape)
    sign = np.where(t.fixed.random(shape) < 0.5, -1.0, 1.0)
    return np.asarray(sign * size).astype(np.float32)


@find_underflow.check(points=2)
def small_and_large(t: Tester) -> None:
    """It counts zeros, subnormal numbers and infinities for each name."""
    for n in (3, 6):
        some = {
            "w": np.concatenate([spread(t, (n,), -30, -26), spread(t, (2,), -22, -16)]),
            "b": np.concatenate([spread(t, (2,), -12, 3), spread(t, (n,), 17, 20)]),
            "c": spread(t, (2,), -5, 5),
        }
        check_counts(t, some, attempt=ROUND)
    some["b"] = np.concatenate([np.zeros(2, np.float32), -np.zeros(1, np.float32), some["w"]])
    check_counts(t, some, attempt=ROUND)
    check_counts(t, {}, attempt=ROUND)
    every: dict[str, Any] = {}
    for k, x in enumerate(samples.arrays(t.random, dtypes=("float32",))):
        size = np.where(t.fixed.random(x.shape) < 0.5, 1e-8, 3e4).astype(np.float32)
        every[f"w{k}"] = np.asarray(x * size)  # without axes, a product is no array
        check_counts(t, {"w": every[f"w{k}"]}, attempt=ROUND)
    check_counts(t, every, attempt=ROUND)
    check_counts(t, {"none": np.zeros((0, 3), np.float32), **some}, attempt=ROUND)
    few = np.repeat(np.array([1e-9, -1e-6, 1e6], np.float32), [29, 57, 14])
    check_counts(t, {"w": t.random.permutation(few)}, attempt=MANY)
    for n in (4099, 67001):  # more than float16, and more than uint16 can count
        many = np.repeat(np.array([-1e-9, 1e-6, -1e6, 1.0], np.float32), [n, 5003, 3003, 1001])
        check_counts(t, {"w": t.random.permutation(many)}, attempt=MANY)


AGAIN = (
    "find_underflow, with one array under two names",
    "The first call was right. What of it is kept for the next one, and told apart by what?",
)
MANY = "Count whole numbers: in which type do you count, and does each entry count once?"


@find_underflow.check(points=1)
def with_a_scale(t: Tester) -> None:
    """The scale comes before the rounding."""
    for scale in (2.0**10, 2.0**16, 0.25, 1000.0):
        some = {"w": spread(t, (40,), -40, -10), "b": spread(t, (30,), -15, 12)}
        for name, g in some.items():
            for few in np.split(g, range(5, g.size, 5)):  # so few that they can be done by hand
                one = {name: np.concatenate([few, np.zeros(1, np.float32)])}
                check_counts(t, one, scale, attempt=ROUND)
        check_counts(t, some, scale, attempt=ROUND)
    tiny = np.array([2.0**-149, 0.0, -(2.0**-149)]).astype(np.float32)
    gone = "Some of these products are 0 in float32 already. Which entries were not 0 before?"
    check_counts(t, {"w": tiny}, 0.25, attempt=gone)
    huge = np.array([2.0**100, 1.0, -(2.0**127), -0.5]).astype(np.float32)
    gone = "Some of these products are inf in float32 already. What are they in float16?"
    check_counts(t, {"w": huge}, 2.0**30, attempt=gone)
    few = np.repeat(np.array([1e-9, -1e-6, 1e6], np.float32), [29, 57, 14])
    names, scale, factor = ["w", "w again"], 2.0**12, np.float32(2.0**-9)
    first, second, third = t.drive("again", few.copy(), names, scale, factor, given=AGAIN[0])
    t.given = AGAIN[0]
    each = "Each name has its counts, also where arrays are the same."
    check_answer(t, first, dict.fromkeys(names, few), attempt=each)
    t.given = f"{AGAIN[0]}; and again, with scale {scale:g}"
    check_answer(t, second, dict.fromkeys(names, few), scale, attempt=AGAIN[1])
    t.given = f"{AGAIN[0]}; and again, with other numbers in the array"
    check_answer(t, third, dict.fromkeys(names, few * factor), attempt=AGAIN[1])


@find_underflow.check(points=1)
def at_the_limits(t: Tester) -> None:
    """At the ends of float16 it is rounding that decides."""
    near = 2.0**-25 * np.array([0.97, 1.0, 1.05, 1.6, -0.96, -1.0, -1.1])
    edge = 2.0**-14 * np.array([0.99, 0.9999, 1.0, 1.01, -0.98, -0.99999, -1.0])
    exact = np.array([1.0, -2.0, 5.0, -(2.0**9), 1023.0, 1024.0]) * 2.0**-24
    top = np.array([65510.0, 65519.0, 65520.0, -65504.0, -65519.5, -65520.0, -65521.0, -65530.0])
    for scale in (1.0, 2.0 ** int(t.random.integers(1, 12))):
        for values in (near, edge, exact, top):
            check_counts(t, {"w": (values / scale).astype(np.float32)}, scale, attempt=TO_NEAREST)
    for scale in range(3, 40, 2):
        check_counts(t, {"w": ties(float(scale))}, float(scale), attempt=TO_NEAREST)


def ties(scale: float) -> np.ndarray:
    """Return entries whose product with scale, in float32, is half way between float16 numbers."""
    halfway = np.array([2.0**-25, 2.0**-14 - 2.0**-25, 65520.0])
    g = (halfway / scale).astype(np.float32)
    return np.concatenate([g, -g])
