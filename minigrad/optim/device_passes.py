"""Optimizer steps on devices other than the CPU: one launch updates several parameters."""

from minigrad.devices.backend import device_named


class DevicePass:
    """Like `passes.UpdatePass`, for the parameters of one dtype on one device.

    Args:
        update: the formulas.Update of all rows.
        device: the device's name.
        rows: (parameter, its state or None, its group); None before its first gradient.
    """

    def __init__(self, update, device, rows):
        self.update, self.device, self.place = update, device_named(device), None
        self.entries = [
            (p, p.array, state, group, state is not None or not update.has_state)
            for p, state, group in rows
        ]

    def prepare(self, place):
        """Whether the rows are still valid. place: the user's line."""
        self.place = place
        return all(
            p._grad is None or not p._requires_grad or (p.array is array and is_ready)
            for p, array, _, _, is_ready in self.entries
        )

    def run(self):
        """Updates each parameter that has a gradient, with one call per group."""
        device, found = self.device, {}
        for p, array, state, group, _ in self.entries:
            if p._grad is None or not p._requires_grad:
                continue
            device.prepare_write(array, self.place)
            slots, steps = (), None
            if state is not None:
                device.prepare_write(state.block)
                steps = state.counters
                slots = [state[name].array for name in state if name != "step"]
                if steps is not None:
                    device.prepare_write(steps)
            row = array, device.contiguous(p._grad.array), slots, steps
            found.setdefault(id(group), (group, []))[1].append(row)
        for group, rows in found.values():
            device.update(self.update, rows, group.numbers())
