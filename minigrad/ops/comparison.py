"""Comparisons of whole Variables."""

import numpy as np

from minigrad.arguments import flag, number
from minigrad.devices.backend import values
from minigrad.errors import ShapeError
from minigrad.ops.operands import check_operands, variables


def allclose(a, b, relative=1e-5, absolute=1e-8, equal_nan=False):
    """Whether |a - b| <= absolute + relative * |b| everywhere.  (...), (...) -> a bool.

    Broadcast. Not part of the graph. NaN equals nothing, or NaN with equal_nan; infinities equal
    themselves.

    >>> import minigrad as mg
    >>> mg.allclose(mg.variable([1.0, 2.0]), [1.0, 2.000001])
    True
    """
    a, b = variables("allclose", a, b)
    check_operands("allclose", (a, b))
    relative = number("allclose", "relative", relative, 0.0)
    absolute = number("allclose", "absolute", absolute, 0.0)
    equal_nan = flag("allclose", "equal_nan", equal_nan)
    try:
        found = np.allclose(values(a.array), values(b.array), relative, absolute, equal_nan)
    except ValueError:
        raise ShapeError(
            "allclose: wanted shapes that broadcast", f"{a.shape} and {b.shape}"
        ) from None
    return bool(found)


functions = (allclose,)
