"""Expressions -> closures (frame, mask) -> a scalar, a vector, a tuple or an array.

What inactive lanes compute is arbitrary, and is never used.
"""

import ast
from typing import Any

import numpy as np

from minigrad.simt.language.names import MISSING, as_dtype, constant, is_pythons
from minigrad.simt.language.part import LanguagePart
from minigrad.simt.machine.faults import no_zero
from minigrad.simt.machine.frame import decide
from minigrad.simt.machine.masks import DEAD, Misuse, merge, on_numbers, split
from minigrad.simt.machine.promotion import BINARY, UNARY, truth


class Expressions(LanguagePart):
    """The part of the compiler that handles expressions."""

    def expression(self, node):
        """Compile one expression; fold it if its value is already known."""
        value = self.folded(node)
        if value is not MISSING:
            return lambda f, m: value
        method = getattr(self, f"on_{type(node).__name__}", None)
        if method is None:
            kind = type(node).__name__
            where = "the simulator" if kind == "Lambda" else "a CUDA kernel"
            raise self.source.refuse(
                node,
                f"{_NAMES.get(kind, kind)} cannot be used in {where}",
                fix="kernels compute with numbers, tuples and elements of arrays",
            )
        return method(node)

    def folded(self, node):
        """Return the value of a constant expression, or MISSING."""
        if isinstance(node, ast.Constant):
            return self._literal(node)
        if isinstance(node, ast.Name | ast.Attribute):
            outside = self.scope.static(node)
            value = None if outside is MISSING else constant(outside)
            return MISSING if value is None else value
        if isinstance(node, ast.Tuple):
            parts = [self.folded(part) for part in node.elts]
            return MISSING if any(part is MISSING for part in parts) else tuple(parts)
        if isinstance(node, ast.UnaryOp | ast.BinOp):
            return self._folded_operation(node)
        if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
            value = self.folded(node.args[0])
            callee = MISSING if value is MISSING else self.scope.static(node.func)
            dtype = None if callee is MISSING or is_pythons(callee) else as_dtype(callee)
            if dtype is not None and isinstance(value, np.generic):
                with np.errstate(all="ignore"):
                    return value.astype(dtype)
        return MISSING

    def _literal(self, node):
        value = None if node.value is None else constant(node.value)
        if value is None and node.value is not None:
            where = "the simulator" if isinstance(node.value, complex) else "a CUDA kernel"
            raise self.source.refuse(
                node, f"{node.value!r} cannot be used in {where}", fix="use numbers"
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
        if isinstance(node.op, ast.FloorDiv | ast.Mod) and not parts[1]:
            return MISSING  # an error when the line runs
        try:
            with np.errstate(all="ignore"):
                return function(*parts)
        except Exception:  # raised when the line runs, with its site
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
        value = self.scope.outer(node.id)
        if isinstance(value, np.ndarray):
            return self.constant_array(value, node.id)
        if value is MISSING:
            raise self.source.refuse(
                node,
                f"the name {node.id} is not defined",
                fix="import it, or give it a value before the kernel is launched",
            )
        raise self.source.refuse(
            node,
            f"{node.id} is a {type(value).__name__}, which a kernel cannot use as a value",
            fix="pass numbers and arrays as arguments",
        )

    def on_Tuple(self, node):
        parts = [self.expression(part) for part in node.elts]
        return lambda f, m: tuple([part(f, m) for part in parts])

    def operation(self, op, node):
        """Return the closure (frame, mask, a, b) of a binary operator."""
        name = type(op).__name__
        function = BINARY.get(name)
        if function is None:
            raise self.source.refuse(node, "the operator @ cannot be used in a CUDA kernel")
        site = self.source.site(node)
        divides = name in ("FloorDiv", "Mod")

        def operate(f, m, a, b):
            if divides:
                no_zero(f.wave.lanes, m, a, b, site)
            result: Any = function(a, b)
            counts = f.wave.counts
            if counts is not None and result.__class__ is np.ndarray and result.dtype.char == "d":
                counts.double(site, m)
            return result

        return operate

    def on_BinOp(self, node):
        left, right = self.expression(node.left), self.expression(node.right)
        operate = self.operation(node.op, node)
        function = BINARY[type(node.op).__name__]
        if isinstance(node.op, ast.FloorDiv | ast.Mod):
            return lambda f, m: operate(f, m, left(f, m), right(f, m))

        def run(f, m):
            if f.wave.counts is None:
                return function(left(f, m), right(f, m))
            return operate(f, m, left(f, m), right(f, m))

        return run

    def on_UnaryOp(self, node):
        operand, function = self.expression(node.operand), UNARY[type(node.op).__name__]
        name = f"the operator of {ast.unparse(node)}"
        return lambda f, m: on_numbers(name, function, [operand(f, m)])

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
                # lanes that have decided keep a value that decides the next split the same way
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
                raise self.source.refuse(node, "`is` compares with None alone in the simulator")
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

    def on_NamedExpr(self, node):
        value, slot = self.expression(node.value), self.scope.slots[node.target.id]

        def run(f, m):
            result = value(f, m)
            f.assign(slot, result, m)
            return result

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


def _contains(value, items):
    if not isinstance(items, tuple):
        raise Misuse("`in` needs a tuple")
    is_in: Any = np.bool_(False)
    for item in items:
        is_in = is_in | BINARY["Eq"](value, item)
    return is_in
