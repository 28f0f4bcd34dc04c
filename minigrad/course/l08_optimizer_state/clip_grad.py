"""Clipping gradients by their norm, all together."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from minigrad.course.l08_optimizer_state import lesson
from minigrad.course.l08_optimizer_state.common import drive, is_same, numbers, value_error
from minigrad.grader import samples
from minigrad.grader.compare import agree
from minigrad.grader.message import show, show_both
from minigrad.grader.tester import Mistake, Tester

clip_grad_norm_ = lesson.exercise(
    "clip_grad_norm_",
    difficulty=3,
    minutes=15,
    returns="a float: the norm before clipping",
    hints=(
        "First one number, then one decision, then one factor. Each array alone gives a sum of "
        "squares. What do you do with the sums before you take the root?",
        "Is the norm a finite number? If not, raise before anything is written. Is it larger than "
        "max_norm? Only then multiply, every array by the same max_norm / norm, in place.",
        "norm = sqrt of the sum, over all g, of np.sum(g.astype(np.float64) ** 2), as a float. "
        "np.isfinite(norm) or raise ValueError. if norm > max_norm: for each g, g *= max_norm / "
        "norm. Return norm.",
    ),
)


EPSILON = "A little too short: what is added to the norm, and what is it good for here?"
BY_ONE = "All entries are multiplied by one number. Which one makes the norm max_norm?"


def norm_of(gradients: list[np.ndarray]) -> float:
    """Return the joint norm of all arrays."""
    with np.errstate(over="ignore"):
        return float(np.sqrt(sum(float(np.sum(g.astype(np.float64) ** 2)) for g in gradients)))


def ask(
    t: Tester, gradients: list[np.ndarray], max_norm: float, should_raise: bool = False
) -> dict[str, Any]:
    """Call clip_grad_norm_; return its result and the arrays afterwards."""
    kind = " (float32)" if any(g.dtype == np.float32 for g in gradients) else ""
    text = ", ".join(show(g.astype(float), bare=True) for g in gradients)
    given = f"clip_grad_norm_(gradients, {max_norm:g}) with gradients = [{text}]{kind}"
    got = drive(t, "clip_gradients", gradients, max_norm, should_raise=should_raise, given=given)
    if got["raised"] is not None and np.isfinite(norm_of(gradients)):
        t.fail(
            "raised",
            f"the norm, {show(norm_of(gradients))}",
            f"ValueError: {got['raised']['text'][:80]}",
            "This norm is finite, and needs no error. Which line raises it here?",
        )
    return got


def check_norm(t: Tester, got: dict[str, Any], gradients: list[np.ndarray], max_norm: float):
    """Check the returned number."""
    norm, each = norm_of(gradients), [norm_of([g]) for g in gradients]
    returned = got["returned"]
    if isinstance(returned, np.ndarray) and returned.ndim == 0:
        returned = returned[()]
    mistakes = [
        Mistake("squared", norm**2, "This is the sum of the squares: the square of the norm."),
        Mistake(
            "sum_of_norms",
            sum(each),
            "Lengths at right angles do not add up. What does Pythagoras add?",
        ),
        Mistake(
            "largest",
            max(each, default=0.0),
            "This is the norm of one of the arrays. Asked for is that of all together.",
        ),
        Mistake(
            "absolute",
            sum(float(np.abs(g).sum()) for g in gradients),
            "This is the sum of absolute values. The norm is a length: squares, then a root.",
        ),
    ]
    if norm > max_norm:
        mistakes += [
            Mistake("after", max_norm, "This is the norm after clipping. Asked for is the other."),
            Mistake("factor", max_norm / norm, "This is the factor. Asked for is the norm."),
        ]
    t.close(
        returned,
        norm,
        rtol=max(1e-9 if g.dtype == np.float64 else 1e-5 for g in gradients or [np.ones(1)]),
        atol=0,
        what="the norm",
        attempt="Square each entry of each array, add all that, then take one root: 3, 4 give 5.",
        mistakes=mistakes,
    )


def check_arrays(t: Tester, got: dict[str, Any], gradients: list[np.ndarray], max_norm: float):
    """Check the arrays afterwards, where the norm was too large."""
    norm = norm_of(gradients)
    if all(is_same(g, a) for g, a in zip(got["gradients"], gradients, strict=True)):
        t.fail(
            "not_in_place",
            f"gradients of the norm {max_norm:g} in the same arrays",
            f"the arrays are as they were, of the norm {show(norm)}",
            "Who called you holds these arrays. What writes into an array, what makes a new one?",
        )
    one_by_one = [g * min(1.0, max_norm / (norm_of([g]) or max_norm)) for g in gradients]
    for number, (clipped, gradient) in enumerate(zip(got["gradients"], gradients, strict=True)):
        right = gradient.astype(np.float64) * (max_norm / norm)
        alone = "Each array was cut by itself, so the step points elsewhere. One factor for all."
        cut = "Single entries were cut off, which turns the step. Make all shorter alike."
        t.close(
            clipped.astype(np.float64),
            right,
            rtol=1e-9 if all(g.dtype == np.float64 for g in gradients) else 1e-4,
            atol=0,
            what=f"gradients[{number}]",
            attempt=samples.attempt_for(gradient, clipped, BY_ONE),
            mistakes=[
                Mistake("each_alone", one_by_one[number].astype(np.float64), alone),
                Mistake("cut_entries", np.clip(gradient, -max_norm, max_norm), cut),
                Mistake("epsilon", right * (norm / (norm + 1e-6)), EPSILON),
                Mistake("unit", right / max_norm, "These have the norm 1, whatever max_norm is."),
                Mistake(
                    "shrunk",
                    gradient.astype(np.float64) * max_norm,
                    "Multiplied by max_norm alone: what was the norm before?",
                ),
            ],
        )


def random_gradients(t: Tester, norm: float, dtype: Any = np.float64) -> list[np.ndarray]:
    """Return three arrays of different shapes with a joint norm of about `norm`."""
    arrays = [numbers(t, 2), numbers(t, 3), numbers(t, 2, 2)]
    scale = norm / norm_of(arrays)
    return [np.round(a * scale, 2).astype(dtype) for a in arrays]


@clip_grad_norm_.check(points=1)
def the_norm(t: Tester) -> None:
    """It returns the norm of all arrays together, before clipping."""
    gradients = [numbers(t, 2), numbers(t, 2)]
    for max_norm in (100.0, 0.5):
        arrays = gradients
        check_norm(t, ask(t, arrays, max_norm), gradients, max_norm)
    got = ask(t, [], 1.0)
    t.close(got["returned"], 0.0, what="the norm", attempt="The sum of no squares at all is 0.")


@clip_grad_norm_.check(points=2)
def one_factor(t: Tester) -> None:
    """Where the norm is too large, one factor for all makes it max_norm, in place."""
    each = [[numbers(t, 1), g] for g in samples.arrays(t.random)]
    plain = ([numbers(t, 2) + 4.0, numbers(t, 1)], random_gradients(t, 20.0))
    cases = [(gradients, 4.0) for gradients in (*plain, *each)]
    cases += [([1e-4 * numbers(t, 2), 1e-4 * numbers(t, 1)], 2.0)]
    cases += [([1e-20 * numbers(t, 2), 1e-20 * numbers(t, 1)], 2.0)]
    cases += [([1e3 * numbers(t, 2), 1e-3 * numbers(t, 3)], 4.0)]
    cases += [([numbers(t, 2), numbers(t, 1)], times) for times in (1.0005, 1 + 4e-7)]  # hardly
    for gradients, times in cases:
        max_norm = norm_of(gradients) / times
        got = ask(t, gradients, max_norm)
        check_norm(t, got, gradients, max_norm)
        check_arrays(t, got, gradients, max_norm)


@clip_grad_norm_.check(points=1)
def untouched(t: Tester) -> None:
    """Where the norm is not too large, every bit stays."""
    triple = float(t.random.integers(1, 4))
    cases = [
        ([np.array([3 * triple]), np.array([4 * triple])], 5 * triple),  # exactly the limit
        ([numbers(t, 2) / 10, numbers(t, 2) / 10], 1.0),
        ([np.array([0.1, 0.7]), np.array([0.3])], 1.0),  # rescaling would change bits
        (random_gradients(t, 2.0, np.float32), 100.0),
        (list(samples.arrays(t.random)), 100.0),
        ([np.zeros(2)], 1.0),
        ([np.array([3 * triple, 1e-200]), np.array([4 * triple])], 5 * triple),
    ]
    for gradients, max_norm in cases:
        got = ask(t, gradients, max_norm)
        check_norm(t, got, gradients, max_norm)
        for number, (after, gradient) in enumerate(zip(got["gradients"], gradients, strict=True)):
            if not is_same(after, gradient):
                grew = np.abs(after).sum() > np.abs(gradient).sum() * 1.001
                t.fail(
                    "enlarged" if grew else "touched",
                    f"gradients[{number}] bit for bit as it was: the norm is not above {max_norm}",
                    f"gradients[{number}] = {show_both(gradient, after)[1]}",
                    "A small gradient says that the goal is near. Why make it longer?"
                    if grew
                    else "What is multiplied here, and when must it not be?",
                )


@clip_grad_norm_.check(points=2)
def not_finite(t: Tester) -> None:
    """An infinite norm, or nan, raises ValueError and leaves all as it was; large is not inf."""
    for place, bad in itertools.product((0, 1, 2), (np.inf, np.nan, -np.inf)):
        gradients = [numbers(t, 2), numbers(t, 2, 2), numbers(t, 1)]
        gradients[place].flat[-1] = bad
        got = ask(t, gradients, 1.0, should_raise=True)
        same = all(is_same(a, g) for a, g in zip(got["gradients"], gradients, strict=True))
        if got["raised"] is None:
            after = ", ".join(show(g, bare=True) for g in got["gradients"])
            if got["returned"] is None:
                t.none("a ValueError")
            t.fail(
                "did_not_raise",
                "a ValueError, and the gradients as they were",
                f"{show(got['returned'])} returned; the gradients are now [{after}]",
                "Is the norm of these gradients a number to divide by? Ask before you write.",
            )
        value_error(t, got["raised"], "a ValueError, and the gradients as they were")
        if not same:
            t.fail(
                "raised_late",
                "the gradients as they were before the error",
                ", ".join(show(g, bare=True) for g in got["gradients"]),
                "First look, then raise, and only then write.",
            )
    huge = [np.array([3e200, 0.0]), np.array([4e200])]
    got = ask(t, huge, 1.0, should_raise=True)
    if got["raised"] is None and not agree(got["returned"], 5e200):  # inf in float64
        text = "a ValueError: in float64 the norm of these is infinite"
        say = "All entries are finite. And the number that you divide by?"
        t.fail("did_not_raise", text, f"{show(got['returned'])} returned", say)
    for size, max_norm in ((1e30, 1e30), (1e-30, 1e-30), (7e37, 1.0)):
        extreme = [np.array([3 * size, 0], np.float32), np.array([4 * size], np.float32)]
        text = f"clip_grad_norm_(gradients, {max_norm:g}) with gradients = [[{3 * size:g}, 0], "
        text += f"[{4 * size:g}]] (float32)"
        got = t.drive("clip_gradients", extreme, max_norm, given=text)
        returned, wanted = got["returned"], norm_of(extreme)
        is_number = isinstance(returned, float | np.floating)
        if got["raised"] is not None or (is_number and not 0 < returned < np.inf):
            t.fail(
                "overflow",
                f"the norm, {wanted:g}",
                "a ValueError" if got["raised"] is not None else show(returned),
                "1e30 squared is 1e60, and the largest float32 is 3e38, the smallest 1e-45. Which "
                "type has room for it?",
            )
        check_norm(t, got, extreme, max_norm)
        if not any(g.any() for g in got["gradients"]):
            attempt = "Which number of yours is too large for float32?"
            t.fail("underflow", f"gradients of the norm {max_norm:g}", "zeros", attempt)
        check_arrays(t, got, extreme, max_norm)
