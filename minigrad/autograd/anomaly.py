"""Finds the first NaN or infinity, forward or backward: the public `mg.debug.detect_anomaly`."""

import math

import numpy as np

from minigrad.autograd.records import arrays_of
from minigrad.devices.backend import values as values_of
from minigrad.errors import NonFiniteError, user_line
from minigrad.memory.blocks import Block
from minigrad.tape import modes
from minigrad.tape.modes import state
from minigrad.tape.variable import Variable


class detect_anomaly(Block):
    """Raises NonFiniteError at the first non-finite value that an operation or its backward makes.

    The block checks every result, so it is slow. Leaves may have infinities, such as a mask of
    -inf, and operations may pass them on. A NaN always raises. Affects this thread only.

    Raises:
        NonFiniteError: the error has the line of the forward call, the shapes and the first bad
            index.

    >>> import minigrad as mg
    >>> with mg.debug.detect_anomaly():
    ...     mg.log(mg.variable([1.0, -1.0]))
    Traceback (most recent call last):
    ...
    minigrad.errors.NonFiniteError: log gave nan at index (1,) of float32[2]
    ...
    """

    def _begin(self):
        state.observers = (*state.observers, _check_backward)
        state.op_observers = (*state.op_observers, _check_forward)
        modes.watch(+1)
        return {}

    def _end(self, before, is_error):
        modes.watch(-1)
        observers, op_observers = list(state.observers), list(state.op_observers)
        observers.remove(_check_backward)
        op_observers.remove(_check_forward)
        state.observers, state.op_observers = tuple(observers), tuple(op_observers)


def first_bad(array, only_nan=False):
    """Returns (index, value) of the first NaN or infinity of an Array, or None."""
    if not array.dtype.is_float:
        return None
    values = values_of(array)
    bad = np.isnan(values) if only_nan else ~np.isfinite(values)
    if not bad.any():
        return None
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    return index, float(values[index])


def _check_forward(name, y, inputs):
    if not inputs or first_bad(y.array) is None:
        return  # finite, or data from the user
    has_infinite = any(_has_infinity(x) for x in inputs)
    bad = first_bad(y.array, only_nan=has_infinite)
    if bad is None:
        return  # an infinity that came from the inputs
    index, value = bad
    raise NonFiniteError(
        f"{name} gave {value} at index {index} of {y.dtype}{list(y.shape)}",
        fix="look at the inputs: keep them inside the function's domain, or use its stable form",
        details=[(f"input {k}", _described(x)) for k, x in enumerate(inputs)],
    )


def _has_infinity(x):
    if isinstance(x, Variable):
        return x.dtype.is_float and bool(np.isinf(values_of(x.array)).any())
    return isinstance(x, float) and math.isinf(x)


def _described(x):
    """Describes an input: its shape and range, or its first bad value."""
    if not isinstance(x, Variable):
        return repr(x)
    if not x.size:
        return x.describe()
    bad = first_bad(x.array)
    if bad is not None:
        return f"{x.describe()}, {bad[1]} at index {bad[0]} already"
    values = values_of(x.array)
    return f"{x.describe()}, from {values.min():.6g} to {values.max():.6g}"


def _check_backward(node, dy, gradients, seconds):
    for k, (edge, gradient) in enumerate(zip(node.edges, gradients, strict=True)):
        if edge is None:
            continue
        for array in arrays_of(gradient):
            bad = first_bad(array)
            if bad is not None:
                _raise_backward(node, dy, k, array, *bad)


def _raise_backward(node, dy, k, array, index, value):
    names = node.plan.input_names
    name = names[k] if k < len(names) else str(k)
    details = [("backward", user_line())]
    for upstream in arrays_of(dy):
        came = first_bad(upstream)
        what = "finite" if came is None else f"{came[1]} at index {came[0]} already"
        shape = f"{upstream.dtype}{list(upstream.shape)}"
        details.append(("upstream gradient", f"{shape}, {what}"))
    for saved, kept in node.saved.items():
        if hasattr(kept, "dtype"):
            details.append((f"saved {saved}", _described(Variable(kept))))
    raise NonFiniteError(
        f"the backward of {node.op} gave {value} at index {index} of the gradient of its input "
        f"{name}, {array.dtype}{list(array.shape)}",
        fix="look at the forward call above: its derivative is infinite or undefined there",
        where=node.line,
        details=details,
    )
