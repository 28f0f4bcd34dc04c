"""Records optimizer steps as formulas while a program is traced.

The program reads the learning rate from the group's array at each run. The other hyperparameters
are constants of the program. A step that a GradScaler may leave out computes the new values, and
keeps the old ones if the gradients are not finite: only a run knows that.
"""

import functools

from minigrad.array.dtypes import float64
from minigrad.devices.backend import default_device
from minigrad.formulas.expression import Program, equal, symbol, where
from minigrad.formulas.update import RATE, STEPS, flat
from minigrad.seams import seams


@functools.cache
def _unless_skipped(program, kept):
    """Returns a Program with one more input, `skip`: its first outputs are the inputs `kept` then.

    kept: the names of inputs, one for each of the first outputs. A skip of 0 is none.
    """
    is_made = equal(symbol("skip"), 0.0)
    chosen = [
        where(is_made, new, symbol(old)) for new, old in zip(program.outputs, kept, strict=False)
    ]
    return Program([*program.inputs, "skip"], [*chosen, *program.outputs[len(kept) :]])


class _TracedNumbers:
    """Computes the numbers of a group's update when needed: floats, or Arrays of shape ().

    skip: an Array () that is not 0 if the step is left out, or None.
    """

    def __init__(self, device, group, skip):
        self.device, self.update, self.found = device, group.update(), {}
        self.skip, self._skips = skip, {}
        self.values = flat(group.fixed())
        self.rate = group.learning_rate_array.array
        self.given = {**self.values, RATE: self.rate}

    def of(self, state, dtype):
        """Returns all numbers, in a dtype, for a parameter with this state, and counts its step."""
        device, update = self.device, self.update
        fresh = {}
        if update.counts_steps:
            steps, program = state["step"].array, update.counting
            device.prepare_write(steps)
            made = [device.empty((), float64) for _ in update.of_steps]
            given = {**self.given, STEPS: steps}
            inputs = [given[name] for name in program.inputs]
            program, inputs = self.unless_skipped(program, (STEPS,), inputs, float64)
            device.elementwise(program, inputs, (steps, *made))
            fresh = {k: cast(device, x, dtype) for k, x in zip(update.of_steps, made, strict=True)}
        every = range(len(update.numbers))
        return [fresh[k] if k in fresh else self._number(k, dtype) for k in every]

    def unless_skipped(self, program, kept, inputs, dtype):
        """Returns a program and its inputs, so that a step that is left out keeps `kept`."""
        if self.skip is None:
            return program, inputs
        if dtype not in self._skips:
            self._skips[dtype] = cast(self.device, self.skip, dtype)
        return _unless_skipped(program, kept), (*inputs, self._skips[dtype])

    def _number(self, k, dtype):
        program = self.update.of_rate.get(k)
        if program is None:
            return self.update.number(k, self.values)
        number = self.found.get((k, dtype))
        if number is None:
            made = self.rate
            if program.outputs[0].op != "symbol":
                made = self.device.empty((), float64)
                self.device.elementwise(program, [self.given[n] for n in program.inputs], (made,))
            number = self.found[k, dtype] = cast(self.device, made, dtype)
        return number


def cast(device, x, dtype):
    """Converts an Array to a dtype, or returns the Array if it has the dtype."""
    return x if x.dtype is dtype else device.convert(x, dtype)


def update(optimizer, place):
    """Records a step of all parameters with a gradient, one elementwise instruction for each.

    place: the user's line. It makes missing state outside the trace, because state outlives the
    program.
    """
    device, trace = default_device(), seams.effects
    skip = vars(optimizer).get("_skip")  # of a GradScaler
    for group in optimizer.groups:
        numbers = _TracedNumbers(device, group, skip)
        trace.call(numbers.rate, f"{optimizer.algorithm}'s numbers")
        for p in group.parameters:
            trace.grad(p)
            if p._grad is None or not p._requires_grad:
                continue
            with trace.paused():
                state = optimizer.state_for(p, group)
            _name(trace, optimizer, p, state)
            rule = group.update(p.dtype)
            g = device.contiguous(p._grad.array)
            slots = [state[name].array for name in rule.slots]
            inputs = (p.array, g, *slots, *numbers.of(state, p.dtype.arithmetic))
            device.prepare_write(p.array, place)
            if state is not None:
                device.prepare_write(state.block)
            kept = "p", *(f"s{k}" for k in range(len(slots)))
            program, inputs = numbers.unless_skipped(rule.program, kept, inputs, p.dtype.arithmetic)
            device.elementwise(program, inputs, (p.array, *slots))


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
