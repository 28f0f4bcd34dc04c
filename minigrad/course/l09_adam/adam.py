"""One step of Adam for one parameter."""

from __future__ import annotations

import numpy as np

from minigrad.course.l09_adam.common import (
    adam,
    check_form,
    one_step,
    random_array,
    random_hyper,
    random_state,
)
from minigrad.course.l09_adam.lesson import lesson
from minigrad.grader.compare import agree, disagreements
from minigrad.grader.tester import Mistake, Tester

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
WRONG = {
    "no_correction": ({"correct": "none"}, BIAS),
    "one_corrected": ({"correct": "first"}, "Only one of the two moments is corrected yet."),
    "ascent": ({"sign": -1}, "It goes uphill: which way does the gradient point?"),
    "power": ({"power": True}, "Which comes first in your correction, the power or 1 - ...?"),
    "no_square": ({"square": "g"}, "The second moment averages g * g. Can yours be negative?"),
    "abs_square": ({"square": "|g|"}, "The second moment averages g * g. What does yours average?"),
    "no_root": (
        {"root": False},
        "Your divisor grows like g * g. How should a first step depend on the size of g?",
    ),
    "swapped": ({"swapped": True}, "beta is the share of the old average, 1 - beta that of g."),
    "stale": ({"stale": True}, "The moments take g in first; then the step is made, with them."),
    "late_t": ({"t_off": 1}, "t is 1 at the first step. Is it counted up once too often?"),
    "stale_t": ({"t_off": -1}, "The state says how many steps were made. Which one is this?"),
    "eps_inside": (
        {"eps_is": "inside"},
        "Your divisor never gets below the root of eps. Where does the formula put eps?",
    ),
    "eps_before": (
        {"eps_is": "before"},
        "eps is added to the root of the corrected moment. What do you add it to?",
    ),
    "no_eps": (
        {"eps_is": "missing"},
        "Tiny gradients should make smaller steps (and 0 none). What does the formula add below?",
    ),
}


def mistakes_of(p: np.ndarray, g: np.ndarray, state: dict, hyper: tuple) -> list[Mistake]:
    """Return what people compute in place of the new parameter."""
    found = []
    for key, (switches, text) in WRONG.items():
        if switches.get("t_off", 0) + state.get("step", 0) < 0:
            continue  # the correction would divide by zero
        found.append(Mistake(key, adam(p, g, state, *hyper, **switches)[0], text))
    other = adam(p, g, state, *hyper, correct="second")[0]
    right = adam(p, g, state, *hyper)[0]
    found += [
        Mistake("one_corrected", other, "Only one of the two moments is corrected yet."),
        Mistake("sgd", p - hyper[0] * g, "That is plain SGD: what do the two moments do?"),
        Mistake("step_only", p - right, "That is the step. Return where p is after it."),
        Mistake("step_only", right - p, "That is the step. Return where p is after it."),
        Mistake("not_moved", p, "p has not moved. The new value is for you to return."),
    ]
    fixed = adam(p, g, state, hyper[0], (0.9, 0.999), hyper[2])[0]
    found.append(Mistake("fixed_betas", fixed, "These are the default betas. Which were given?"))
    fixed = adam(p, g, state, hyper[0], hyper[1], 1e-8)[0]
    found.append(Mistake("fixed_eps", fixed, "This is the default eps, 1e-8. Which was given?"))
    fixed = adam(p, g, state, 1e-3, hyper[1], hyper[2])[0]
    found.append(Mistake("fixed_rate", fixed, "This is the default learning rate, 1e-3."))
    if state:
        fresh = adam(p, g, {}, *hyper)[0]
        found.append(Mistake("forgets", fresh, "That is a first step: what was in the state?"))
    return [one for one in found if not agree(one.value, right, atol=0, rtol=1e-5)]


def check_step(t: Tester, p: np.ndarray, g: np.ndarray, state: dict, hyper: tuple) -> dict:
    """Ask for one step and compare the parameter; return the state that came back."""
    new_p, new_state = one_step(t, "adam_step", p, g, state, *hyper)
    t.close(
        new_p,
        adam(p, g, state, *hyper)[0],
        mistakes=mistakes_of(p, g, state, hyper),
        atol=1e-14,
        what="new_p",
        attempt="Compute both moments for the first entry by hand, correct them, make the step.",
    )
    return new_state


@adam_step.check(points=1)
def first_step(t: Tester) -> None:
    """The first step has the size of the learning rate, against the gradient's sign."""
    for _ in range(2):
        learning_rate, betas, eps = random_hyper(t)
        p, g = random_array(t), random_array(t) * t.random.choice([1, 5])
        check_step(t, p, g, {}, (learning_rate, betas, eps))


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
        g = np.round(t.random.uniform(1, 9), 1) * g * random_sign(t, g.size)
        check_step(t, np.zeros_like(g), g, {}, (learning_rate, betas, eps))


def random_sign(t: Tester, size: int) -> np.ndarray:
    """Return ones of random sign."""
    return t.random.choice([-1.0, 1.0], size)


@adam_step.check(points=2)
def later_steps(t: Tester) -> None:
    """It goes on from the state that it is given."""
    for low in (1, 3, 50):
        state = random_state(t, low=low, high=low + 2)
        check_step(t, random_array(t), random_array(t), state, random_hyper(t))


@adam_step.check(points=1)
def the_new_state(t: Tester) -> None:
    """It returns both moments, uncorrected, and the number of steps."""
    for state in ({}, random_state(t)):
        p, g, hyper = random_array(t), random_array(t), random_hyper(t)
        got = one_step(t, "adam_step", p, g, state, *hyper)[1]
        right = adam(p, g, state, *hyper)[1]
        betas = hyper[1]
        swapped = adam(p, g, state, *hyper, swapped=True)[1]
        for key, beta in zip(("first_moment", "second_moment"), betas, strict=True):
            corrected = right[key] / (1 - beta ** right["step"])
            going_on = "Corrected moments are for the step alone. What goes on to the next step?"
            wrong = [
                Mistake("corrected_state", corrected, going_on),
                Mistake("swapped", swapped[key], WRONG["swapped"][1]),
            ]
            if state:
                old = "That is the moment as it was before this step."
                wrong.append(Mistake("old_state", state[key], old))
            t.close(
                got[key],
                right[key],
                mistakes=wrong,
                what=f"new_state[{key!r}]",
                attempt="Compute this moment by hand: a share of the old, and a share of the new.",
            )
        if int(got["step"]) != right["step"]:
            t.fail(
                "step_count",
                f"new_state['step'] = {right['step']}",
                f"new_state['step'] = {int(got['step'])}",
                "It counts the steps that this parameter has made, this one among them.",
            )


@adam_step.check(points=1)
def float32(t: Tester) -> None:
    """A float32 parameter stays float32, and so do its moments."""
    p, g = (random_array(t).astype(np.float32) for _ in range(2))
    new_p, state = one_step(t, "adam_step", p, g, {}, *random_hyper(t))
    attempt = "Which array in your function was made with NumPy's default dtype, float64?"
    t.dtype(new_p, np.float32, attempt)
    t.dtype(state["first_moment"], np.float32, attempt)
    t.dtype(state["second_moment"], np.float32, attempt)


@adam_step.check(points=2)
def a_thousand_steps(t: Tester) -> None:
    """A thousand steps of two parameters in turn, each with its own state, follow the formula."""
    n, late, hyper = 1000, int(t.random.integers(200, 400)), random_hyper(t)
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
