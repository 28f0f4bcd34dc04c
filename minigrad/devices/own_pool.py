"""Shares code among devices apart from the CPU: memory, and how Arrays find their device."""

from minigrad.array.array import Array, View, fork
from minigrad.array.dtypes import bool_
from minigrad.array.layout import MAX_SIZE, check_size, size_of
from minigrad.devices.table import Device
from minigrad.errors import DeviceError
from minigrad.formulas.expression import Program, call, logical_and, symbol
from minigrad.memory.interrupts import uninterrupted

_x, _low, _high = map(symbol, ("x", "low", "high"))
WITHIN = Program(
    ["x", "low", "high"],
    [logical_and(call("less_equal", _low, _x), call("less_equal", _x, _high))],
)


class OwnPool(Device):
    """A device table (see `table.Device`) over a pool of its own.

    Its Arrays are never `is_flat`: the fast paths of ops call CPU code.
    """

    @uninterrupted
    def empty(self, shape, dtype):
        size = size_of(shape)
        if size >= MAX_SIZE:
            check_size(shape)
        out = Array(self.pool.take(size * dtype.itemsize), shape, dtype)
        out.is_flat = False
        return out

    def check_here(self, x):
        """Raise DeviceError if an Array's memory belongs to another device."""
        if x.buffer.pool is not self.pool:
            raise DeviceError(
                f"wanted arrays on {self.name}, the device that computes",
                f"{x.dtype}{list(x.shape)} on {x.device}",
                f"move it: x.to({self.name!r})",
            )

    def share(self, x):
        """Copy views, and pinned or foreign Arrays, at once; fork others."""
        buffer = x.buffer
        if buffer.pins or buffer.is_foreign or type(x) is View:
            return self.convert(x, x.dtype)
        self.check_here(x)
        return fork(x)

    def item(self, x):
        return x.dtype.numbers(self.to_numpy(x)).item()

    def all_within(self, x, low, high, wanted=None):
        if not x.size:
            return True
        out, axes = self.empty((), bool_), tuple(range(len(x.shape)))
        self.reduce(WITHIN, "all", (x, int(low), int(high)), out, x.shape, axes)
        return bool(self.item(out))

    def side_by_side(self, function, count, work):
        """Call function(0, 0, count): functions of the table are parallel, if anything is."""
        function(0, 0, count)

    def parts(self, count, work):
        return 1
