"""Optimizer steps by formulas while they are written down as a program.

The learning rate is read from the group's array when the program runs; the other hyperparameters
are numbers of the program.
"""

from minigrad.array.dtypes import float64
from minigrad.devices.backend import default_device
from minigrad.optim.formulas import FACTORS, KEEP, STEPS
from minigrad.tape.modes import state as modes
from minigrad.tape.probe import run_as


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

    def factors(self, steps, beta1, beta2, dtype):
        """(step size, correction) of Adam in a dtype; counts a step."""
        device = self.device
        size, correction = (device.empty((), float64) for _ in "12")
        device.prepare_write(steps)
        device.elementwise(FACTORS, (steps, self.rate, beta1, beta2), (steps, size, correction))
        return cast(device, size, dtype), cast(device, correction, dtype)

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
            program, inputs, outputs = rule(p.array, g, state, rates)
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
