"""Optimizer steps as formulas: what `step()` does while it is written down as a program.

The same arithmetic as `kernels/source/optimizers.py`. The learning rate is read from the group's
array when the program runs; the other hyperparameters are numbers of the program.
"""

import functools

from minigrad.array.dtypes import float64
from minigrad.graph.modes import state as modes
from minigrad.graph.probe import run_as
from minigrad.kernels import expression as e
from minigrad.kernels.backend import default_device
from minigrad.kernels.expression import Program, symbol, where

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


class _Rates:
    """Numbers of a group that follow its learning rate, as Arrays of shape (), made when needed."""

    def __init__(self, device, group):
        self.device, self.group, self.found = device, group, {}
        self.values = group.fixed()
        self.rate = group.learning_rate_array.array

    def of(self, dtype):
        """The learning rate in a dtype."""
        return self._cast("rate", dtype, lambda: self.rate)

    def keep(self, dtype):
        """1 - learning rate times decay, in a dtype."""
        return self._cast("keep", dtype, self._keep)

    def _keep(self):
        out = self.device.empty((), float64)
        self.device.elementwise(KEEP, (self.rate, self.values["weight_decay"]), (out,))
        return out

    def _cast(self, name, dtype, make):
        found = self.found.get((name, dtype))
        if found is None:
            found = self.found[name, dtype] = cast(self.device, make(), dtype)
        return found


def cast(device, x, dtype):
    """An Array in a dtype: itself if it has it."""
    return x if x.dtype is dtype else device.convert(x, dtype)


def _step_sgd(device, p, g, state, rates, values):
    rate, decay = rates.of(p.dtype), values["weight_decay"]
    if not values["momentum"]:
        return SGD["plain"], (p, g, rate, decay), (p,)
    b = state["momentum"].array
    program = SGD["nesterov" if values["nesterov"] else "momentum"]
    return program, (p, g, b, rate, values["momentum"], decay), (p, b)


def _step_adam(device, p, g, state, rates, values):
    (beta1, beta2), decay = values["betas"], values["weight_decay"]
    steps, size, correction = state["step"].array, *(device.empty((), float64) for _ in "12")
    device.prepare_write(steps)
    device.elementwise(FACTORS, (steps, rates.rate, beta1, beta2), (steps, size, correction))
    size, correction = (cast(device, x, p.dtype) for x in (size, correction))
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


def _step_rmsprop(device, p, g, state, rates, values):
    program = _rmsprop(bool(values["momentum"]), values["centered"])
    kept = [state[name].array for name in state]  # square_average, momentum, gradient_average
    alpha = values["alpha"]
    numbers = (alpha, 1.0 - alpha, values["eps"], values["weight_decay"], values["momentum"])
    return program, (p, g, *kept, rates.of(p.dtype), *numbers), (p, *kept)


STEPS = {"sgd": _step_sgd, "adam": _step_adam, "rmsprop": _step_rmsprop}


def step(optimizer, place):
    """`optimizer.step()`, known by that name."""
    run_as(f"{optimizer.algorithm}.step", _update, optimizer, place)


def _update(optimizer, place):
    """One step of all parameters with a gradient: an elementwise instruction each.

    place: the user's line. State that is missing is made for real: it outlives the program.
    """
    device, trace = default_device(), modes.trace
    for group in optimizer.groups:
        rates = _Rates(device, group)
        trace.call(rates.rate, f"{optimizer.algorithm}'s numbers")
        for p in group.parameters:
            trace.grad(p)
            if p._grad is None or not p._requires_grad:
                continue
            with trace.paused():
                state = optimizer.state_for(p, group)
            _name(trace, optimizer, p, state)
            g = device.contiguous(p._grad.array)
            rule = STEPS[optimizer.kernel]
            program, inputs, outputs = rule(device, p.array, g, state, rates, rates.values)
            device.prepare_write(p.array, place)
            if state is not None:
                device.prepare_write(state.block)
            device.elementwise(program, inputs, outputs)


def _name(trace, optimizer, p, state):
    """Names the memory of a parameter and its state, for reports."""
    name = p.name or "a parameter"
    trace.call(p.array, name)
    if p.group is not None:
        trace.call(p.group[0].flat, "gradients")
    if state is not None:
        trace.call(state.block, f"{optimizer.algorithm}'s state of {name}")
        if state.counters is not None:
            trace.call(state.counters, f"{optimizer.algorithm}'s steps of {name}")
