"""Defines a plan's items besides Loops: matrix products, and calls of hand-written kernels."""

from typing import Any


class MatMul:
    """out = a @ b, or out += a @ b; batch axes broadcast. Every operand is readable by BLAS.

    epilogue: a Loop over the rows of `out` that runs on each block of rows while it is in the
    cache, or None.
    """

    epilogue: Any

    def __init__(self, instruction, a, b, out, accumulate=False):
        self.instruction, self.a, self.b, self.out = instruction, a, b, out
        self.accumulate = accumulate
        self.epilogue = None

    @property
    def instructions(self):
        more = self.epilogue.instructions if self.epilogue else []
        return [self.instruction, *more]

    @property
    def reads(self):
        operands = [self.a, self.b, *([self.out] if self.accumulate else [])]
        return operands + (self.epilogue.reads if self.epilogue else [])

    @property
    def writes(self):
        return [self.out, *(self.epilogue.writes if self.epilogue else [])]

    @property
    def flops(self):
        """Return the number of multiplications and additions."""
        return 2 * self.out.size * self.a.shape[-1]


class Opaque:
    """A call of a hand-written kernel: gather, random numbers, windows, scans, checks."""

    def __init__(self, instruction):
        self.instruction, self.instructions = instruction, [instruction]
        self.reads, self.writes = list(instruction.reads), list(instruction.writes)
        self.stops = instruction.stops
        self.calls_back = instruction.op == "callback"


def conflict(earlier, later):
    """Return whether `later` must run after `earlier`.

    No write to memory outside the step may pass an item that can stop the step. Items that can stop
    it keep their order, so that the error is that of the first, and so do calls into Python.
    """
    if getattr(earlier, "calls_back", False) and getattr(later, "calls_back", False):
        return True
    stops = [getattr(item, "stops", False) for item in (earlier, later)]
    if all(stops):
        return True
    if any(stops) and any(not r.value.is_temporary for r in (*earlier.writes, *later.writes)):
        return True
    return touch(earlier.writes, later.reads) or touch(
        (*earlier.reads, *earlier.writes), later.writes
    )


def touch(xs, ys):
    """Return whether a Ref of xs may share an element with one of ys; False is certain."""
    if not xs or not ys:
        return False
    by_value = {}
    for x in xs:
        by_value.setdefault(x.value, []).append(x)
    return any(x.overlaps(y) for y in ys for x in by_value.get(y.value, ()))
