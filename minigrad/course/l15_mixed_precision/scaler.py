"""A scaler of losses: what it does to gradients, which steps it leaves out, how the scale moves."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minigrad.course.l15_mixed_precision import lesson
from minigrad.grader import samples
from minigrad.grader.compare import agree
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester
from minigrad.grader.wire import laid_out

GradScaler = lesson.exercise(
    "GradScaler",
    difficulty=4,
    minutes=30,
    returns="scale returns the scaled loss; unscale_, step and update return None",
    hints=(
        "Write the four methods for one optimizer whose gradients are finite: multiply, divide, "
        "step, count. Then ask of each what an inf changes, and who has to remember it until when.",
        "`found` is the memory of an iteration: unscale_ writes into it, step asks it (and calls "
        "unscale_ where this optimizer is not in it), update looks at all of it and empties it.",
        "unscale_: raise if optimizer in self.found; p.grad /= self.factor for each gradient that "
        "is not None; self.found[optimizer] = not all of them np.isfinite. update: any(found) -> "
        "backoff and tracker 0; else count up, and at growth_interval grow and count from 0.",
    ),
)
BAD = (np.inf, np.nan, -np.inf)
Gradients = list[Any]


@dataclass
class Round:
    """One iteration: the gradients of each optimizer, and what the script does.

    unscale: for each optimizer, how often unscale_ is called before step.
    limit: to which size the script cuts the entries of all gradients before step; None: it doesn't.
    """

    gradients: list[Gradients]
    unscale: Sequence[int] = (0,)
    loss: Any = 1.0
    limit: float | None = None

    def __post_init__(self) -> None:
        n = len(self.gradients)
        self.unscale = [*self.unscale, *[0] * n][:n]


@dataclass
class Model:
    """What the scale and the tracker do, right or with a common mistake."""

    init_scale: float = 65536.0
    growth_factor: float = 2.0
    backoff_factor: float = 0.5
    growth_interval: int = 2000
    kind: str = ""
    tracker: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.scale = self.init_scale

    def update(self, bad: int, optimizers: int = 1) -> None:
        """End an iteration in which `bad` optimizers had a gradient that was not finite."""
        kind = self.kind
        if bad and kind != "no_backoff":
            times = bad if kind == "backs_off_twice" else 1
            by = 1 / self.backoff_factor if kind == "wrong_way" else self.backoff_factor
            self.scale *= by**times
            if kind != "tracker_kept":
                self.tracker = 0
            return
        if bad:
            self.tracker = 0
            return
        self.tracker += optimizers if kind == "counts_optimizers" else 1
        if kind == "tracker_left":
            self.scale *= self.growth_factor if self.tracker % self.growth_interval == 0 else 1.0
            return
        early = {"grows_early": -1, "grows_late": 1}.get(kind, 0)
        may_pass = kind in ("tracker_runs_on", "counts_optimizers")
        is_past = may_pass and self.tracker > self.growth_interval
        if self.tracker == self.growth_interval + early or is_past:
            self.scale *= 1.0 if kind == "no_growth" else self.growth_factor
            self.tracker = self.tracker if kind == "tracker_runs_on" else 0


WRONG = {
    "no_backoff": "A gradient was not finite, and the scale stays. What does the next one become?",
    "wrong_way": "The scaled gradients were too large. Which way must the scale go?",
    "backs_off_twice": "However many gradients were not finite: the scale goes down once.",
    "no_growth": "The scale never grows. What happens after growth_interval good iterations?",
    "grows_early": "It grows one iteration too early: count those that were good.",
    "grows_late": "It grows one iteration too late: is this iteration counted before you compare?",
    "tracker_kept": "Good iterations *in a row*: what does one with an inf do to the count?",
    "counts_optimizers": "An iteration counts once, however many optimizers it has, or none.",
    "tracker_left": "It grows when it should, and then growth_tracker is to be 0 again.",
    "tracker_runs_on": "After growing, the count begins anew. Yours goes on, and grows each time.",
}
SMALL = {"init_scale": 64.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 3}


def is_bad(gradients: Gradients) -> bool:
    """Return whether one of the gradients is not finite."""
    return any(g is not None and not np.isfinite(g).all() for g in gradients)


def told(rounds: list[Round], upto: int) -> str:
    """Return the iterations so far in words: the last one with its gradients."""
    now = rounds[upto]
    one = "; and ".join(
        ", ".join("None" if g is None else show(g, bare=True) for g in gradients) or "(none)"
        for gradients in now.gradients
    )
    if not now.gradients:
        many = f"{upto + 1} iterations" if upto else "one iteration"
        return f"{many} without an optimizer: scale(loss), then update()"
    if now.limit is not None:
        one += f", unscaled by unscale_ and then cut by np.clip to {-now.limit:g} … {now.limit:g}"
    if upto:
        past = "".join("i" if any(map(is_bad, r.gradients)) else "." for r in rounds[:upto])
        before = f"{upto} iterations before ({past[-30:]}; i: with inf or nan)"
        return f"{before}, then one with the scaled gradients {one}"
    return f"one iteration with the scaled gradients {one}"


def copy_of(g: Any) -> Any:
    """Return a copy of a gradient in the same layout: the learner's code writes into it."""
    if g is None:
        return None
    return laid_out(g, [step // g.itemsize for step in g.strides])


def run(t: Tester, rounds: list[Round], numbers: dict[str, Any]) -> tuple[list[dict], str]:
    """Run the iterations; return the driver's rows, and how the scaler was made."""
    made = f"GradScaler({', '.join(f'{key}={value:g}' for key, value in numbers.items())})"
    plain = [
        {**vars(r), "gradients": [[*map(copy_of, one)] for one in r.gradients]} for r in rounds
    ]
    given = f"{made}, {told(rounds, len(rounds) - 1)}"
    return t.drive("iterate", numbers, plain, given=given), made


def check(t: Tester, rounds: list[Round], **numbers: Any) -> None:
    """Run iterations and check all that can be seen of them."""
    rows, made = run(t, rounds, numbers)
    right = Model(**numbers)
    wrong = {kind: Model(**numbers, kind=kind) for kind in WRONG}
    for k, (now, row) in enumerate(zip(rounds, rows, strict=True)):
        t.given = f"{made}, {told(rounds, k)}"
        t.about = "GradScaler.scale"
        check_loss(t, row, now.loss, right.scale)
        for place in range(len(now.gradients)):
            name = f" of optimizer {place + 1}" if len(now.gradients) > 1 else ""
            check_gradients(t, row["optimizers"][place], now, place, right.scale, name, k)
        check_another(t, row["another"], Model(**numbers).scale)
        t.about = "GradScaler.update"
        bad = [is_bad(gradients) for gradients in now.gradients]
        before = right.scale
        for one in (right, *wrong.values()):
            one.update(sum(bad), len(bad))
        numbers_now = (("get_scale()", "scale"), ("growth_tracker", "tracker"))
        why = by_hand(row["scale"], before, right.scale, len(bad))
        for what, key in numbers_now:
            mistakes = [
                Mistake(kind, getattr(model, key), WRONG[kind]) for kind, model in wrong.items()
            ]
            if key == "tracker" and any(bad):
                why = "After an inf or nan no good iteration is counted yet. How many is that?"
            t.close(
                row[key],
                getattr(right, key),
                what=f"{what} after update()",
                rtol=1e-12,
                mistakes=mistakes,
                attempt=why,
            )
        if row["found"] != 0:
            t.fail(
                "found_kept",
                "found = {} after update()",
                f"found with {row['found']} entries" if row["found"] else "found is no dict",
                "An iteration has ended. What of it may the next one still see?",
            )
        for method, returned in row["returned"]:
            if returned is None:
                continue
            t.about = f"GradScaler.{method}"
            t.fail(
                "returned",
                f"None from {method}",
                show(returned),
                "What they do is seen in the gradients, the optimizer and the scale.",
            )


FEWER = "The loss came with 16 digits and left with 7. Which step makes a float32 of it?"


def by_hand(got: Any, before: float, after: float, n: int) -> str:
    """Return the Try line for a scale or tracker after update(), where no known mistake fits."""
    if not isinstance(got, float | int | np.number) or got == after:
        return "Go through the iterations by hand, with the two rules of update()."
    if got == np.floor(after) < after:
        return "The scale is a float: behind its point nothing is left. Which step cuts that off?"
    if got == before and after < before:
        whose = "whose gradients does update() ask about, and " if n > 1 else ""
        return f"A gradient was not finite, and the scale stays: {whose}what holds it there?"
    if got == before:
        return (
            "growth_interval good iterations in a row are reached, and the scale stays. What is "
            "growth_tracker compared with?"
        )
    if after == before:
        return "Nothing was due here, and the scale moved. Which line of update() moves it?"
    name = "backoff_factor" if after < before else "growth_factor"
    return f"It moves when it should, and not by {name}. Which other number has a part in it?"


def check_another(t: Tester, got: dict, scale: float) -> None:
    """Check a GradScaler that was made while another one is in use: it begins anew."""
    shared = (
        "Two scalers know nothing of each other. What belongs to the class, to the file, to a "
        "default argument or to the optimizer, and so to both?"
    )
    wanted = {"get_scale()": scale, "growth_tracker": 0, "len(found)": 0}
    for what, value in wanted.items():
        if not agree(got[what], value):
            t.about = "GradScaler"
            t.fail(
                "shared",
                f"{what} = {value:g} of another GradScaler, which was made before this update()",
                f"{what} = {show(got[what])}",
                shared,
            )
    if got["raised"] is not None:
        t.about = "GradScaler.unscale_"
        t.fail(
            "shared",
            "no error from unscale_ of another GradScaler, which unscales these gradients once",
            f"RuntimeError: {got['raised'][:80]}",
            shared,
        )


def check_loss(t: Tester, row: dict, loss: float, scale: float) -> None:
    """Check what scale(loss) returned, for a number and for an object as Variables are."""
    t.close(
        row["loss"],
        loss * scale,
        what=f"scale({loss:g})",
        rtol=1e-9,
        attempt="The loss times the scale that holds now, which is self.factor.",
        mistakes=[
            Mistake("unscaled", loss, "That is the loss itself."),
            Mistake("divided", loss / scale, "The loss is multiplied; its gradients are divided."),
            Mistake("factor_only", scale, "That is the scale. And the loss?"),
            Mistake("float32_loss", float(np.float32(loss) * np.float32(scale)), FEWER),
        ],
    )
    if not agree(row["again"], row["loss"]):
        t.fail(
            "another_loss",
            f"scale({loss:g}) = {loss * scale:g} for a second loss in the same iteration",
            show(row["again"]),
            "The scale holds until update(). What did the first call of scale change?",
        )
    if row["left"] != loss:
        t.fail(
            "changed_loss",
            f"a loss that is {loss:g} after scale(loss), as before",
            show(row["left"]),
            "The training still needs its loss. *= writes into an array or a Variable.",
        )
    if row["variable"] != row["loss"]:
        t.fail(
            "no_variable",
            "a Variable, if the loss is one: the backward pass begins there",
            "something else",
            "Which operations does a Variable have? Its graph must go on in what you return.",
        )
    if not row["goes_on"]:
        t.fail(
            "no_graph",
            "a Variable whose backward pass goes back to the loss",
            "a Variable without a graph, which requires no gradients",
            "backward() of what you return goes nowhere. Which step cuts it from the loss?",
        )


def check_gradients(
    t: Tester, got: dict, now: Round, place: int, scale: float, name: str, iteration: int
) -> None:
    """Check one optimizer's gradients and steps in one iteration."""
    gradients, calls = now.gradients[place], now.unscale[place]
    if not got["same"]:
        t.about = "GradScaler.unscale_"
        t.fail(
            "changed_parameters",
            f"optimizer.parameters{name}, the list as it was",
            "another list, or one with other parameters",
            "The optimizer still needs all of them, in the next iteration too: go through, and "
            "take nothing away.",
        )
    right = [None if g is None else (g / scale).astype(g.dtype) for g in gradients]
    before = [*gradients]
    later = not calls and (place > 0 or any(now.unscale))
    left = {
        key: [is_left(k, gradients, iteration, later) for k in range(len(gradients))]
        for key, (is_left, _) in LEFT.items()
    }
    t.about = "GradScaler.unscale_"
    if calls:
        compare(t, got["unscaled"], right, before, scale, f"after unscale_{name}", left, "still")
        if now.limit is not None:
            limits = (-now.limit, now.limit)
            right, before = (
                [None if g is None else np.clip(g, *limits) for g in one] for one in (right, before)
            )
    if calls > 1:
        if got["raised"] is None:
            t.fail(
                "no_error",
                f"a RuntimeError from the second unscale_{name} in one iteration",
                "no error",
                "Divided twice, they would be far too small. How does unscale_ know that it was "
                "there already?",
            )
        if "RuntimeError" not in got["raised"]:
            t.fail(
                "wrong_error",
                f"a RuntimeError from the second unscale_{name} in one iteration",
                got["raised"][0],
                "Which exception does the docstring ask for?",
            )
        after = f"after that error{name}"
        compare(t, got["after_second"], right, before, scale, after, left, "again")
    t.about = "GradScaler.step"
    steps, wanted = got["steps"], 0 if is_bad(gradients) else 1
    if len(steps) > wanted:
        bad = [x for g in gradients if g is not None for x in g[~np.isfinite(g)].tolist()]
        key = "stepped" if wanted == 0 else "two_steps"
        what = f"no step{name}: a gradient has {show(bad[0])}" if wanted == 0 else "one step"
        why = (
            "A step by inf or nan makes the weights nan, for ever. Which gradients does your test "
            "look at, when, and which values does it find there?"
            if wanted == 0
            else "optimizer.step() is called once."
        )
        n = "1 call" if len(steps) == 1 else f"{len(steps)} calls"
        t.fail(key, what, f"{n} of optimizer.step(){name}", why)
    if len(steps) < wanted:
        t.fail(
            "left_out",
            f"one call of optimizer.step(){name}: all its gradients are finite",
            "no call",
            "Whose gradients were not finite, and when? Large is not infinite: ask each entry, in "
            "the type that it has.",
        )
    for seen in steps:
        way = "twice" if calls else "never"
        compare(t, seen, right, before, scale, f"in optimizer.step(){name}", left, way)
    compare(t, got["after"], right, before, scale, f"after step{name}", left)
    for held, after in zip(got["held"], got["after"], strict=True):
        if held is not None and not np.array_equal(held, after, equal_nan=True):
            t.fail(
                "not_in_place",
                f"{show(after)}{name} in the array that p.grad was",
                f"{show(held)}",
                "p.grad = … puts another array there. Who else may hold the old one?",
            )
    check_found(t, got["found"], got["entries"], is_bad(gradients), name)


def check_found(t: Tester, got: bool | None, entries: int | None, wanted: bool, name: str) -> None:
    """Check what `found` has about an optimizer before update(); None: nothing."""
    expected = f"found[optimizer]{name} = {wanted} before update()"
    if entries is None:
        t.fail("no_dict", expected, "found is no dict", "Its keys are the optimizers.")
    if got is None:
        t.about = "GradScaler.unscale_"
        t.fail(
            "not_found",
            expected,
            f"no such entry among the {entries} of found",
            "update() looks there, and so does a second unscale_. Who writes it, and as which key? "
            "Is it emptied before update() was called?"
            if entries == 0
            else "update() looks there, and so does a second unscale_. Who writes it, and as which "
            "key?",
        )
    if got is not wanted:
        t.fail("wrongly_found", expected, f"{show(got)}", "What was looked at, and when?")


# Gradients that are left scaled: which ones, by place, the gradients, the iteration, and whether
# step is to unscale them after another optimizer's were unscaled.
LEFT: dict[str, tuple[Callable[[int, Gradients, int, bool], bool], str]] = {
    "other_unscaled": (
        lambda k, gradients, iteration, later: later,
        "Another optimizer was unscaled before, and this one never. After whom does step ask?",
    ),
    "bad_left": (
        lambda k, gradients, iteration, later: is_bad(gradients[k : k + 1]),
        "Where one entry is not finite, the others are divided nevertheless.",
    ),
    "all_left_if_bad": (
        lambda k, gradients, iteration, later: is_bad(gradients),
        "Where a gradient is not finite, all of them are divided nevertheless.",
    ),
    "ends_at_bad": (
        lambda k, gradients, iteration, later: is_bad(gradients[:k]),
        "What comes after a gradient that is not finite is divided, too. Where does your loop end?",
    ),
    "ends_at_none": (
        lambda k, gradients, iteration, later: any(g is None for g in gradients[:k]),
        "What comes after a gradient that is None is divided, too. Where does your loop end?",
    ),
    "first_only": (
        lambda k, gradients, iteration, later: iteration > 0,
        "In the first iteration they were divided, and now no more. What was to end with update()?",
    ),
}
KNOWN: dict[str, Callable[[float], tuple]] = {
    "still": lambda scale: (("still_scaled", 1.0, "They are still scaled. What does it divide?"),),
    "never": lambda scale: (
        ("never_unscaled", 1.0, "Nobody called unscale_ before step here. Who divides them?"),
    ),
    "again": lambda scale: (
        (
            "divided_first",
            scale**-2,
            "The error came, and they were divided once more. Which of the two does unscale_ do "
            "first?",
        ),
    ),
    "twice": lambda scale: (
        (
            "unscaled_twice",
            scale**-2,
            "unscale_ was called before, and step divided again. (Between them, scale was called "
            "for a second loss.) What tells step that unscale_ was there, and what forgets it?",
        ),
    ),
}


def compare(
    t: Tester,
    got: list,
    right: list,
    scaled: list,
    scale: float,
    when: str,
    left: dict[str, list[bool]],
    way: str = "",
) -> None:
    """Compare gradients with those that should be there.

    left: for each mistake of LEFT, whether it leaves a gradient scaled. way: which of KNOWN show.
    """
    for k, (found, wanted, before) in enumerate(zip(got, right, scaled, strict=True)):
        what = f"parameters[{k}].grad {when}"
        if wanted is None:
            if found is not None:
                t.fail(
                    "not_none",
                    f"{what} = None",
                    show(found),
                    "No gradient arrived there, and none is to be made.",
                )
            continue
        if found is None:
            t.fail("gone", f"{what}, an array", "None", "The script clears them, at its own time.")
        finite = np.isfinite(wanted)
        with np.errstate(all="ignore"):
            narrow = np.float32(before) / np.float32(scale)
        both = isinstance(found, np.ndarray) and found.shape == wanted.shape
        t.close(
            np.where(finite, found, wanted) if both else found,
            wanted,
            what=what,
            rtol=1e-5 if wanted.dtype == np.float32 else 1e-9,
            atol=0,
            attempt=samples.attempt_for(
                before,
                found,
                "Each entry of each gradient is divided by the scale that holds now, once.",
            ),
            mistakes=[
                Mistake(key, np.where(finite, before * factor, wanted), said)
                for key, factor, said in (
                    ("multiplied", scale, "The loss was multiplied. What takes that back?"),
                    *KNOWN.get(way, lambda scale: ())(scale),
                )
            ]
            + [
                Mistake(
                    "float32_gradient",
                    np.where(finite, narrow, wanted),
                    "float64 went in, and 7 digits came out. Which step makes a float32 of it?",
                )
            ]
            + [
                Mistake(key, np.where(finite & is_left[k], before, wanted), LEFT[key][1])
                for key, is_left in left.items()
            ],
        )
        t.dtype(found, wanted.dtype, "Written into the array that is there, it keeps its dtype.")
        if np.isfinite(found[~finite]).any():
            t.fail(
                "cleaned",
                f"{what} = {show(wanted)}",
                show(found),
                "inf divided by the scale is inf. The step is left out: nothing is to be mended.",
            )


def good(t: Tester, *shape: int, dtype: str = "float64") -> np.ndarray:
    """Return scaled gradients that are finite."""
    return samples.numbers(t.random, shape or (2,), dtype, low=-60.0, high=60.0)


def bad(t: Tester, value: float = np.inf, place: int = 0) -> np.ndarray:
    """Return scaled gradients of which one entry is not finite."""
    g = good(t)
    g[place] = value
    return g


@GradScaler.check(points=2)
def good_iterations(t: Tester) -> None:
    """It multiplies the loss, divides the gradients in place, and lets the optimizer step."""
    for scale in (8.0, 48.0):
        check(t, [Round([[good(t)]], [1], loss=2.7)], init_scale=scale)
        check(t, [Round([[good(t)]], loss=0.1)], init_scale=scale)
        check(t, [Round([[good(t), None, good(t, 3)]], [1])], init_scale=scale)
    for loss in (3, -0.5, np.float32(0.75)):  # numbers of any type
        check(t, [Round([[good(t)]], loss=loss)], init_scale=8.0)
    for g in samples.arrays(t.random):
        for calls in (0, 1):
            check(t, [Round([[g]], [calls])], init_scale=16.0)
    check(t, [Round([[None, good(t)]])] * 3, init_scale=4.0)
    huge = np.array([3e38, 3e38, 2e38], np.float32)
    check(t, [Round([[huge]])] * 2, init_scale=1.0)  # finite, and their sum is not
    check(t, [Round([[np.full(2, 1e200)]], [1])], init_scale=2.0)
    check(t, [Round([[good(t)]])])  # the defaults
    if not t.drive("failing_step", given="step(optimizer), and optimizer.step() raises an error"):
        t.about = "GradScaler.step"
        why = "What else goes wrong in the optimizer's step is not yours to catch."
        t.fail("swallowed", "that error, for the caller", "no error", why)


@GradScaler.check(points=2)
def left_out(t: Tester) -> None:
    """A step is left out where a gradient is inf, -inf or nan, in whichever parameter."""
    for value, place, calls in itertools.product(BAD, (0, 1), (0, 1)):
        for gradients in (
            [bad(t, value, place)],
            [bad(t, value, place), good(t)],
            [None, good(t), bad(t, value, place)],
        ):
            check(t, [Round([gradients], [calls])], **SMALL)
    check(t, [Round([[np.array([np.inf, -np.inf])]])], **SMALL)
    check(t, [Round([[bad(t)]]), Round([[good(t)]]), Round([[bad(t, np.nan)]])], **SMALL)
    check(t, [Round([[bad(t)]], [1], limit=1.0)], **SMALL)  # finite when step comes


def story(t: Tester, text: str) -> list[Round]:
    """Return iterations: a dot is a good one, an i one with an inf."""
    return [Round([[bad(t, BAD[t.fixed.integers(3)]) if c == "i" else good(t)]]) for c in text]


@GradScaler.check(points=3)
def the_scale(t: Tester) -> None:
    """The scale falls after an inf, and grows after growth_interval good iterations in a row."""
    check(t, story(t, "i"), **SMALL)
    check(t, story(t, "...."), **SMALL)
    check(t, story(t, "..i...i.i....."), **SMALL)
    check(t, story(t, "......."), **{**SMALL, "growth_interval": 2})
    check(t, story(t, "iiiiiiiii."), **SMALL)  # it may fall below 1
    for interval in (1, 5):
        factors = {"growth_factor": 3.0, "backoff_factor": 0.25, "growth_interval": interval}
        check(t, story(t, "....i......ii..........."), init_scale=1000.0, **factors)
    check(t, story(t, "." * 40), init_scale=8.0, growth_interval=40)
    check(t, story(t, ".i."), init_scale=8.0)
    for calls in (0, 1):  # no gradient arrived, so none was infinite
        check(t, [Round([[None, None]], [calls])] * 4, **SMALL)
        check(t, [Round([[]], [calls])] * 4, **SMALL)
    check(t, [Round([])] * 4, **SMALL)
    check(t, story(t, "........"), init_scale=2.0**20, growth_interval=1)


@GradScaler.check(points=1)
def unscaled_once(t: Tester) -> None:
    """unscale_ raises RuntimeError where it was called already, and may be called in the next."""
    check(t, [Round([[good(t)]], [2])], **SMALL)
    check(t, [Round([[good(t)]], [calls]) for calls in (1, 0, 2, 1)], **SMALL)
    check(t, [Round([[bad(t)]], [2])], **SMALL)


@GradScaler.check(points=1, only_with=("left_out",))
def two_optimizers(t: Tester) -> None:
    """Each optimizer's step depends on its own gradients; the scale depends on all."""
    for calls in ((0, 0), (1, 1), (1, 0), (0, 1)):
        check(t, [Round([[good(t)], [good(t)]], calls)] * 2, **SMALL)
        check(t, [Round([[bad(t)], [good(t)]], calls)], **SMALL)
        check(t, [Round([[good(t)], [bad(t, np.nan)]], calls)], **SMALL)
        check(t, [Round([[bad(t)], [bad(t)]], calls), Round([[good(t)], [good(t)]])], **SMALL)
