"""Adam with decoupled weight decay."""

from __future__ import annotations

import numpy as np

from minigrad.course.l09_adam.common import (
    adam,
    one_step,
    random_array,
    random_hyper,
    random_state,
    with_defaults,
)
from minigrad.course.l09_adam.lesson import lesson
from minigrad.grader.compare import agree
from minigrad.grader.tester import Mistake, Tester

adamw_step = lesson.exercise(
    "adamw_step",
    difficulty=2,
    minutes=8,
    returns="new_p, an array, and new_state, a dict",
    hints=(
        "Let the gradient be 0 everywhere and the state empty. What is left of the step of Adam, "
        "and what should still happen to p?",
        "Two things in a row: p becomes smaller by a share, then adam_step starts from there. The "
        "gradient goes into adam_step untouched.",
        "The share is learning_rate * weight_decay, so what remains of p is "
        "p * (1 - learning_rate * weight_decay). Hand that to adam_step in the place of p.",
    ),
)
L2 = "The decay went through the moments, which divide its size away. Where does p shrink itself?"
COUPLED = "The moments are averages of the gradient alone. What else went into yours?"


def mistakes_of(
    p: np.ndarray, g: np.ndarray, state: dict, hyper: tuple, decay: float
) -> list[Mistake]:
    """Return what people compute in place of the new parameter."""
    rate = hyper[0]
    plain = adam(p, g, state, *hyper)[0]
    step = plain - p
    found = [
        ("l2", adam(p, g + decay * p, state, *hyper)[0], L2),
        ("no_decay", plain, "That is Adam without any decay."),
        ("no_rate", p * (1 - decay) + step, "It shrinks too much: which share is taken away?"),
        ("grows", p * (1 + rate * decay) + step, "It grows by that share. It should shrink."),
        ("only_share", p * decay * rate + step, "That is what is taken away. What remains?"),
        (
            "after",
            plain * (1 - rate * decay),
            "Here p shrinks after the step, and the step with it. Which comes first?",
        ),
        (
            "both",
            adam(p * (1 - rate * decay), g + decay * p, state, *hyper)[0],
            "p shrinks, and the gradient carries the decay once more.",
        ),
        (
            "defaults",
            with_defaults(p * (1 - rate * decay), g, state),
            "This step has the defaults of adam_step. Which numbers were you given?",
        ),
        ("not_moved", p, "p has not changed. The new value is for you to return."),
    ]
    return [Mistake(*one) for one in found]


def check_decay(
    t: Tester, p: np.ndarray, g: np.ndarray, state: dict, hyper: tuple, decay: float
) -> None:
    """Ask for one step and compare the parameter and its moments."""
    new_p, got = one_step(t, "adamw_step", p, g, state, *hyper, decay)
    right, right_state = adam(p * (1 - hyper[0] * decay), g, state, *hyper)
    wrong = [
        one
        for one in mistakes_of(p, g, state, hyper, decay)
        if not agree(one.value, right, rtol=1e-5, atol=1e-8)
    ]
    t.close(
        new_p,
        right,
        mistakes=wrong,
        atol=1e-12,
        what="new_p",
        attempt="First p shrinks by a share; then a step of Adam from there. Do both by hand.",
    )
    coupled = adam(p, g + decay * p, state, *hyper)[1]
    for key in ("first_moment", "second_moment"):
        t.close(
            got[key],
            right_state[key],
            mistakes=[Mistake("coupled", coupled[key], COUPLED)] if decay else [],
            what=f"new_state[{key!r}]",
            attempt=COUPLED,
        )
    if int(got["step"]) != right_state["step"]:
        t.fail(
            "step_count",
            f"new_state['step'] = {right_state['step']}",
            f"new_state['step'] = {int(got['step'])}",
            "One call is one step.",
        )


@adamw_step.check(points=1)
def no_gradient_at_all(t: Tester) -> None:
    """Where the gradient is 0, only the decay acts: every entry loses the same share."""
    learning_rate, betas, eps = random_hyper(t)
    decay = float(t.random.choice([0.5, 0.2, 0.1]))
    p = np.array([0.5, -20.0]) * np.round(t.random.uniform(1, 4), 1)
    check_decay(t, p, np.zeros(2), {}, (learning_rate, betas, eps), decay)


@adamw_step.check(points=2)
def with_gradient(t: Tester) -> None:
    """With a gradient both act, one after the other, and the moments know of one only."""
    for state in ({}, random_state(t)):
        _, betas, eps = random_hyper(t)
        decay = float(t.random.choice([0.5, 0.3]))
        check_decay(t, random_array(t) * 2, random_array(t), state, (0.1, betas, eps), decay)


@adamw_step.check(points=1)
def without_decay(t: Tester) -> None:
    """With weight_decay 0 it is Adam, and the defaults are those of the signature."""
    p, g, state = random_array(t), random_array(t), random_state(t)
    check_decay(t, p, g, state, random_hyper(t), 0.0)
    p = random_array(t) * 100
    new_p, _ = one_step(t, "adamw_step", p, g, {})
    right = adam(p * (1 - 1e-3 * 0.01), g, {}, 1e-3, (0.9, 0.999), 1e-8)[0]
    attempt = "Look at the defaults in the signature: learning_rate 1e-3, weight_decay 0.01."
    t.close(new_p, right, rtol=1e-9, atol=0, what="new_p", attempt=attempt)
