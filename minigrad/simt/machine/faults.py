"""Errors of kernels: the line with its text, the block and the thread, and what to do."""

import numpy as np

from minigrad.errors import SimulationError
from minigrad.simt.machine.lanes import first_active
from minigrad.simt.machine.masks import NUMBERS, Misuse


def fault(kind, wanted, site, lanes=None, lane=None, got=None, fix=None, details=()):
    """Return an error of class `kind` at a site, for one lane if it is known."""
    rows = list(details)
    if lanes is not None and lane is not None:
        rows.insert(0, ("thread", lanes.name(lane)))
    error = kind(wanted, got=got, fix=fix, where=site.where, details=rows)
    error.kernel = site.function
    if lanes is not None and lane is not None:
        error.block, error.thread = lanes.block_of(lane), lanes.thread_of(lane)
    return error


def offender(lanes, mask, bad):
    """Return the lowest active lane for which `bad` (scalar or vector) holds, or None."""
    return first_active(mask, np.broadcast_to(bad, (lanes.count,)))


def no_zero(lanes, mask, a, b, site):
    """Raise if an active lane divides an integer by zero: a GPU's result is undefined."""
    if not (isinstance(a, NUMBERS) and isinstance(b, NUMBERS)):
        return  # there is no such operation: it raises itself
    if a.dtype.kind == "f" or b.dtype.kind == "f":
        return
    zero = b == 0
    if zero.any() and (lane := offender(lanes, mask, zero)) is not None:
        raise fault(
            SimulationError,
            "an integer is divided by zero",
            site,
            lanes,
            lane,
            fix="a GPU raises nothing here and goes on with a wrong number: test the divisor first",
        )


def explained(error, site):
    """Turn a `Misuse`, or an error of Python or NumPy in a statement, into a kernel's error."""
    if isinstance(error, Misuse):
        return fault(SimulationError, str(error), site, fix=error.fix)
    return fault(
        SimulationError,
        f"this line of the kernel failed: {error}",
        site,
        got=type(error).__name__,
        fix="the message is that of Python or NumPy, which ran the line for all threads at once",
    )
