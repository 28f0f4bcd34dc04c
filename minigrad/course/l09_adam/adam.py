"""One step of Adam for one parameter."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from minigrad.course.l09_adam import lesson
from minigrad.course.l09_adam.common import (
    DEFAULTS,
    adam,
    check_form,
    check_step,
    one_step,
    pairs,
    random_array,
    random_hyper,
    random_state,
    tiny_state,
)
from minigrad.grader.compare import disagreements
from minigrad.grader.tester import Tester

adam_step = lesson.exercise(
    "adam_step",
    difficulty=3,
    minutes=20,
    returns="new_p, an array, and new_state, a dict",
    hints=(
        "Write it down for the very first step: both moments come from zeros, and t = 1. What is "
        "left of the corrected moments? A sign and a size should remain of the formula.",
        "state.get('step', 0) + 1 is t. state.get('first_moment', np.zeros_like(p)) is the old m. "
        "Both moments follow corrected_average: beta1 with g, beta2 with g * g.",
        "first = m / (1 - beta1 ** t), second = v / (1 - beta2 ** t); then the formula of the "
        "docstring. Return m and v themselves, not first and second, in a new dict with t.",
    ),
)
BIAS = "The moments started at 0. After one step, what does each one's weight of g add up to?"
ONE = "Only one of the two moments is corrected yet."
MADE = "That is the step. Return where p is after it."
STAYS = "p has not moved. Is it the new value that you return, made with the new moments?"
STEP = {"p": "Compute both moments for the first entry by hand, correct them, make the step."}
BY_HAND = "Compute this moment by hand: a share of the old, and a share of the new."
STATE = {
    "first_moment": BY_HAND,
    "second_moment": BY_HAND,
    "step": "It counts the steps that this parameter has made, this one among them.",
}

for key, switches, attempt in (
    ("no_correction", {"correct": "none"}, BIAS),
    ("one_corrected", {"correct": "first"}, ONE),
    ("one_corrected", {"correct": "second"}, ONE),
    ("ascent", {"sign": -1}, "It goes uphill: which way does the gradient point?"),
    ("power", {"power": True}, "Which comes first in your correction, the power or 1 - ...?"),
    ("no_square", {"square": "g"}, "The second moment averages g * g. Can yours be negative?"),
    ("abs_square", {"square": "|g|"}, "The second moment averages g * g. And yours?"),
    (
        "no_root",
        {"root": False},
        "Your divisor grows like g * g. How should a first step depend on the size of g?",
    ),
    (
        "swapped",
        {"swapped": True},
        "beta is the share of the old average, 1 - beta that of g.",
    ),
    ("not_moved", {"sign": 0}, STAYS),
    ("not_moved", {"stale": True}, STAYS),
    ("late_t", {"t_off": 1}, "t is 1 at the first step. Is it counted up once too often?"),
    ("stale_t", {"t_off": -1}, "The state says how many steps were made. Which one is this?"),
    (
        "eps_inside",
        {"eps_is": "inside"},
        "Your divisor never gets below the root of eps. Where does the formula put eps?",
    ),
    (
        "eps_before",
        {"eps_is": "before"},
        "eps is added to the root of the corrected moment. What do you add it to?",
    ),
    (
        "no_eps",
        {"eps_is": "missing"},
        "Tiny gradients should make smaller steps (and 0 none). What does the formula add below?",
    ),
):
    adam_step.mistake(key, attempt)(partial(adam, **switches))


def with_default(p, g, state, *given, which):
    """Return a step that uses the default for one of learning_rate, betas and eps."""
    hyper = [*given, *DEFAULTS[len(given) :]]
    hyper[which] = DEFAULTS[which]
    return adam(p, g, state, *hyper)


for place, (key, attempt) in enumerate(
    (
        ("fixed_rate", "This is the default learning rate, 1e-3."),
        ("fixed_betas", "These are the default betas. Which were given?"),
        ("fixed_eps", "This is the default eps, 1e-8. Which was given?"),
    )
):
    adam_step.mistake(key, attempt)(partial(with_default, which=place))


@adam_step.mistake("zero_skipped", "A gradient of zeros is a step: what does the first moment say?")
def _(p, g, state, *hyper):
    return adam(p, g, state, *hyper) if g.any() or not state else (p, state)


@adam_step.mistake("sgd", "That is plain SGD: what do the two moments do?")
def _(p, g, state, *hyper):
    return p - (*hyper, 1e-3)[0] * g, adam(p, g, state, *hyper)[1]


@adam_step.mistake("step_only", MADE)
def _(p, g, state, *hyper):
    new_p, new_state = adam(p, g, state, *hyper)
    return p - new_p, new_state


@adam_step.mistake("step_only", MADE)
def _(p, g, state, *hyper):
    return adam(0 * p, g, state, *hyper)


@adam_step.mistake("forgets", "That is a first step: what was in the state?")
def _(p, g, state, *hyper):
    return adam(p, g, {}, *hyper)


@adam_step.mistake(
    "corrected_state",
    "Corrected moments are for the step alone. What goes on to the next step?",
)
def _(p, g, state, learning_rate=1e-3, betas=(0.9, 0.999), eps=1e-8):
    new_p, new = adam(p, g, state, learning_rate, betas, eps)
    m, v = (
        new[name] / (1 - beta ** new["step"])
        for name, beta in zip(("first_moment", "second_moment"), betas, strict=True)
    )
    return new_p, {"first_moment": m, "second_moment": v, "step": new["step"]}


@adam_step.mistake("old_state", "That is the moment as it was before this step.")
def _(p, g, state, *hyper):
    new_p, new = adam(p, g, state, *hyper)
    return new_p, {"first_moment": 0 * p, "second_moment": 0 * p, **state, "step": new["step"]}


@adam_step.mistake("value")
def _(p, g, state, learning_rate=None, *others):
    return adam(p, g, state, learning_rate or 1e-3, *others)


@adam_step.mistake("raised")
def _(p, g, state, *hyper):
    return adam(p, g, {"first_moment": np.zeros(len(p)), **state}, *hyper)


@adam_step.mistake("dtype")
def _(p, g, state, *hyper):
    zeros = np.zeros(p.shape)
    return adam(p, g, state or {"first_moment": zeros, "second_moment": zeros}, *hyper)


@adam_step.mistake("changed_input")
def _(p, g, state, *hyper):
    p[...], new_state = adam(p, g, state, *hyper)
    return p, new_state


@adam_step.check(points=1)
def first_step(t: Tester) -> None:
    """The first step has the size of the learning rate, against the gradient's sign."""
    for p, g in pairs(t):
        check_adam(t, p, g, {}, *random_hyper(t, 1e-8))


def check_adam(t: Tester, *arguments: Any, attempts: dict[str, str] = STEP) -> None:
    """Check one step of Adam."""
    check_step(t, adam(*arguments), *arguments, attempts=attempts)


@adam_step.check(points=2)
def gradients_of_any_size(t: Tester) -> None:
    """The first step is learning_rate * |g| / (|g| + eps) for |g| from 1e-10 to 1e8, and for 0."""
    learning_rate, betas, _ = random_hyper(t)
    sizes = np.array([1e-10, 1e-9, 1e-8, 1e-6, 1e-3, 1.0, 1e4, 1e8])
    for eps, g in zip(
        (1e-8, 1e-7, 1e-8, 1e-8),
        (sizes[2:5], sizes[:3], sizes[5:], np.array([0.0, 1.0])),
        strict=True,
    ):
        g = np.round(t.random.uniform(1, 9), 1) * g * t.random.choice([-1.0, 1.0], g.size)
        check_adam(t, np.zeros_like(g), g, {}, learning_rate, betas, eps)


@adam_step.check(points=2)
def later_steps(t: Tester) -> None:
    """It goes on from the state that it is given, also where the gradient is 0."""
    for step in (1, 3, 50):
        state = random_state(t, step=step)
        check_adam(t, random_array(t), random_array(t), state, *random_hyper(t))
    for p, g in pairs(t):
        check_adam(t, p, g, random_state(t, p), *random_hyper(t))
    check_adam(t, random_array(t), np.zeros(2), random_state(t), *random_hyper(t))
    # A 0 among the hyperparameters is a number, not a missing default.
    for hyper in ((0.1, (0.0, 0.9), 1e-3), (0.1, (0.8, 0.0), 0.0), (0.0, (0.8, 0.9), 1e-3)):
        check_adam(t, random_array(t), random_array(t), random_state(t), *hyper)
    check_adam(t, np.zeros(2), *tiny_state(t))


@adam_step.check(points=1)
def the_new_state(t: Tester) -> None:
    """It returns both moments, uncorrected, and the number of steps."""
    cases = [(p, g, state) for p, g in pairs(t) for state in ({}, random_state(t, p))]
    for p, g, state in [*cases, (random_array(t), np.zeros(2), random_state(t))]:
        check_adam(t, p, g, state, *random_hyper(t), attempts=STATE)


@adam_step.check(points=1)
def float32(t: Tester) -> None:
    """A float32 parameter stays float32, and so do its moments."""
    p, g = (random_array(t).astype(np.float32) for _ in range(2))
    for state in ({}, random_state(t, p)):
        new_p, new_state = one_step(t, "adam_step", p, g, state, *random_hyper(t))
        attempt = "Which array in your function was made with NumPy's default dtype, float64?"
        for made in (new_p, new_state["first_moment"], new_state["second_moment"]):
            t.dtype(made, np.float32, attempt)


@adam_step.check(points=2)
def a_thousand_steps(t: Tester) -> None:
    """A thousand steps of two parameters in turn, each with its own state, follow the formula."""
    n, late, hyper = 1000, 300, (0.05, (0.85, 0.999), 1e-3)
    starts = [random_array(t), random_array(t)]
    gradients = t.random.standard_normal((2, n, 2)) * np.array([[[1.0, 1e-3]]])
    right = np.empty((2, n, 2))
    for k, begin in enumerate((0, late)):
        p, state = starts[k], {}
        for i in range(n):
            if i >= begin:
                p, state = adam(p, gradients[k, i], state, *hyper)
            right[k, i] = p
    got = t.drive(
        "walk",
        starts,
        gradients,
        [0, late],
        list(hyper),
        given=f"two parameters of shape (2,) in turn, {n} random gradients each, the second from "
        f"step {late + 1} on, each given the state that its own last step returned",
    )
    if not isinstance(got, np.ndarray) or got.shape != right.shape:
        parts = t.pair(got, 2, "new_p, new_state")
        check_form(t, parts[1], "new_state")
        t.close(parts[0], starts[0], what="new_p", attempt="Compare the shape with that of p.")
        return
    wrong = disagreements(got, right).any(axis=2)
    if wrong.any():
        step = int(np.argmax(wrong.any(axis=0)))
        k = int(np.argmax(wrong, axis=0)[step])
        t.close(
            got[k, step],
            right[k, step],
            what=f"parameter {k} after round {step + 1}",
            attempt="Everything that a step remembers must come from the state that it is given.",
        )
