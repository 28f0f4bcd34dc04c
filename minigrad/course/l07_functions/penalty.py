"""A loss made of gradients."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from minigrad.course.l07_functions import lesson
from minigrad.course.l07_functions.common import ask, entries, spelled
from minigrad.grader.gradients import numeric_gradient
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

gradient_penalty = lesson.exercise(
    "gradient_penalty",
    difficulty=4,
    minutes=20,
    returns="the penalty, a Variable of one element",
    needs="engine",
    hints=(
        "Row i of the gradient of critic(x).sum() with respect to x is the gradient of score i: "
        "no other score depends on row i.",
        "The penalty is differentiated again, by the weights: which argument of mg.gradients "
        "makes the gradient part of a graph? And the norm is taken row by row.",
        "x = x.detach(); x.requires_grad = True; g = mg.gradients(critic(x).sum(), x, "
        "create_graph=True). Then the mean of (mg.norm(g, axis=1) - 1.0) ** 2.",
    ),
)


def slopes(kind: str, inner: np.ndarray, outer: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the gradient of each row's score with respect to that row."""
    z = x @ inner
    local = 1 - np.tanh(z) ** 2 if kind == "tanh" else (z > 0) * 1.0
    return (local * outer) @ inner.T


def right(kind: str, inner: np.ndarray, outer: np.ndarray, x: np.ndarray) -> float:
    """Return the penalty."""
    norms = np.sqrt(np.sum(slopes(kind, inner, outer, x) ** 2, axis=1))
    return float(np.mean((norms - 1) ** 2))


def weight_gradient(
    kind: str, inner: np.ndarray, outer: np.ndarray, x: np.ndarray, which: int
) -> np.ndarray:
    """Return the gradient of the penalty with respect to W (0) or w (1)."""
    penalty = partial(right, kind, x=x)
    return numeric_gradient(penalty, (inner, outer), np.ones(()), which)


def case(t: Tester, rows: int, d: int, hidden: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return W, w and x, rounded as messages show them."""
    inner = np.round(t.random.uniform(0.3, 1.2, (d, hidden)), 1)
    outer = np.round(t.random.uniform(0.4, 1.5, hidden), 1)
    return inner, outer, np.round(t.random.uniform(-0.9, 0.9, (rows, d)), 1)


def ask_penalty(
    t: Tester, kind: str, inner: np.ndarray, outer: np.ndarray, x: np.ndarray, flag: bool = False
) -> Any:
    """Call gradient_penalty; return the driver's report."""
    requires = "; x requires gradients and has a .grad already" if flag else ""
    given = (
        f"gradient_penalty(critic, x), critic(x) = {kind}(x @ W) @ w, W = {spelled(inner)}, "
        f"w = {spelled(outer)}, x = {spelled(x)}{requires}"
    )
    return ask(t, "penalty", kind, inner, outer, x, flag, given=given)


OWN_LEAF = "Work on a leaf of your own, x.detach(), and use mg.gradients, which writes no .grad."


def check_early(t: Tester, got: Any, before: np.ndarray | None = None) -> None:
    """Fail if a .grad was written before penalty.backward(); `before` is the earlier x.grad."""
    (early,) = entries(t, got, "early")
    was = zip("Wwx", (None, None, before), t.pair(early, 3, "three .grad"), strict=True)
    for name, wanted, one in was:
        if show(one) != show(wanted):
            t.fail(
                "wrote_grad",
                f"{name}.grad = {show(wanted)} until penalty.backward() is called",
                f"{name}.grad = {show(one)} before it",
                OWN_LEAF,
            )


def wrong_values(g: np.ndarray) -> list[Mistake]:
    """Return what people compute by mistake instead of the mean of (|g_i| - 1)**2."""
    norms, n = np.sqrt(np.sum(g**2, axis=1)), len(g)
    scaled = norms / n
    wrong = [
        (
            "whole_batch",
            (np.sqrt(np.sum(g**2)) - 1) ** 2,
            "One norm was taken over all rows together. There is a norm for each row.",
        ),
        ("sum", np.sum((norms - 1) ** 2), "This is the sum over the rows. And the mean?"),
        (
            "mean_score",
            np.mean((scaled - 1) ** 2),
            "Every slope is too small by the number of rows: what was differentiated, the sum of "
            "the scores or their mean?",
        ),
        (
            "squared_norm",
            np.mean((norms**2 - 1) ** 2),
            "The root is missing: the norm is the root of the sum of squares.",
        ),
        ("norm", np.mean(norms), "This is the mean norm. The penalty is its distance from 1."),
        ("target_zero", np.mean(norms**2), "This pulls the norms to 0. They should be near 1."),
        ("not_squared", np.mean(norms - 1), "Norms below 1 and above 1 cancel here. Square first."),
        ("absolute", np.mean(np.abs(norms - 1)), "The distance from 1 is squared, not absolute."),
        ("outside", (np.mean(norms) - 1) ** 2, "The mean was taken too early: square first."),
        (
            "columns",
            np.mean((np.sqrt(np.sum(g**2, axis=0)) - 1) ** 2),
            "The norm runs along the wrong axis. A row is one example.",
        ),
    ]
    return [Mistake(key, float(value), say) for key, value, say in wrong]


def check_value(t: Tester, inner: np.ndarray, outer: np.ndarray, x: np.ndarray) -> Any:
    """Check the penalty's value; return the driver's report."""
    got = ask_penalty(t, "tanh", inner, outer, x)
    check_found(t, got, inner, outer, x)
    return got


def check_found(t: Tester, got: Any, inner: np.ndarray, outer: np.ndarray, x: np.ndarray) -> None:
    """Compare the penalty's value with the right one."""
    penalty = entries(t, got, "penalty")[0]
    if penalty is None:
        t.none("the penalty, a Variable of one element")
    if isinstance(penalty, np.ndarray) and np.size(penalty) != 1:
        t.fail(
            "not_one",
            "one element",
            show(penalty),
            "A loss is one number. What turns one number a row into one?",
        )
    if got.get("type") != "one Variable":
        t.fail(
            "not_variable",
            "a Variable of one element",
            f"{show(penalty)}, of type {str(got.get('type'))[:40]}",
            "A loss must know how it was computed, and a plain number does not.",
        )
    t.close(
        penalty,
        right("tanh", inner, outer, x),
        what="penalty",
        mistakes=wrong_values(slopes("tanh", inner, outer, x)),
        attempt="Take one row: its gradient, its norm, its distance from 1, squared.",
    )


@gradient_penalty.check(points=2)
def value(t: Tester) -> None:
    """The penalty is right, for one row and for several, of any length."""
    for rows, d in ((2, 2), (1, 2), (3, 2), (3, 1), (2, 4)):
        check_value(t, *case(t, rows, d, 2))


@gradient_penalty.check(points=3)
def trains(t: Tester) -> None:
    """penalty.backward() gives the critic's weights the right gradients."""
    for rows, d, hidden in ((2, 2, 2), (3, 4, 3)):
        inner, outer, x = case(t, rows, d, hidden)
        got = check_value(t, inner, outer, x)
        recorded, gradients = entries(t, got, "recorded", "gradients")
        check_early(t, got)
        if recorded is not True:
            t.fail(
                "no_graph",
                "a penalty that can be differentiated by the weights",
                "a penalty without a graph: penalty.backward() would reach no weight",
                "The gradient is differentiated again here. What must mg.gradients be told for "
                "that, and which step afterwards forgets it?",
            )
        pair = t.pair(gradients, 2, "the gradients of W and w")
        for which, name in enumerate(("W.grad", "w.grad")):
            expected = weight_gradient("tanh", inner, outer, x, which)
            if pair[which] is None:
                t.fail(
                    "no_graph",
                    f"{name} = {show(expected)}",
                    f"{name} = None",
                    "The penalty does not know any more that it was made of this weight.",
                )
            half = "Exactly half: of two equal factors, one is treated as a number."
            t.close(
                pair[which],
                expected,
                rtol=1e-5,
                atol=1e-6,
                what=name,
                mistakes=[Mistake("half_graph", expected / 2, half)],
                attempt="The value is right and its gradient is not: which step treats a part that "
                "depends on the weights as a number?",
            )


@gradient_penalty.check(points=1)
def dead_rows(t: Tester) -> None:
    """A row whose slope is 0 counts as norm 0, and no gradient becomes nan."""
    inner, outer, _ = case(t, 2, 2, 2)
    x = np.round(np.array([[-1.0], [1.0]]) * t.random.uniform(0.2, 1, (2, 2)), 1)
    got = ask_penalty(t, "relu", inner, outer, x)
    penalty, gradients = entries(t, got, "penalty", "gradients")
    t.close(
        penalty,
        right("relu", inner, outer, x),
        rtol=1e-5,  # adding something tiny below the root is right as well
        what="penalty",
        attempt="The first row's slope is 0: its norm is 0, and (0 - 1)**2 is 1.",
    )
    pair = t.pair(gradients, 2, "the gradients of W and w")
    for which, (name, g) in enumerate(zip(("W.grad", "w.grad"), pair, strict=True)):
        if not isinstance(g, np.ndarray) or not np.isfinite(g).all():
            t.fail(
                "nan_at_zero",
                f"{name} without nan",
                f"{name} = {show(g)}",
                "The slope of a root at 0 is inf, and inf * 0 is nan. Which operation avoids it?",
            )
        say = "A row whose slope is 0 adds 1 to the sum, and nothing to the gradients."
        expected = weight_gradient("relu", inner, outer, x, which)
        t.close(g, expected, rtol=1e-5, atol=1e-6, what=name, attempt=say)


@gradient_penalty.check(points=1)
def leaves_no_trace(t: Tester) -> None:
    """Before backward no .grad changes; x, its .grad and its flag stay as they were."""
    for flag in (False, True):
        inner, outer, x = case(t, 2, 2, 2)
        got = ask_penalty(t, "tanh", inner, outer, x, flag)
        check_found(t, got, inner, outer, x)
        before = np.full(x.shape, 2.0) if flag else None
        check_early(t, got, before)
        after, grad, now = entries(t, got, "x", "grad", "requires_grad")
        if now is not flag:
            t.fail("flag", f"x.requires_grad = {flag}", f"it is {show(now)} now", OWN_LEAF)
        if show(grad) != show(before):
            wanted = f"x.grad = {show(before)} after penalty.backward(), too"
            t.fail("wrote_grad", wanted, f"x.grad = {show(grad)}", OWN_LEAF)
        t.close(after, x, what="x", attempt=OWN_LEAF)
