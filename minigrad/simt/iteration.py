"""What `for` goes over: range with bounds of each thread's own, tuples, arrays, enumerate, zip.

Each becomes a closure (frame, mask) -> `steps`, and `steps(live)` gives (lanes that have a next
value, lanes that are through, the value).
"""

import ast
import builtins

import numpy as np

from minigrad.errors import SimulationError
from minigrad.simt.arrays import ArrayView, whole
from minigrad.simt.faults import fault, offender
from minigrad.simt.masks import DEAD, Misuse, describe, split
from minigrad.simt.part import Part


class Iterations(Part):
    """The part of the compiler that knows what `for` goes over."""

    def iteration(self, node):
        """What stands after `in`."""
        site = self.source.site(node)
        if isinstance(node, ast.Call) and not node.keywords:
            found = self.scope.static(node.func)
            if found is range:
                if not 1 <= len(node.args) <= 3:
                    raise self.source.refuse(node, "range takes one, two or three numbers")
                parts = [self.expression(a) for a in node.args]
                return lambda f, m: _range(f, m, [p(f, m) for p in parts], site)
            if found is builtins.enumerate and len(node.args) == 1:
                return _together([None, self.iteration(node.args[0])])
            if found is zip and node.args:
                return _together([self.iteration(a) for a in node.args])
        if isinstance(node, ast.List):
            node = ast.copy_location(ast.Tuple(node.elts, ast.Load()), node)
        values = self.expression(node)
        return lambda f, m: _elements(f, m, values(f, m), site)


def _listed(values):
    values = iter(values)

    def steps(live):
        for value in values:
            return live, DEAD, value
        return DEAD, live, None

    return steps


def _elements(f, m, value, site):
    if isinstance(value, tuple):
        return _listed(value)
    if isinstance(value, ArrayView) or hasattr(value, "load"):
        if not hasattr(value, "shape"):
            raise Misuse("a pointer has no end, so `for` cannot go over it")
        places = iter(np.arange(value.shape[0]))

        def steps(live):
            for k in places:
                return live, DEAD, value.load((k,), f.wave.lanes, live, site)
            return DEAD, live, None

        return steps
    raise Misuse(f"`for` cannot go over {describe(value)}")


def _together(makers):
    """zip; None stands for the count of enumerate."""

    def make(f, m):
        several = [None if k is None else k(f, m) for k in makers]
        count = -1

        def steps(live):
            nonlocal count
            count += 1
            values, through = [], DEAD
            for one in several:
                if one is None:
                    values.append(np.int64(count))
                    continue
                live, through, value = one(live)
                if live is DEAD:
                    return DEAD, through, None
                if through is not DEAD:
                    raise Misuse("zip in a kernel needs the same length in all threads")
                values.append(value)
            return live, DEAD, tuple(values)

        return steps

    return make


def _range_dtype(parts):
    """int32 where all bounds are, uint64 where they are unsigned, else int64."""
    small = all(p.dtype.kind == "i" and p.dtype.itemsize <= 4 for p in parts)
    if small:
        return np.dtype(np.int32)
    return np.dtype(np.uint64 if all(p.dtype.kind == "u" for p in parts) else np.int64)


def _range(f, m, parts, site):
    for part in parts:
        whole(part, site)
    dtype = _range_dtype(parts)
    if len(parts) == 1:
        parts = [dtype.type(0), parts[0]]
    start, stop, *rest = (p.astype(dtype, copy=False) for p in parts)
    step = rest[0] if rest else dtype.type(1)
    zero = step == 0
    if zero.any() and (lane := offender(f.wave.lanes, m, zero)) is not None:
        raise fault(SimulationError, "the step of a range is 0", site, f.wave.lanes, lane)
    if start.ndim == stop.ndim == step.ndim == 0:
        kind = dtype.type
        return _listed(kind(k) for k in range(int(start), int(stop), int(step)))
    return _diverging(start, stop, step, dtype)


def _diverging(now, stop, step, dtype):
    up = step > 0
    mixed = up.ndim != 0 and up.any() != up.all()

    def steps(live):
        nonlocal now
        current = now
        if mixed:
            more = np.where(up, current < stop, current > stop)
        else:
            more = current < stop if up.any() else current > stop
        live, through = split(live, more)
        now = current + step
        return live, through, current

    return steps
