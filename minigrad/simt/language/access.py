"""Subscripts and attributes -> closures: elements of arrays and tuples, views, shapes."""

import ast

import numpy as np

from minigrad.errors import NotInCudaError, SimulationError
from minigrad.simt.language.language import Intrinsic
from minigrad.simt.language.names import MISSING
from minigrad.simt.language.part import LanguagePart
from minigrad.simt.machine.arrays import ArrayView, Triple, whole
from minigrad.simt.machine.faults import fault, offender
from minigrad.simt.machine.masks import NUMBERS, Misuse, describe, merge


class Access(LanguagePart):
    """The part of the compiler that handles subscripts and attributes."""

    def constant_array(self, array, name):
        """Compile a NumPy array from outside the kernel, which becomes read-only memory."""

        def read(f, m):
            return f.wave.constants(array, name)

        return read

    def index(self, node):
        """Compile an index to a closure that returns a tuple of scalars, vectors and slices."""
        if isinstance(node, ast.Tuple):
            parts = [self._one_index(part) for part in node.elts]
            return lambda f, m: tuple([part(f, m) for part in parts])
        only = self._one_index(node)

        def run(f, m):
            value = only(f, m)
            return value if isinstance(value, tuple) else (value,)

        return run

    def _one_index(self, node):
        if not isinstance(node, ast.Slice):
            return self.expression(node)
        ends = [
            self.expression(end) if end is not None else None
            for end in (node.lower, node.upper, node.step)
        ]
        return lambda f, m: slice(*(None if end is None else end(f, m) for end in ends))

    def on_Subscript(self, node):
        base, index = self.expression(node.value), self.index(node.slice)
        site = self.source.site(node)

        def run(f, m):
            array = base(f, m)
            at = index(f, m)
            if array.__class__ is tuple:
                return _of_tuple(array, at, f, m, site)
            load = getattr(array, "load", None)
            if load is None:
                raise Misuse(f"{describe(array)} has no elements")
            return load(at, f.wave.lanes, m, site)

        return run

    def on_Attribute(self, node):
        value = self.scope.static(node)
        if isinstance(value, Intrinsic):
            return self.intrinsic_value(value, node)
        if isinstance(value, np.ndarray):
            return self.constant_array(value, ast.unparse(node))
        if value is not MISSING:
            raise self.source.refuse(
                node, f"{ast.unparse(node)} cannot be used as a value in a kernel"
            )
        if self.scope.static(node.value) is not MISSING and not isinstance(
            self.scope.static(node.value), np.ndarray
        ):
            raise self.source.refuse(node, f"there is no {ast.unparse(node)}")
        base, name = self.expression(node.value), node.attr
        site = self.source.site(node)
        called = ast.unparse(node.value)
        return lambda f, m: _attribute(base(f, m), name, site, called)


def _of_tuple(values, index, f, m, site):
    """Return an element of a tuple; the index may vary by lane if all elements have one type."""
    (i,) = index
    if type(i) is slice:
        return values[slice(*(None if e is None else int(e) for e in (i.start, i.stop, i.step)))]
    i, n = whole(i, site), len(values)
    bad = (i < -n) | (i >= n)
    lane = offender(f.wave.lanes, m, bad)
    if lane is not None:
        raise fault(
            SimulationError, f"the tuple has {n} elements", site, f.wave.lanes, lane, got=f"{i}"
        )
    if i.ndim == 0:
        return values[int(i)]
    chosen = values[0]
    for k in range(1, n):
        chosen = merge((i == k) | (i == k - n), values[k], chosen)
    return chosen


def _attribute(value, name, site, called):
    if isinstance(value, Triple) and name in ("x", "y", "z"):
        return getattr(value, name)
    if isinstance(value, ArrayView):
        if name == "strides":
            return tuple(s * np.int64(value.dtype.itemsize) for s in value.strides)
        if name == "T":
            return value.transposed()
    if isinstance(value, NUMBERS) and name in ("real",):
        return value
    if isinstance(value, NUMBERS) and name in ("shape", "size", "ndim", "strides", "T"):
        raise fault(
            NotInCudaError,
            f"{called} is a number, which has no .{name}: an array was wanted",
            site,
            got=describe(value),
            fix=f"give the kernel an array for {called}, or compare with the number itself",
        )
    if name in ("shape", "size", "ndim") and hasattr(value, "shape"):
        return getattr(value, name)
    raise fault(
        NotInCudaError,
        f"{describe(value)} has no .{name} in the simulator",
        site,
        fix="arrays have .shape, .size, .ndim, .strides and .T",
    )
