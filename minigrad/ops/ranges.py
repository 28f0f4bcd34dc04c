"""Evenly spaced numbers, and the identity matrix."""

import math

import numpy as np

from minigrad.arguments import number, shown
from minigrad.array.dtypes import as_dtype, float32, int64
from minigrad.errors import ArgumentError, ArgumentTypeError, DTypeError, OutOfMemoryError
from minigrad.ops.creation import count_of
from minigrad.ops.devices import placed
from minigrad.ops.operands import as_float, from_data
from minigrad.ops.watching import named
from minigrad.tape.variable import Variable


def _made(name, make):
    """The result of make(), or the error for more elements than fit into memory."""
    try:
        return make()
    except (ValueError, OverflowError, MemoryError) as error:
        raise OutOfMemoryError(f"{name}: wanted fewer elements", f"{error}") from None


@named
def arange(start, stop=None, step=1, dtype=None, device=None):
    """start, start + step, ... up to but not including stop, like Python's range.  -> (n,)."""
    if stop is None:
        start, stop = 0, start
    for value in (start, stop, step):
        is_bool = isinstance(value, (bool, np.bool_))
        if is_bool or not isinstance(value, (int, float, np.integer, np.floating)):
            raise ArgumentTypeError("arange: wanted numbers", shown(value))
        if type(value) is int:
            as_float("arange", value)
    if not step:
        raise ArgumentError("arange: wanted a step other than 0", f"{step}")
    if not all(math.isfinite(value) for value in (start, stop, step)):
        raise ArgumentError("arange: wanted finite numbers", f"{start}, {stop}, {step}")
    values = _made("arange", lambda: np.arange(start, stop, step))
    if values.dtype.kind not in "fi":
        raise DTypeError("arange: wanted ints that int64 holds", f"{start}, {stop}"[:60])
    if dtype is None:
        is_whole = values.dtype.kind == "i"
        dtype = int64 if is_whole else from_data("arange", [start, stop, step])[1]
    dtype = as_dtype(dtype)
    return Variable(placed(device).from_numpy(values, dtype))


@named
def linspace(start, stop, count, dtype=float32, device=None):
    """count evenly spaced numbers from start to stop, both included.  -> (count,)."""
    start, stop = number("linspace", "start", start), number("linspace", "stop", stop)
    dtype = float32 if dtype is None else dtype
    count = count_of("linspace", count)
    values = _made("linspace", lambda: np.linspace(start, stop, count))
    return Variable(placed(device).from_numpy(values, as_dtype(dtype)))


@named
def eye(n, dtype=float32, device=None):
    """The identity matrix.  -> (n, n)."""
    n, dtype = count_of("eye", n), float32 if dtype is None else dtype
    values = _made("eye", lambda: np.eye(n))
    return Variable(placed(device).from_numpy(values, as_dtype(dtype)))
