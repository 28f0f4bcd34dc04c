"""The methods behind `a + b`, `a & b` and other operators."""

import numpy as np

from minigrad.errors import DTypeError
from minigrad.tape.variable import Variable


def operator(op, is_reflected=False):
    """A binary operator that returns NotImplemented for operands of unknown types."""

    def method(a, b):
        if not isinstance(b, (Variable, int, float, list, tuple)) and not hasattr(b, "__array__"):
            return NotImplemented
        return op.apply(b, a) if is_reflected else op.apply(a, b)

    return method


def logical_operator(op, sign, is_reflected=False):
    """&, | or ~ of truth values; integers are refused because minigrad has no bitwise ops."""
    method = operator(op, is_reflected) if op.inputs[1:] else op.apply

    def checked(*operands):
        for x in operands:
            dtype = x.dtype if isinstance(x, Variable) else np.asarray(x).dtype
            if dtype.kind in "iuf":
                raise DTypeError(
                    f"{sign}: wanted truth values",
                    f"{dtype}",
                    f"compare first, (a > 0) {sign} (b > 0), or mg.{op.name}, "
                    "where a number counts as x != 0"
                    if op.inputs[1:]
                    else f"compare first: ~(a > 0), or mg.{op.name}(a)",
                )
        return method(*operands)

    return checked
