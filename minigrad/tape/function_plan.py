"""Runs the backward of a custom Function and checks its results."""

import warnings

from minigrad.array.array import Array
from minigrad.devices.backend import device_of
from minigrad.errors import ArgumentTypeError, DeviceError, DTypeError, GradientError, ShapeError
from minigrad.seams import seams
from minigrad.tape import promises
from minigrad.tape.lending import entrusted, lent
from minigrad.tape.modes import state
from minigrad.tape.node import Node, Plan
from minigrad.tape.saved import saved_variable
from minigrad.tape.variable import Variable, filled


class Pack:
    """Collects the gradients of several outputs for the one node that made these."""

    def __init__(self, parts):
        self.parts = parts

    def __add__(self, other):
        parts = dict(self.parts)
        for k, g in other.parts.items():
            parts[k] = (*parts.get(k, ()), *g)
        return Pack(parts)


class SelectPlan(Plan):
    """The plan of one output of a Function with several outputs."""

    input_names = ("outputs",)
    saved_names = ()

    def __init__(self, index, name):
        self.index, self.name = index, f"{name}[{index}]"

    def backward(self, node, dy):
        """Packs the gradient with the index of its output."""
        return (Pack({self.index: (dy,)}),)

    backward_graph = backward


class FunctionPlan(Plan):
    """Runs a Function's backward and checks what it returns."""

    def __init__(self, cls, ctx, roles, wanted, outputs):
        self.cls, self.ctx, self.roles, self.wanted = cls, ctx, roles, wanted
        self.outputs = outputs
        self.name = cls.__name__

    @property
    def saved_names(self):
        """The names of the saved values, by role: input0, output0, ..."""
        return tuple(
            f"{kind}{k}" if kind != "none" else f"none{n}" for n, (kind, k) in enumerate(self.roles)
        )

    @property
    def input_names(self):
        """The names of the inputs: input0, input1, ..."""
        return tuple(f"input{k}" for k in range(len(self.wanted)))

    def backward(self, node, dy):
        """Computes Arrays, for first-order gradients."""
        saved = [None if k is None else Variable(k) for k in node.kept]
        grads = seams.effects.function_backward(self, self._unpacked(dy), saved)
        checked = [self._checked(k, g) for k, g in enumerate(grads)]
        # nobody may write the result: it may be a saved value, or shared
        return [None if g is None else device_of(g.array).share(g.array) for g in checked]

    def backward_graph(self, node, dy):
        """Computes gradients with a graph. Those without a derivative get a node that raises."""
        saved = []
        for value, (kind, k) in zip(node.kept, self.roles, strict=True):
            if value is None:
                saved.append(None)
            elif kind == "input" or (kind == "output" and len(self.outputs) == 1):
                saved.append(saved_variable(node, k if kind == "input" else -1, value))
            else:
                saved.append(
                    poisoned(
                        value,
                        f"{self.name}: backward uses a saved intermediate, "
                        "whose own gradient is not known",
                        "save an input or an output and compute the intermediate from it in "
                        "backward",
                        node.edges,
                    )
                )
        before, state.context = state.context, self.ctx
        self.ctx.has_left_graph = False
        try:
            grads = seams.effects.function_backward(self, self._unpacked(dy), saved)
        finally:
            state.context = before
        results = [self._checked(k, g) for k, g in enumerate(grads)]
        once = getattr(self.cls.backward, "is_differentiable_once", False)
        fix = "write backward with mg operations on its Variables"
        why = ""
        if once:
            why = "is marked once_differentiable"
        elif self.ctx.has_left_graph:
            why = "left the graph (numpy, item)"
        elif self.ctx._hidden is not None:
            why = f"may use ctx.{self.ctx._hidden}, whose own gradient is not known"
            fix = (
                "compute it in backward, of an input or an output in ctx.saved; pass a constant as "
                "an argument of forward"
            )
        if why:
            results = [
                None
                if g is None
                else poisoned(
                    g.array,
                    f"{self.name}: a second derivative through a backward that {why}",
                    fix,
                    (*node.edges, *_makers(dy)),
                )
                for g in results
            ]
        return results

    def _unpacked(self, dy):
        if not isinstance(dy, Pack):
            return [lent(dy)]
        dys = []
        some = next(part[0] for part in dy.parts.values())
        near = some if isinstance(some, Array) else some.array
        for k, (shape, dtype) in enumerate(self.outputs):
            parts = dy.parts.get(k)
            if parts is None:
                zeros = Variable(filled(near, 0.0, shape, dtype)) if self.ctx.materializes else None
                dys.append(zeros)
                continue
            total = lent(parts[0])
            for part in parts[1:]:
                total = total + lent(part)
            dys.append(total)
        return dys

    def called(self, dys, saved):
        """Calls backward; returns a tuple of one gradient per argument."""
        ctx = self.ctx
        entrusted()
        object.__setattr__(ctx, "_saved", saved)
        try:
            grads = self.cls.backward(ctx, *dys)
        except TypeError:
            promises.refuse_call(self.cls, "backward", (ctx, *dys))
            raise
        finally:
            object.__setattr__(ctx, "_saved", None)
        grads = grads if isinstance(grads, tuple) else (grads,)
        if len(grads) != len(self.wanted):
            raise GradientError(
                f"{self.name}.backward: wanted {len(self.wanted)} gradients, one per argument of "
                "forward",
                f"{len(grads)}",
                "return None for arguments that take none",
            )
        return grads

    def _checked(self, k, g):
        needs = self.ctx.needs_input_grad[k]
        if g is None:
            if needs:
                warnings.warn(
                    f"{self.name}.backward returned None for argument {k}, which needs a gradient",
                    stacklevel=2,
                )
            return None
        if not needs:
            return None
        if not isinstance(g, Variable):
            raise ArgumentTypeError(
                f"{self.name}.backward: wanted a Variable or None as gradient {k}",
                f"{type(g).__name__}",
            )
        shape, dtype, device = self.wanted[k]
        array = g.array
        if array.shape == shape and array.dtype is dtype and array.device == device:
            return g
        for error, what, want, got in (
            (ShapeError, "shape", shape, g.shape),
            (DTypeError, "dtype", dtype, g.dtype),
            (DeviceError, "device", device, g.device),
        ):
            if want != got:
                raise error(
                    f"{self.name}.backward: wanted {what} {want} for gradient {k}, as argument {k}",
                    f"{got}",
                )
        return g


class ErrorPlan(Plan):
    """The plan of a node that cannot be differentiated: backward raises the reason."""

    input_names = saved_names = ()

    def __init__(self, message, fix):
        self.name, self.message, self.fix = "error", message, fix

    def backward(self, node, dy):
        """Raises the reason."""
        raise GradientError(self.message, fix=self.fix)

    backward_graph = backward


def poisoned(array: Array, message, fix, edges):
    """Returns a Variable whose backward raises. edges: the nodes that it may depend on."""
    return Variable(array, Node(ErrorPlan(message, fix), edges), True)


def _makers(dy):
    """Returns the edges of an upstream gradient, or of all gradients in a Pack."""
    if isinstance(dy, Pack):
        return [edge for part in dy.parts.values() for g in part for edge in _makers(g)]
    return [dy.node or dy] if dy.requires_grad else []
