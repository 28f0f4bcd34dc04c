"""Lesson 09: running averages, Adam, decay, and a schedule.

A parameter is an array `p`, its gradient is an array `g` of the same shape.
What an optimizer remembers about one parameter is its *state*: a dict,
empty before the parameter's first step, and from then on with three
entries,

    first_moment   array of p's shape, the running average of g
    second_moment  array of p's shape, the running average of g * g
    step           int, how many steps this parameter has made

Nothing here is changed in place except in the bug hunt: functions take a
parameter and its state and return new ones. Python and NumPy are enough.
"""

import numpy as np


def corrected_average(values, beta):
    """Follow values with a running average that starts at 0; correct it.

    Start with m = 0. Each value moves the average a little towards itself:
    the old m counts for a share of beta, the new value for the rest. After
    t values (t = 1 for the first) the weights of all values seen so far add
    up to 1 - beta**t and not to 1, so the *corrected* average is m / (1 -
    beta**t). Only what is returned is corrected; m itself goes on as it is.

    Args:
        values: array (n,), n >= 1.
        beta: float, 0 <= beta < 1.

    Returns:
        array (n,): the corrected average after each of the values.
    """
    raise NotImplementedError("corrected_average is yours to write")


def adam_step(
    p, g, state, learning_rate=1e-3, betas=(0.9, 0.999), eps=1e-8
):
    """One step of Adam for one parameter (Kingma and Ba 2015, Algorithm 1).

    Both moments are running averages that start at 0; use them corrected,
    as in `corrected_average`. t is 1 at the parameter's first step.

        p - learning_rate * first / (sqrt(second) + eps)

    where first and second are the *corrected* moments.

    Args:
        p: array, the parameter, float32 or float64.
        g: array of p's shape and dtype, its gradient; entries may be 0.
        state: dict, this parameter's state so far: {} before its first
            step.
        learning_rate: float.
        betas: (beta1, beta2), for the first and the second moment.
        eps: float.

    Returns:
        (new_p, new_state): the parameter after the step, of p's shape and
        dtype, and a new dict with 'first_moment' and 'second_moment' (not
        corrected, of p's shape and dtype) and 'step' (an int). p, g and
        state stay as they are.
    """
    raise NotImplementedError("adam_step is yours to write")


def step_all(
    parameters,
    gradients,
    states,
    learning_rate=1e-3,
    betas=(0.9, 0.999),
    eps=1e-8,
):
    """One step of Adam for a whole model, with a state per parameter.

    A parameter whose gradient is None was not part of the loss: it keeps
    its value and its state, and makes no step. A gradient of zeros is a
    gradient like any other: the parameter makes a step.

    Args:
        parameters: dict, name -> array; each of its own shape and dtype.
        gradients: dict, the same names -> array, or None.
        states: dict, name -> state; a name that is missing has made no step
            yet.
        learning_rate, betas, eps: as for adam_step, the same for all.

    Returns:
        (new_parameters, new_states): two new dicts. The first has every
        name of parameters; the second has the names that have made a step,
        now or before. What makes a step is as adam_step returns it.
    """
    raise NotImplementedError("step_all is yours to write")


def adamw_step(
    p,
    g,
    state,
    learning_rate=1e-3,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.01,
):
    """One step of Adam, decoupled weight decay (Loshchilov, Hutter 2019).

    First p shrinks by the share learning_rate * weight_decay; then follows
    a step of Adam from there. The gradient is used as it is: the decay is
    in neither moment. You may call your adam_step.

    Args:
        p, g, state, learning_rate, betas, eps: as for adam_step.
        weight_decay: float, 0 for none.

    Returns:
        (new_p, new_state): as adam_step does.
    """
    raise NotImplementedError("adamw_step is yours to write")


def warmup_cosine(t, warmup, steps, peak, minimum=0.0):
    """The learning rate of step t: up in a line, down along half a cosine.

    Steps are counted from 0.

    - t < warmup: a line, peak / warmup at t = 0 and peak at t = warmup - 1.
    - warmup <= t < steps: half a cosine, peak at t = warmup, half way down
      (the mean of peak and minimum) half way between warmup and steps, and
      minimum at t = steps.
    - t >= steps: minimum.

    Args:
        t: int, 0 or more.
        warmup: int, how many steps the line has; 0 for none.
        steps: int, above warmup.
        peak: float, the largest rate.
        minimum: float, the rate at the end.

    Returns:
        float: the learning rate.
    """
    raise NotImplementedError("warmup_cosine is yours to write")


# --- Bug hunt -------------------------------------------------------------
# An Adam that saves memory: it works in place, in five stages. Its author
# compared the first step with the formula, for gradients of all sizes, and
# it was right every time. From the second step on it is wrong. Find the
# stage that breaks it, write its place in STAGES (0 to 4) into BUG, then
# repair its function. `lean_adam` itself and the other stages are right.

BUG = ("stage", None)


def count(s, g):
    """Stage 0: one more step. Changes s['t']."""
    s["t"] += 1


def average_gradient(s, g):
    """Stage 1: the running average of g. Changes s['m']."""
    s["m"] *= s["beta1"]
    s["m"] += (1 - s["beta1"]) * g


def average_square(s, g):
    """Stage 2: the running average of g * g. Changes s['v']."""
    s["v"] *= s["beta2"]
    s["v"] += (1 - s["beta2"]) * g * g


def correct(s, g):
    """Stage 3: the corrected averages, s['first'] and s['second']."""
    s["first"], s["second"] = s["m"], s["v"]
    s["first"] /= 1 - s["beta1"] ** s["t"]
    s["second"] /= 1 - s["beta2"] ** s["t"]


def move(s, g):
    """Stage 4: the step. Changes s['p']."""
    s["p"] -= (
        s["learning_rate"] * s["first"] / (np.sqrt(s["second"]) + s["eps"])
    )


STAGES = [count, average_gradient, average_square, correct, move]


def lean_adam(
    p, gradients, learning_rate=0.1, betas=(0.9, 0.999), eps=1e-8
):
    """Make one step of Adam for each of the gradients.

    Args:
        p: array (n,), where it starts; stays as it is.
        gradients: array (steps, n), one row for each step.

    Returns:
        array (steps, n): the parameter after each step.
    """
    s = {
        "p": p.copy(), "m": np.zeros_like(p), "v": np.zeros_like(p), "t": 0,
        "learning_rate": learning_rate,
        "beta1": betas[0], "beta2": betas[1], "eps": eps,
    }  # fmt: skip
    path = []
    for g in gradients:
        for stage in STAGES:
            stage(s, g)
        path.append(s["p"].copy())
    return np.array(path)
