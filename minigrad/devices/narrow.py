"""Narrow dtypes on every device: what accumulates runs in the wider type, and is rounded once.

An elementwise kernel loads and stores narrow elements itself. A sum, a product or a search has more
than one step, so its operands become Arrays of the arithmetic type first, and its results are
rounded when it is done. So `@computes_wide` gives a device table's functions narrow dtypes, and the
functions need not know them. Copies by an index move elements as they are.
"""

import functools
import math

from minigrad.array.array import Array
from minigrad.devices.backend import device_of
from minigrad.formulas.expression import Program, call, symbol

_cut = {}  # {dtype: Program} that cuts off the digits of a fraction that the dtype lacks


def is_narrow(x):
    """Return whether an operand is an Array of a narrow dtype."""
    return isinstance(x, Array) and x.dtype.is_narrow


def wide_of(dtype):
    """Return the arithmetic type of a narrow dtype, or the dtype itself."""
    return dtype.arithmetic if dtype.is_narrow else dtype


def widened(device, x):
    """Return a contiguous Array of the arithmetic type if x is narrow, else x."""
    return device.convert(x, x.dtype.arithmetic) if is_narrow(x) else x


def narrowed(device, x, dtype):
    """Return x in a narrow dtype, from which it was widened, or x if the dtype is not narrow."""
    return device.convert(x, dtype) if dtype.is_narrow else x


def _target(device, out, is_read):
    """Return (narrow Array, its wide stand-in of the same shape, what to copy of the latter).

    Along axes of stride 0, all places of a target are one element, and so they are in the stand-in.
    """
    pairs = list(zip(out.shape, out.strides, strict=True))
    once = out.view(tuple(n if s else min(n, 1) for n, s in pairs), out.strides)
    wide = device.empty(once.shape, out.dtype.arithmetic)
    if is_read:
        device.copy(once, wide)
    strides = tuple(w if s else 0 for w, (_, s) in zip(wide.strides, pairs, strict=True))
    return once, wide.view(out.shape, strides), wide


def _reading(function):
    """Wrap a function of one Array, first, that writes none of the Array's dtype."""

    @functools.wraps(function)
    def wide(self, x, *more):
        return function(self, widened(self, x), *more)

    return wide


def _writing(place, is_read=False):
    """Return a decorator for functions that write to the argument at a place, and no other.

    All their Arrays of floats have one dtype. is_read: whether they add to what is there.
    """

    def decorate(function):
        @functools.wraps(function)
        def wide(self, *arguments, **named):
            out = arguments[place]
            if not out.dtype.is_narrow:
                return function(self, *arguments, **named)
            wides = [x if x is out else widened(self, x) for x in arguments]
            named = {key: widened(self, x) for key, x in named.items()}
            once, wides[place], whole = _target(self, out, is_read)
            function(self, *wides, **named)
            return self.copy(whole, once)

        return wide

    return decorate


def _matmul(function):
    write, add = _writing(2)(function), _writing(2, is_read=True)(function)

    @functools.wraps(function)
    def wide(self, a, b, out, bias=None, accumulate=False):
        if not out.dtype.is_narrow:
            return function(self, a, b, out, bias, accumulate)
        if self.matmul_narrow(a, b, out, bias, accumulate):
            return None
        return (add if accumulate else write)(self, a, b, out, bias=bias, accumulate=accumulate)

    return wide


def _reduce(function):
    @functools.wraps(function)
    def wide(self, program, how, inputs, out, shape, axes):
        if not out.dtype.is_narrow:
            return function(self, program, how, inputs, out, shape, axes)
        result = self.empty(out.shape, out.dtype.arithmetic)
        function(self, program, how, inputs, result, shape, axes)
        return self.copy(result, out)

    return wide


def _rows(function):
    @functools.wraps(function)
    def wide(self, program, modes, inputs, outputs, shape):
        sums = [k for k, mode in enumerate(modes) if mode == "columns" and is_narrow(outputs[k])]
        targets = list(outputs)
        for k in sums:
            targets[k] = self.empty(outputs[k].shape, outputs[k].dtype.arithmetic)
        function(self, program, modes, inputs, targets if sums else outputs, shape)
        for k in sums:
            self.copy(targets[k], outputs[k])

    return wide


def _random(function):
    @functools.wraps(function)
    def wide(self, array, kind, seed, counter, low=0, high=0):
        if not array.dtype.is_narrow:
            return function(self, array, kind, seed, counter, low, high)
        drawn = self.empty(array.shape, array.dtype.arithmetic)
        function(self, drawn, kind, seed, counter, low, high)
        if kind != "uniform":
            return self.copy(drawn, array)
        return self.elementwise(_fraction(array.dtype), (drawn,), (array,))

    return wide


def _fraction(dtype):
    """Return the Program that keeps the digits of a number below 1 that a dtype holds.

    Rounded, a number close to 1 would become 1.
    """
    if dtype not in _cut:
        below_one, _ = math.frexp(dtype.limits[1])
        steps = 1.0 / (1.0 - below_one)
        _cut[dtype] = Program(["x"], [call("floor", symbol("x") * steps) / steps])
    return _cut[dtype]


def _squares(function):
    @functools.wraps(function)
    def wide(self, arrays):
        return function(self, [widened(self, x) for x in arrays])

    return wide


def _scale(function):
    @functools.wraps(function)
    def wide(self, arrays, factors):
        wides = [widened(self, x) for x in arrays]
        function(self, wides, factors)
        for x, y in zip(arrays, wides, strict=True):
            if x is not y:
                self.copy(y, x)

    return wide


WRAPPERS = {
    "reduce": _reduce, "rows": _rows, "random": _random, "squares": _squares, "scale": _scale,
    "arg_reduce": _reading, "argsort": _reading, "largest": _reading,
    "matmul": _matmul, "scatter_add": _writing(2, is_read=True),
    "cumsum": _writing(1), "unfold": _writing(1), "fold": _writing(1),
}  # fmt: skip


def computes_wide(device):
    """Decorate a device table: narrow operands of these functions are widened."""
    for name, wrapper in WRAPPERS.items():
        function = getattr(device, name, None)
        if function is not None:
            setattr(device, name, wrapper(function))
    return device


def rounds_once(forward):
    """Decorate an operation's forward, which may work in parts: its narrow result is rounded once.

    Ranges that run in parallel make no Arrays, so nothing may be widened within them.
    """

    @functools.wraps(forward)
    def wide(*arguments):
        first = next(filter(is_narrow, arguments), None)
        if first is None:
            return forward(*arguments)
        device = device_of(first)
        result = forward(*[widened(device, x) for x in arguments])
        return device.convert(result, first.dtype)

    return wide
