"""Comparisons of whole Variables."""

import numpy as np

from minigrad.errors import ArgumentError, ShapeError
from minigrad.kernels.backend import values
from minigrad.ops.operands import check_operands, variables


def allclose(a, b, relative=1e-5, absolute=1e-8, equal_nan=False):
    """Whether |a - b| <= absolute + relative * |b| everywhere, broadcast: True or False.

    Not part of the graph. NaN equals nothing, or NaN with equal_nan; infinities equal themselves.

    >>> import minigrad as mg
    >>> mg.allclose(mg.variable([1.0, 2.0]), [1.0, 2.000001])
    True
    """
    a, b = variables("allclose", a, b)
    check_operands("allclose", (a, b))
    if not (relative >= 0 and absolute >= 0):
        raise ArgumentError("allclose: wanted tolerances of at least 0", f"{relative}, {absolute}")
    try:
        found = np.allclose(values(a.array), values(b.array), relative, absolute, equal_nan)
    except ValueError:
        raise ShapeError(
            "allclose: wanted shapes that broadcast", f"{a.shape} and {b.shape}"
        ) from None
    return bool(found)


functions = (allclose,)
