"""Expressions -> closures (frame, mask) -> a scalar, a vector, a tuple or an array.

What inactive lanes compute is arbitrary, and nobody looks at it.
"""

import ast

import numpy as np

from minigrad.errors import NotInCudaError, SimulationError
from minigrad.simt.arrays import ArrayView, Triple
from minigrad.simt.faults import fault, offender
from minigrad.simt.frame import decide
from minigrad.simt.language import Intrinsic
from minigrad.simt.masks import DEAD, Misuse, describe, merge, split
from minigrad.simt.names import MISSING, as_dtype, constant
from minigrad.simt.promotion import BINARY, UNARY, truth


class Expressions:
    """The part of the compiler that knows expressions."""

    def expression(self, node):
        """One expression; folded where its value is known already."""
        value = self.folded(node)
        if value is not MISSING:
            return lambda f, m: value
        method = getattr(self, f"on_{type(node).__name__}", None)
        if method is None:
            raise self.source.refuse(
                node,
                f"{_NAMES.get(type(node).__name__, type(node).__name__)} cannot be used in a"
                " CUDA kernel",
                fix="kernels compute with numbers, tuples and elements of arrays",
            )
        return method(node)

    def folded(self, node):
        """The value of a constant expression, or MISSING."""
        if isinstance(node, ast.Constant):
            return self._literal(node)
        if isinstance(node, ast.Name | ast.Attribute):
            found = self.scope.static(node)
            value = None if found is MISSING else constant(found)
            return MISSING if value is None else value
        if isinstance(node, ast.Tuple):
            parts = [self.folded(part) for part in node.elts]
            return MISSING if any(part is MISSING for part in parts) else tuple(parts)
        if isinstance(node, ast.UnaryOp | ast.BinOp):
            return self._folded_operation(node)
        if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
            value = self.folded(node.args[0])
            found = MISSING if value is MISSING else self.scope.static(node.func)
            dtype = None if found is MISSING or found in (int, float, bool) else as_dtype(found)
            if dtype is not None and isinstance(value, np.generic):
                with np.errstate(all="ignore"):
                    return value.astype(dtype)
        return MISSING

    def _literal(self, node):
        value = None if node.value is None else constant(node.value)
        if value is None and node.value is not None:
            raise self.source.refuse(
                node, f"{node.value!r} cannot be used in a CUDA kernel", fix="use numbers"
            )
        return value

    def _folded_operation(self, node):
        if isinstance(node, ast.UnaryOp):
            parts = [self.folded(node.operand)]
            function = UNARY[type(node.op).__name__]
        else:
            parts = [self.folded(node.left), self.folded(node.right)]
            function = BINARY.get(type(node.op).__name__)
        if function is None or not all(isinstance(p, np.generic | tuple) for p in parts):
            return MISSING
        try:
            with np.errstate(all="ignore"):
                return function(*parts)
        except Exception:  # said when the line runs, with its place
            return MISSING

    def on_Name(self, node):
        slot = self.scope.slots.get(node.id)
        site = self.source.site(node)
        if slot is not None:
            name = node.id

            def read(f, m):
                known = f.known[slot]
                if known is not None and known is not m:
                    f.check_known(slot, m, name, site)
                return f.env[slot]

            return read
        found = self.scope.outer(node.id)
        if isinstance(found, np.ndarray):
            return self.constant_array(found, node.id)
        if found is MISSING:
            raise self.source.refuse(
                node,
                f"the name {node.id} is not defined",
                fix="import it, or give it a value before the kernel is launched",
            )
        raise self.source.refuse(
            node,
            f"{node.id} is a {type(found).__name__}, which a kernel cannot use as a value",
            fix="pass numbers and arrays as arguments",
        )

    def constant_array(self, array, name):
        """A NumPy array from outside of the kernel: read-only memory."""

        def read(f, m):
            return f.wave.constants(array, name)

        return read

    def on_Tuple(self, node):
        parts = [self.expression(part) for part in node.elts]
        return lambda f, m: tuple([part(f, m) for part in parts])

    def operation(self, op, node):
        """A closure (frame, mask, a, b) of a binary operator."""
        name = type(op).__name__
        function = BINARY.get(name)
        if function is None:
            raise self.source.refuse(node, "the operator @ cannot be used in a CUDA kernel")
        site = self.source.site(node)
        divides = name in ("FloorDiv", "Mod")

        def operate(f, m, a, b):
            if divides:
                _no_zero(f, m, a, b, site)
            result = function(a, b)
            counts = f.wave.counts
            if counts is not None and result.__class__ is np.ndarray and result.dtype.char == "d":
                counts.double(site, m)
            return result

        return operate

    def on_BinOp(self, node):
        left, right = self.expression(node.left), self.expression(node.right)
        operate = self.operation(node.op, node)
        return lambda f, m: operate(f, m, left(f, m), right(f, m))

    def on_UnaryOp(self, node):
        operand, function = self.expression(node.operand), UNARY[type(node.op).__name__]
        if isinstance(node.op, ast.Not):
            return lambda f, m: np.logical_not(truth(operand(f, m)))
        return lambda f, m: function(operand(f, m))

    def on_BoolOp(self, node):
        parts = [self.expression(part) for part in node.values]
        sites = [self.source.site(part) for part in node.values]
        both = isinstance(node.op, ast.And)

        def run(f, m):
            value = parts[0](f, m)
            for part, site in zip(parts[1:], sites, strict=False):
                condition = truth(value)
                if f.wave.counts is not None:
                    f.wave.counts.branch(site, m, condition)
                yes, no = split(m, condition)
                rest = yes if both else no
                if rest is DEAD:
                    return value
                right = part(f, rest)
                value = right if (no if both else yes) is DEAD else merge(rest, right, value)
                # lanes that are decided keep a value that decides the next split as well
            return value

        return run

    def on_Compare(self, node):
        first = self.expression(node.left)
        rest = [
            (self._comparison(op, node, right), self.expression(right))
            for op, right in zip(node.ops, node.comparators, strict=True)
        ]
        if len(rest) == 1:
            ((compare, right),) = rest
            return lambda f, m: compare(first(f, m), right(f, m))

        def chain(f, m):
            left, result, among = first(f, m), None, m
            for compare, part in rest:
                right = part(f, among)
                now = compare(left, right)
                result = now if result is None else merge(among, now, result)
                among, _ = split(among, now)
                if among is DEAD:
                    break
                left = right
            return result

        return chain

    def _comparison(self, op, node, right):
        name = type(op).__name__
        if name in ("Is", "IsNot"):
            if not (isinstance(right, ast.Constant) and right.value is None):
                raise self.source.refuse(node, "`is` compares with None alone in a kernel")
            wanted = name == "Is"
            return lambda a, b: np.bool_((a is None) == wanted)
        if name in ("In", "NotIn"):
            wanted = name == "In"
            return lambda a, b: _contains(a, b) if wanted else ~_contains(a, b)
        return BINARY[name]

    def on_IfExp(self, node):
        test = self.expression(node.test)
        body, orelse = self.expression(node.body), self.expression(node.orelse)
        site = self.source.site(node.test)

        def run(f, m):
            yes, no = decide(f, m, test, site)
            if no is DEAD:
                return body(f, yes)
            if yes is DEAD:
                return orelse(f, no)
            return merge(yes, body(f, yes), orelse(f, no))

        return run

    def index(self, node):
        """What stands in brackets: a closure that gives a tuple of scalars, vectors and slices."""
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
        found = self.scope.static(node)
        if isinstance(found, Intrinsic):
            return self.intrinsic_value(found, node)
        if isinstance(found, np.ndarray):
            return self.constant_array(found, ast.unparse(node))
        if found is not MISSING:
            raise self.source.refuse(
                node, f"{ast.unparse(node)} cannot be used as a value in a kernel"
            )
        if self.scope.static(node.value) is not MISSING and not isinstance(
            self.scope.static(node.value), np.ndarray
        ):
            raise self.source.refuse(node, f"there is no {ast.unparse(node)}")
        base, name = self.expression(node.value), node.attr
        site = self.source.site(node)
        return lambda f, m: _attribute(base(f, m), name, site)

    def on_NamedExpr(self, node):
        value, slot = self.expression(node.value), self.scope.slots[node.target.id]

        def run(f, m):
            found = value(f, m)
            f.assign(slot, found, m)
            return found

        return run

    def on_Call(self, node):
        return self.call(node, wanted=True)


_NAMES = {
    "Dict": "a dict",
    "DictComp": "a dict comprehension",
    "GeneratorExp": "a generator expression",
    "JoinedStr": "an f-string",
    "Lambda": "lambda",
    "List": "a list",
    "ListComp": "a list comprehension",
    "Set": "a set",
    "SetComp": "a set comprehension",
    "Starred": "`*`",
    "Yield": "yield",
    "Await": "await",
}


def _no_zero(f, m, a, b, site):
    """Integers divided by zero give no defined result on a GPU."""
    if getattr(b, "dtype", None) is None or b.dtype.kind == "f" or a.dtype.kind == "f":
        return
    zero = b == 0
    if zero.any() and (lane := offender(f.wave.lanes, m, zero)) is not None:
        raise fault(
            SimulationError,
            "an integer is divided by zero",
            site,
            f.wave.lanes,
            lane,
            fix="a GPU raises nothing here and goes on with a wrong number: test the divisor first",
        )


def _contains(value, items):
    if not isinstance(items, tuple):
        raise Misuse("`in` needs a tuple")
    found = np.bool_(False)
    for item in items:
        found = found | BINARY["Eq"](value, item)
    return found


def _of_tuple(values, index, f, m, site):
    """An element of a tuple: of a uniform place, or of one per lane where all have one type."""
    (i,) = index
    if type(i) is slice:
        return values[slice(*(None if e is None else int(e) for e in (i.start, i.stop, i.step)))]
    n = len(values)
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


def _attribute(value, name, site):
    if isinstance(value, Triple) and name in ("x", "y", "z"):
        return getattr(value, name)
    if name in ("shape", "size", "ndim") and hasattr(value, "shape"):
        return getattr(value, name)
    if isinstance(value, ArrayView):
        if name == "strides":
            return tuple(s * np.int64(value.dtype.itemsize) for s in value.strides)
        if name == "T":
            return value.transposed()
    if isinstance(value, np.ndarray | np.generic) and name in ("real",):
        return value
    raise fault(
        NotInCudaError,
        f"{describe(value)} has no .{name} in a kernel",
        site,
        fix="arrays have .shape, .size, .ndim, .strides and .T",
    )
