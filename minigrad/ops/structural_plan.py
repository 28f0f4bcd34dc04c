"""Computes the gradients of a recorded structural op, by one function per input."""

import inspect

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
        self.rules, self.quick, self.writes = [], None, []
        names = set()
        for k, rule in enumerate(op.gradients):
            if not mask >> k & 1 or rule is None:
                self.rules.append(None)
                continue
            asked = list(inspect.signature(rule).parameters)[1:]
            names |= set(asked)
            self.rules.append((rule, [self._source(n) for n in asked]))
        self.saved_names = tuple(n for n in (*op.inputs, "y") if n in names)
        self.saved_index = tuple(-1 if n == "y" else op.inputs.index(n) for n in self.saved_names)
        if op.array_gradients is not None:
            self.quick = [
                None
                if rule is None
                else (
                    f,
                    [self._quick_source(*s) for s in rule[1]],
                    "out" in inspect.signature(f).parameters,  # it can write into a given Array
                )
                for rule, f in zip(self.rules, op.array_gradients, strict=True)
            ]
            self.writes = [k for k, rule in enumerate(self.quick) if rule and rule[2]]
        self.arguments = ("dy", *self.saved_names)

    def leave_out(self):
        self.rules = [rule if self.mask >> k & 1 else None for k, rule in enumerate(self.rules)]
        if self.quick is not None:
            self.quick = [f if self.mask >> k & 1 else None for k, f in enumerate(self.quick)]
        self.writes = [k for k in self.writes if self.mask >> k & 1]

    def _quick_source(self, what, which):
        """Returns (source, index). source: 0 a saved Array, 1 an attribute, 2 an input's shape."""
        if what == "saved":
            return 0, self.saved_names.index(which)
        return (1 if what == "attribute" else 2), which

    def _source(self, name):
        """Returns the source of an argument: ('saved', name), ('attribute', k) or ('shape', k)."""
        op = self.op
        if name == "y" or name in op.inputs:
            return "saved", name
        if name in op.attributes:
            return "attribute", op.attributes.index(name)
        if name.endswith("_shape") and name[:-6] in op.inputs:
            return "shape", op.inputs.index(name[:-6])
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
        saved = dict(zip(self.saved_names, map(Variable, kept), strict=True))
        return [g if g is None else g.array for g in self.of_variables(node, Variable(dy), saved)]

    def _quickly(self, node, dy, *kept):
        """Computes Arrays by `array_gradients`, writing to a group's flat buffer if possible."""
        attributes, wanted, results = node.attributes, node.wanted, []
        for k, rule in enumerate(self.quick or ()):
            if rule is None:
                results.append(None)
                continue
            function, sources, may_write = rule
            arguments = [
                attributes[k] if source == 1 else wanted[k][0] if source else kept[k]
                for source, k in sources
            ]
            if may_write and in_group(edge := node.edges[k]):
                arguments.append(edge.group[0].destination(edge))
            g = function(dy, *arguments)
            shape, dtype = wanted[k]
            if g.shape != shape or g.dtype is not dtype:
                g = sum_to(g, shape, dtype)
            results.append(g)
        return results

    def backward_graph(self, node, dy):
        """Computes gradients as Variables with a graph of their own."""
        values = zip(self.saved_names, self.saved_index, node.kept, strict=True)
        saved = {name: saved_variable(node, k, value) for name, k, value in values}
        return self.of_variables(node, dy, saved)

    def of_variables(self, node, dy, saved):
        """The gradients for dy and saved values, all of them Variables."""
        results = []
        for rule, (shape, dtype) in zip(self.rules, node.wanted, strict=True):
            if rule is None:
                results.append(None)
                continue
            function, sources = rule
            arguments = []
            for what, which in sources:
                if what == "saved":
                    arguments.append(saved[which])
                elif what == "shape":
                    arguments.append(node.wanted[which][0])
                else:
                    arguments.append(node.attributes[which])
            g = function(dy, *arguments)
            if g is not None and (g.shape != shape or g.dtype is not dtype):
                if g.dtype is not dtype:
                    g = g.to(dtype)
                if g.shape != shape:
                    g = call("sum_to", g, shape)
            results.append(g)
        return results
