"""Steps of parameters on devices other than the CPU: a formula a parameter, one launch each."""

from minigrad.kernels.backend import device_named
from minigrad.optim.formulas import FACTORS, STEPS


class DevicePass:
    """The parameters of one dtype on one device, kept while they stay the same; as `passes.Pass`.

    Args:
        name: of the rule.
        device: the device's name.
        rows: (parameter, its state or None, its group); no state: it has had no gradient yet.
        needs_state: whether a row without state cannot be updated.
    """

    def __init__(self, name, device, rows, needs_state):
        self.rule, self.device, self.place = STEPS[name], device_named(device), None
        self.entries = [
            (p, p.array, state, group, state is not None or not needs_state)
            for p, state, group in rows
        ]

    def prepare(self, place):
        """Whether the rows are still right. place: the user's line."""
        self.place = place
        return all(
            p._grad is None or not p._requires_grad or (p.array is array and is_ready)
            for p, array, _, _, is_ready in self.entries
        )

    def run(self):
        """Updates each parameter that has a gradient."""
        device, found = self.device, {}
        for p, array, state, group, _ in self.entries:
            if p._grad is None or not p._requires_grad:
                continue
            rates = found.get(id(group))
            if rates is None:
                rates = found[id(group)] = _Numbers(device, group)
            g = device.contiguous(p._grad.array)
            program, inputs, outputs = self.rule(array, g, state, rates)
            device.prepare_write(array, self.place)
            if state is not None:
                device.prepare_write(state.block)
            device.elementwise(program, inputs, outputs)


class _Numbers:
    """What a rule asks about a group: plain numbers, but for what Adam computes from its steps."""

    def __init__(self, device, group):
        self.device, self.group = device, group
        self.values, self.rate = group.fixed(), group.learning_rate

    def of(self, dtype):
        """The learning rate."""
        return self.rate

    def keep(self, dtype):
        """1 - learning rate times decay."""
        return 1.0 - self.rate * self.values["weight_decay"]

    def factors(self, steps, beta1, beta2, dtype):
        """(step size, correction) of Adam, Arrays of shape (); counts a step."""
        device = self.device
        size, correction = (device.empty((), dtype) for _ in "12")
        device.prepare_write(steps)
        device.elementwise(FACTORS, (steps, self.rate, beta1, beta2), (steps, size, correction))
        return size, correction
