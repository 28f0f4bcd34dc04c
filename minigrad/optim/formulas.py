"""Optimizer steps as formulas, with the arithmetic of `devices/source/optimizers.py`.

For steps that are written down as a program. A rule of STEPS takes Arrays p and g, the
ParameterState, and rates, which say how the learning rate is known: `of` and `keep` in a dtype,
`factors`, `values` and `group`. It returns a Program, inputs and outputs.
"""

import functools

from minigrad.formulas import expression as e
from minigrad.formulas.expression import Program, symbol, where

p_, g_, b_, m_, v_, s_, a_, t_ = map(symbol, ("p", "g", "b", "m", "v", "s", "a", "t"))
rate_, momentum_, decay_, keep_ = map(symbol, ("rate", "momentum", "decay", "keep"))
beta1_, beta2_, rest1_, rest2_ = map(symbol, ("beta1", "beta2", "rest1", "rest2"))
alpha_, rest_, eps_, correction_ = map(symbol, ("alpha", "rest", "eps", "correction"))

DECAYED = where(
    e.call("greater", decay_, 0.0), decay_ * p_, 0.0
)  # gone from the kernel without decay

KEEP = Program(["rate", "decay"], [1.0 - rate_ * decay_])
FACTORS = Program(  # steps, step size, correction of the second moment's bias
    ["t", "rate", "beta1", "beta2"],
    [
        t_ + 1.0,
        rate_ / (1.0 - e.power(beta1_, t_ + 1.0)),
        1.0 / e.sqrt(1.0 - e.power(beta2_, t_ + 1.0)),
    ],
)


def _sgd():
    """{how: Program}: 'plain', 'momentum' and 'nesterov'."""
    d = g_ + DECAYED
    speed = momentum_ * b_ + d
    inputs = ["p", "g", "b", "rate", "momentum", "decay"]
    return {
        "plain": Program(["p", "g", "rate", "decay"], [p_ - rate_ * d]),
        "momentum": Program(inputs, [p_ - rate_ * speed, speed]),
        "nesterov": Program(inputs, [p_ - rate_ * (d + momentum_ * speed), speed]),
    }


def _adam():
    d = g_ + DECAYED
    first = beta1_ * m_ + rest1_ * d
    second = beta2_ * v_ + rest2_ * d * d
    stepped = keep_ * p_ - rate_ * first / (e.sqrt(second) * correction_ + eps_)
    inputs = [
        "p", "g", "m", "v", "beta1", "rest1", "beta2", "rest2", "rate", "correction", "eps", "keep",
        "decay",
    ]  # fmt: skip
    return Program(inputs, [stepped, first, second])


@functools.cache
def _rmsprop(has_momentum, is_centred):
    """The formulas over p, g, s, then b and a if there are such, then the numbers."""
    d = g_ + DECAYED
    square = alpha_ * s_ + rest_ * d * d
    names, outputs = ["p", "g", "s"], [square]
    average, under = alpha_ * a_ + rest_ * d, square
    if is_centred:
        under = square - average * average
        under = where(e.call("greater", under, 0.0), under, 0.0)  # rounding can push it below
    d = d / (e.sqrt(under) + eps_)
    if has_momentum:
        d = momentum_ * b_ + d
        names.append("b")
        outputs.append(d)
    if is_centred:
        names.append("a")
        outputs.append(average)
    names += ["rate", "alpha", "rest", "eps", "decay", "momentum"]
    return Program(names, [p_ - rate_ * d, *outputs])


SGD, ADAM = _sgd(), _adam()


def _step_sgd(p, g, state, rates):
    values = rates.values
    rate, decay = rates.of(p.dtype), values["weight_decay"]
    if not values["momentum"]:
        return SGD["plain"], (p, g, rate, decay), (p,)
    b = state["momentum"].array
    program = SGD["nesterov" if values["nesterov"] else "momentum"]
    return program, (p, g, b, rate, values["momentum"], decay), (p, b)


def _step_adam(p, g, state, rates):
    values = rates.values
    (beta1, beta2), decay = values["betas"], values["weight_decay"]
    size, correction = rates.factors(state["step"].array, beta1, beta2, p.dtype)
    m, v = state["first_moment"].array, state["second_moment"].array
    if rates.group.is_decoupled:
        keep, decay = rates.keep(p.dtype), 0.0
    else:
        keep = 1.0
    inputs = (
        p, g, m, v, beta1, 1.0 - beta1, beta2, 1.0 - beta2, size, correction, values["eps"], keep,
        decay,
    )  # fmt: skip
    return ADAM, inputs, (p, m, v)


def _step_rmsprop(p, g, state, rates):
    values = rates.values
    program = _rmsprop(bool(values["momentum"]), values["centered"])
    kept = [state[name].array for name in state]  # square_average, momentum, gradient_average
    alpha = values["alpha"]
    numbers = (alpha, 1.0 - alpha, values["eps"], values["weight_decay"], values["momentum"])
    return program, (p, g, *kept, rates.of(p.dtype), *numbers), (p, *kept)


STEPS = {"sgd": _step_sgd, "adam": _step_adam, "rmsprop": _step_rmsprop}
