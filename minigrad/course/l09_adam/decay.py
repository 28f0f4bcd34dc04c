"""Adam with decoupled weight decay."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from minigrad.course.l09_adam import lesson
from minigrad.course.l09_adam.common import (
    adam,
    check_step,
    pairs,
    random_array,
    random_hyper,
    random_state,
    tiny_state,
)
from minigrad.grader.tester import Tester

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
COUPLED = "The moments are averages of the gradient alone. What else went into yours?"
ATTEMPTS = {
    "p": "First p shrinks by a share; then a step of Adam from there. Do both by hand.",
    "first_moment": COUPLED,
    "second_moment": COUPLED,
    "step": "One call is one step.",
}


def adamw(p, g, state, rate=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.01, *, kind=""):
    """Return p and its state after one step of AdamW, right or with a common mistake."""
    shrunk = rate * decay
    share = {
        "l2": 0.0,
        "no_decay": 0.0,
        "no_rate": decay,
        "grows": -shrunk,
        "only_share": 1 - shrunk,
        "after": 0.0,
        "dtype": np.full(p.shape, shrunk),
    }.get(kind, shrunk)
    slope = g + decay * p if kind in ("l2", "both") else g
    hyper = (rate, betas, eps)[: {"defaults": 0, "default_eps": 2}.get(kind, 3)]
    new_p, new_state = adam(p * (1 - share), slope, state, *hyper)
    if kind == "coupled":
        new_state = adam(p, g + decay * p, state, *hyper)[1]
    return new_p * (1 - shrunk) if kind == "after" else new_p, new_state


for key, attempt in {
    "l2": "The decay went through the moments, which divide its size away. Where does p shrink "
    "itself?",
    "no_decay": "That is Adam without any decay. Which ones does the docstring leave out?",
    "no_rate": "It shrinks too much: which share is taken away?",
    "grows": "It grows by that share. It should shrink.",
    "only_share": "That is what is taken away. What remains?",
    "after": "Here p shrinks after the step, and the step with it. Which comes first?",
    "both": "p shrinks, and the gradient carries the decay once more.",
    "defaults": "This step has the defaults of adam_step. Which numbers were you given?",
    "default_eps": "This step has the default eps of adam_step. Which one were you given?",
    "coupled": COUPLED,
    "dtype": "",
}.items():
    adamw_step.mistake(key, attempt)(partial(adamw, kind=key))


@adamw_step.mistake("no_decay", "p has not changed. What is left of it if the gradient is 0?")
def _(p, g, state, *hyper):
    return p, adam(p, g, state, *hyper[:3])[1]


def check_decay(t: Tester, *arguments: Any) -> tuple:
    """Check all of one step of AdamW."""
    return check_step(t, adamw(*arguments), *arguments, attempts=ATTEMPTS)


@adamw_step.check(points=1)
def no_gradient_at_all(t: Tester) -> None:
    """Where the gradient is 0, only the decay acts: every entry loses the same share."""
    for decay, shape in ((0.5, (2,)), (0.1, (2,)), (0.5, (2, 1)), (0.5, ())):
        p = np.resize(np.array([0.5, -20.0]) * np.round(t.random.uniform(1, 4), 1), shape)
        check_decay(t, p, np.zeros(shape), {}, *random_hyper(t), decay)


@adamw_step.check(points=2)
def with_gradient(t: Tester) -> None:
    """With a gradient both act, one after the other, and the moments know of one only."""
    for decay in (0.5, 0.3):
        for state in ({}, random_state(t), random_state(t, step=1000)):
            hyper = (0.1, *random_hyper(t)[1:])
            check_decay(t, 2 * random_array(t), random_array(t), state, *hyper, decay)
    check_decay(t, random_array(t), np.array([0.0, 1.0]), {}, *random_hyper(t), 0.5)
    for p, g in pairs(t):
        check_decay(t, p, g, random_state(t, p), *random_hyper(t), 0.4)
        if p.dtype == np.float32:
            new_p, _ = check_decay(t, p, g, {}, *random_hyper(t), 0.4)
            t.dtype(new_p, np.float32, "Which number or array in your function is of float64?")


@adamw_step.check(points=1)
def without_decay(t: Tester) -> None:
    """With weight_decay 0 it is Adam, and the defaults are those of the signature."""
    p, g, state = random_array(t), random_array(t), random_state(t)
    arguments = (p, g, state, *random_hyper(t), 0.0)
    zero = "A weight_decay of 0 is a number, and no default. What is left of the decay then?"
    check_step(t, adamw(*arguments), *arguments, attempts={**ATTEMPTS, "p": zero})
    hundred, small = 100 * random_array(t), np.full(2, 1e-3)
    for p, g, state in ((hundred, random_array(t), {}), (small, *tiny_state(t))):
        attempt = "Look at the defaults in the signature: learning_rate 1e-3, weight_decay 0.01."
        check_step(t, adamw(p, g, state), p, g, state, attempts={"p": attempt})
