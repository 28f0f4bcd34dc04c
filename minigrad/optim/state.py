"""The state of an optimizer per parameter: views of one block of memory, and counters."""

from minigrad.array.dtypes import float64
from minigrad.array.layout import contiguous_strides
from minigrad.devices.backend import device_of
from minigrad.formulas.update import MASTER, MOST_OF_STEPS
from minigrad.tape.variable import Variable, filled

ALIGN = 16  # elements; float32 slots start on a cache line
COUNTERS = 1 + MOST_OF_STEPS  # the step count, and numbers that kernels compute from it


class ParameterState(dict):
    """{name: Variable}: slots of the parameter's shape, and perhaps the `step` count.

    The slots have the dtype that kernels compute in. One of them, `master`, is a copy of a narrow
    parameter, which a step updates, and rounds to the parameter: so updates add up which are too
    small for the parameter. All memory is on the parameter's device. block: the Array of all slots.
    slot: the elements from one slot to the next. counters: float64, the step and the numbers that
    kernels compute from it.
    """

    def __init__(self, parameter, names, has_step):
        super().__init__()
        near = parameter.array
        self.shape, self.device = parameter.shape, parameter.device
        self.dtype = parameter.dtype.arithmetic
        self.slot = -(-max(parameter.size, 1) // ALIGN) * ALIGN
        self.block = filled(near, 0.0, (self.slot * len(names),), self.dtype)
        strides = contiguous_strides(self.shape)
        for k, name in enumerate(names):
            self[name] = Variable(self.block.view(self.shape, strides, k * self.slot))
        if MASTER in self:
            device_of(near).copy(near, self[MASTER].array)
        self.counters = None
        if has_step:
            self.counters = filled(near, 0.0, (COUNTERS,), float64)
            self["step"] = Variable(self.counters.view((), (), 0))

    def fits(self, parameter, names, has_step):
        """Returns whether it has the shape, dtype, device and names that the parameter needs."""
        wanted = {*names, "step"} if has_step else {*names}
        return (
            self.shape == parameter.shape
            and self.dtype is parameter.dtype.arithmetic
            and self.device == parameter.device
            and self.keys() == wanted
        )

    def copy_for(self, parameter):
        """Returns an exact copy for another parameter of the same shape, dtype and device."""
        names = [name for name in self if name != "step"]
        out = ParameterState(parameter, names, self.counters is not None)
        device = device_of(parameter.array)
        device.copy(self.block, out.block)
        if self.counters is not None:
            device.copy(self.counters, out.counters)
        return out

    def __reduce_ex__(self, protocol):
        return dict, (dict(self),)  # copies have the values, without the block for kernels

    def take(self, values):
        """Copies in the values with known names: Variables of the same shape, on any device."""
        for name, value in values.items():
            if name in self:
                self[name].copy_(value.detach().to(self.device))
