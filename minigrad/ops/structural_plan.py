"""Computes the gradients of a recorded structural op, by one function per input."""

import inspect
from typing import Any

from minigrad.array.array import Array
from minigrad.formulas.expression import call
from minigrad.ops.gradient_plan import sum_to
from minigrad.ops.routes import RoutedPlan, gradients, in_group
from minigrad.seams import seams
from minigrad.tape.saved import saved_variable
from minigrad.tape.variable import Variable


class StructuralPlan(RoutedPlan):
    """Computes gradients of a structural op by one function of Variables per input."""

    def __init__(self, op, mask):
        super().__init__(op, mask)
        asked = [
            None if f is None or not mask >> k & 1 else [*inspect.signature(f).parameters][1:]
            for k, f in enumerate(op.gradients)
        ]
        names = {n for some in asked for n in some or ()}
        self.saved_names = tuple(n for n in (*op.inputs, "y") if n in names)
        self.saved_index = tuple(-1 if n == "y" else op.inputs.index(n) for n in self.saved_names)
        sources = [None if some is None else [*map(self._source, some)] for some in asked]
        self.rules, self.quick, self.writes = self._with(op.gradients, sources), None, []
        if op.array_gradients is not None:
            self.quick = self._with(op.array_gradients, sources)
            self.writes = [  # those that can write into a given Array
                k for k, rule in enumerate(self.quick)
                if rule and "out" in inspect.signature(rule[0]).parameters
            ]  # fmt: skip
        self.arguments = ("dy", *self.saved_names)

    def _with(self, functions, sources) -> Any:
        pairs = zip(functions, sources, strict=True)
        return [None if some is None else (f, some) for f, some in pairs]

    def leave_out(self):
        self.rules = [rule if self.mask >> k & 1 else None for k, rule in enumerate(self.rules)]
        if self.quick is not None:
            self.quick = [f if self.mask >> k & 1 else None for k, f in enumerate(self.quick)]
        self.writes = [k for k in self.writes if self.mask >> k & 1]

    def _source(self, name):
        """Returns (source, index). source: 0 a saved value, 1 an attribute, 2 an input's shape."""
        op = self.op
        if name in self.saved_names:
            return 0, self.saved_names.index(name)
        if name in op.attributes:
            return 1, op.attributes.index(name)
        if name.endswith("_shape") and name[:-6] in op.inputs:
            return 2, op.inputs.index(name[:-6])
        raise TypeError(f"op {op.__name__}: a gradient asks for {name}, which it does not have")

    def general(self, node, dy):
        """Computes first-order gradients: Arrays from Arrays, without recording."""
        if self.quick is not None and seams.unbroadcast is None:
            for k in self.writes:
                if in_group(node.edges[k]):
                    return self._quickly(node, dy, *node.kept)
            return gradients(self, node, dy, lambda dy, *kept: self._quickly(node, dy, *kept))
        return gradients(self, node, dy, lambda dy, *kept: self._over_arrays(node, dy, *kept))

    backward = general

    def _over_arrays(self, node, dy, *kept):
        saved = [Variable(x) if isinstance(x, Array) else x for x in kept]
        results = self.of_variables(node, Variable(dy), saved)
        return [g if g is None else g.array for g in results]

    def _quickly(self, node, dy, *kept):
        """Computes Arrays by `array_gradients`, writing to a group's flat buffer if possible."""
        wanted, results = node.wanted, []
        for k, rule in enumerate(self.quick or ()):
            if rule is None:
                results.append(None)
                continue
            function, sources = rule
            arguments = _arguments(node, kept, sources)
            if k in self.writes and in_group(edge := node.edges[k]):
                arguments.append(edge.group[0].destination(edge))
            g = function(dy, *arguments)
            shape, dtype = wanted[k]
            if g.shape != shape or g.dtype is not dtype:
                g = sum_to(g, shape, dtype)
            results.append(g)
        return results

    def backward_graph(self, node, dy):
        """Computes gradients as Variables with a graph of their own."""
        values = zip(self.saved_index, node.kept, strict=True)
        return self.of_variables(node, dy, [saved_variable(node, k, value) for k, value in values])

    def of_variables(self, node, dy, saved):
        """The gradients for dy and saved values, all of them Variables but numbers."""
        results = []
        for rule, wanted in zip(self.rules, node.wanted, strict=True):
            if rule is None:
                results.append(None)
                continue
            (function, sources), (shape, dtype) = rule, wanted
            g = function(dy, *_arguments(node, saved, sources))
            if g is not None and (g.shape != shape or g.dtype is not dtype):
                if g.dtype is not dtype:
                    g = g.to(dtype)
                if g.shape != shape:
                    g = call("sum_to", g, shape)
            results.append(g)
        return results


def _arguments(node, saved, sources):
    """Returns what a gradient function asks for besides dy."""
    attributes, wanted = node.attributes, node.wanted
    return [
        attributes[k] if source == 1 else wanted[k][0] if source else saved[k]
        for source, k in sources
    ]
