"""What `for` iterates over: range (bounds may differ per thread), tuples, arrays, enumerate, zip.

Each becomes a closure (frame, mask) -> `steps`, and `steps(live)` returns (lanes that have a next
value, lanes that have finished, the next value).
"""

import ast
import builtins
import itertools
from typing import Any

import numpy as np

from minigrad.errors import SimulationError
from minigrad.simt.language.part import LanguagePart
from minigrad.simt.machine.arrays import ArrayView, whole
from minigrad.simt.machine.faults import fault, offender
from minigrad.simt.machine.masks import DEAD, NUMBERS, Misuse, describe, split, union
from minigrad.simt.machine.promotion import BINARY


class Iterations(LanguagePart):
    """The part of the compiler that handles what `for` iterates over."""

    def iteration(self, node):
        """Compile the expression after `in`."""
        site = self.source.site(node)
        if isinstance(node, ast.Call) and not node.keywords:
            callee = self.scope.static(node.func)
            if callee is range:
                if not 1 <= len(node.args) <= 3:
                    raise self.source.refuse(node, "range takes one, two or three numbers")
                parts = [self.expression(a) for a in node.args]
                return lambda f, m: _range(f, m, [p(f, m) for p in parts], site)
            if callee is builtins.enumerate and 1 <= len(node.args) <= 2:
                start = ast.Constant(0) if len(node.args) == 1 else node.args[1]
                return _together([_count(self.expression(start)), self.iteration(node.args[0])])
            if callee is zip and node.args:
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


def _count(start):
    """Return a maker of the endless numbers from `start` on."""

    def make(f, m):
        numbers: Any = BINARY["Add"](start(f, m), np.int64(0))
        rounds = itertools.count()
        return lambda live: (live, DEAD, numbers + np.int64(next(rounds)))

    return make


def _together(makers):
    """Return a maker of zip's steps: a lane finishes once one iterable has no value for it."""

    def make(f, m):
        several = [each(f, m) for each in makers]

        def steps(live):
            values, through = [], DEAD
            for one in several:
                live, left, value = one(live)
                through = union(through, left)
                if live is DEAD:
                    break
                values.append(value)
            return live, through, tuple(values)

        return steps

    return make


def _whole_part(part):
    """Return a bound as Numba takes it: of a float, such as math.ceil's, the whole part."""
    is_float = isinstance(part, NUMBERS) and part.dtype.kind == "f"
    return part.astype(np.int64) if is_float else part


def _range_dtype(parts):
    """Return int32 if all bounds fit it, uint64 if all are unsigned, else int64."""
    small = all(p.dtype.kind == "i" and p.dtype.itemsize <= 4 for p in parts)
    if small:
        return np.dtype(np.int32)
    return np.dtype(np.uint64 if all(p.dtype.kind == "u" for p in parts) else np.int64)


def _range(f, m, parts, site):
    parts = [_whole_part(part) for part in parts]
    for part in parts:
        whole(part, site, "a bound of a range")
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
    return _diverging(start, stop, step)


def _diverging(now, stop, step):
    """Count the rounds first, as the value after the last may overflow the type."""
    wide = np.uint64 if now.dtype.kind == "u" else np.int64
    way = stop.astype(wide) - now.astype(wide)
    some = np.where(step > 0, now < stop, now > stop)
    rounds = np.where(some, (way - np.sign(step)) // step + 1, 0)
    done = -1

    def steps(live):
        nonlocal now, done
        current, done = now, done + 1
        live, through = split(live, rounds > done)
        now = current + step
        return live, through, current

    return steps
