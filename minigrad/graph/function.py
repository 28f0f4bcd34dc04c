"""Function: a custom operation with its own backward, checked at every border."""

import warnings

from minigrad.array.array import Array
from minigrad.errors import ArgumentTypeError, DeviceError, DTypeError, GradientError, ShapeError
from minigrad.graph.modes import no_grad, state
from minigrad.graph.node import Node
from minigrad.graph.variable import Variable
from minigrad.kernels.backend import default_device, device_of


class Context:
    """What forward leaves for backward.

    Values go through `save_for_backward`; other attributes are free for numbers and flags.
    """

    def __init__(self, name, needs_input_grad):
        self.name = name
        self.needs_input_grad = needs_input_grad
        self.materializes = True
        self.has_left_graph = False
        self._to_save, self._saved = (), None
        self._dirty, self._non_differentiable = (), ()

    def __setattr__(self, attribute, value):
        if isinstance(value, Variable):
            raise ArgumentTypeError(
                f"ctx.{attribute} = Variable: an output kept on ctx would keep the graph alive "
                "in a circle, and no write to it would be noticed",
                value.describe(),
                f"ctx.save_for_backward({attribute}), and ctx.saved in backward",
            )
        object.__setattr__(self, attribute, value)

    def save_for_backward(self, *values):
        """Keeps Variables (or None) for backward; inputs, outputs and intermediates alike."""
        for v in values:
            if v is not None and not isinstance(v, Variable):
                raise ArgumentTypeError(
                    "save_for_backward: wanted Variables",
                    f"{type(v).__name__}",
                    "keep numbers as attributes: ctx.n = n",
                )
        self.__dict__["_to_save"] = values

    @property
    def saved(self):
        """The saved Variables, in backward."""
        if self._saved is None:
            raise GradientError(f"{self.name}: ctx.saved is there in backward only")
        return self._saved

    saved_tensors = saved

    def mark_dirty(self, *inputs):
        """Says that forward wrote to these inputs in place and returns them."""
        self.__dict__["_dirty"] = inputs

    def mark_non_differentiable(self, *outputs):
        """Says that these outputs take no gradient."""
        self.__dict__["_non_differentiable"] = outputs

    def set_materialize_grads(self, value):
        """Whether missing upstream gradients arrive as zeros (the default) or as None."""
        self.materializes = bool(value)


class Function:
    """A custom operation: subclass with static `forward(ctx, ...)` and `backward(ctx, *dys)`.

    forward gets the arguments (Variables among them), runs unrecorded and returns one Variable or a
    tuple. backward gets one upstream gradient per output and returns one gradient (or None) per
    argument. Call it as `MyFunction.apply(x)` or `MyFunction()(x)`.

    >>> import minigrad as mg
    >>> class Double(mg.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2.0
    ...     @staticmethod
    ...     def backward(ctx, dy):
    ...         return dy * 2.0
    >>> x = mg.variable([1.0, 2.0], requires_grad=True)
    >>> Double.apply(x).sum().backward()
    >>> x.grad.tolist()
    [2.0, 2.0]
    """

    is_differentiable_once = False

    def __call__(self, *args):
        return type(self).apply(*args)

    @classmethod
    def apply(cls, *args):
        """Runs forward, and records the call if an argument requires gradients."""
        needs = tuple(isinstance(a, Variable) and a.requires_grad for a in args)
        ctx = Context(cls.__name__, needs)
        with no_grad():
            result = cls.forward(ctx, *args)
        outputs = result if isinstance(result, tuple) else (result,)
        for y in outputs:
            if not isinstance(y, Variable):
                raise ArgumentTypeError(
                    f"{cls.__name__}.forward: wanted a Variable or a tuple of Variables",
                    f"{type(y).__name__}",
                    "wrap it: mg.variable(...)",
                )
        if not state.recording or not any(needs):
            return result
        recorded = _record(cls, ctx, args, outputs)
        return recorded if isinstance(result, tuple) else recorded[0]


def once_differentiable(backward):
    """Marks a backward that is not itself differentiable: second order through it raises."""
    backward.is_differentiable_once = True
    return backward


def protected(array):
    """What to save of an Array: itself, or a copy if it may be written unseen or without harm."""
    if array.buffer.is_foreign:
        return device_of(array).convert(array, array.dtype)
    return device_of(array).share(array) if state.saving_copies else array


def _record(cls, ctx, args, outputs):
    """Output Variables with their nodes."""
    for x in ctx._dirty:
        x.write_check(f"{cls.__name__} (mark_dirty)")
    kept, roles = [], []
    for v in ctx._to_save:
        kept.append(None if v is None else protected(v.array))
        roles.append(_role(v, args, outputs))
    ctx.__dict__["_to_save"] = ()
    wanted = [(a.shape, a.dtype, a.device) if isinstance(a, Variable) else None for a in args]
    plan = FunctionPlan(cls, ctx, roles, wanted, [(y.shape, y.dtype) for y in outputs])
    edges = tuple(
        (a.node or a) if n else None for a, n in zip(args, ctx.needs_input_grad, strict=True)
    )
    versions = [None if k is None else k.version for k in kept]
    node = Node(plan, edges, tuple(kept), tuple(versions), None, ())
    single = len(outputs) == 1
    results = []
    for k, y in enumerate(outputs):
        is_float = y.dtype.is_float
        if any(y is z for z in ctx._non_differentiable) or not is_float:
            results.append(Variable(y.array))
            continue
        mine = node if single else Node(SelectPlan(k, cls.__name__), (node,), ())
        if any(y is x for x in ctx._dirty):
            y.node, y.requires_grad_ = mine, True
            results.append(y)
        else:
            results.append(Variable(y.array, mine, True))
    ctx.__dict__["_dirty"] = ctx.__dict__["_non_differentiable"] = ()
    for span in state.spans:
        for y in results:
            if y.node is not None:
                span.add(y.node)
        span.add(node)
    for observe in state.op_observers:
        for y in results:
            observe(cls.__name__, y, args)
    return tuple(results)


def _role(v, args, outputs):
    """('input', k), ('output', k) or ('intermediate', 0) of a saved Variable."""
    if v is None:
        return "none", 0
    for k, a in enumerate(args):
        if v is a:
            return "input", k
    for k, y in enumerate(outputs):
        if v is y or v.array is y.array:
            return "output", k
    return "intermediate", 0


class Pack:
    """Gradients of several outputs on their way to the one node that made them."""

    def __init__(self, parts):
        self.parts = parts

    def __add__(self, other):
        parts = dict(self.parts)
        for k, g in other.parts.items():
            parts[k] = (*parts.get(k, ()), *g)
        return Pack(parts)


class SelectPlan:
    """One output of a Function with several."""

    input_names = ("outputs",)
    saved_names = ()

    def __init__(self, index, name):
        self.index, self.name = index, f"{name}[{index}]"

    def backward(self, node, dy):
        """Packs the gradient with its place."""
        return (Pack({self.index: (dy,)}),)

    backward_graph = backward


class FunctionPlan:
    """Runs a Function's backward and checks what it returns."""

    def __init__(self, cls, ctx, roles, wanted, outputs):
        self.cls, self.ctx, self.roles, self.wanted = cls, ctx, roles, wanted
        self.outputs = outputs
        self.name = cls.__name__
        self.saved_names = tuple(
            f"{kind}{k}" if kind != "none" else f"none{n}" for n, (kind, k) in enumerate(roles)
        )
        self.input_names = tuple(f"input{k}" for k in range(len(wanted)))

    def backward(self, node, dy):
        """First order."""
        saved = [None if k is None else Variable(k) for k in node.kept]
        grads = self._call(self._unpacked(dy, Variable), saved)
        checked = [self._checked(k, g) for k, g in enumerate(grads)]
        # what came back may be a saved value or shared: no one may write into it
        return [None if g is None else device_of(g.array).share(g.array) for g in checked]

    def backward_graph(self, node, dy):
        """Gradients with a graph; what cannot be differentiated again carries an error node."""
        saved = []
        for value, (kind, k) in zip(node.kept, self.roles, strict=True):
            if value is None:
                saved.append(None)
            elif kind == "input":
                edge = node.edges[k]
                if edge is None:
                    saved.append(Variable(value))
                else:
                    saved.append(Variable(value, edge, True) if type(edge) is Node else edge)
            elif kind == "output" and len(self.outputs) == 1:
                saved.append(Variable(value, node, True))
            else:
                saved.append(
                    poisoned(
                        value,
                        f"{self.name}: backward uses a saved intermediate, "
                        "whose own gradient is not known",
                        "save an input or an output and compute the intermediate from it in "
                        "backward",
                    )
                )
        before, state.context = state.context, self.ctx
        self.ctx.has_left_graph = False
        try:
            grads = self._call(self._unpacked(dy, lambda g: g), saved)
        finally:
            state.context = before
        results = [self._checked(k, g) for k, g in enumerate(grads)]
        once = getattr(self.cls.backward, "is_differentiable_once", False)
        if once or self.ctx.has_left_graph:
            why = "is marked once_differentiable" if once else "left the graph (numpy, item)"
            results = [
                None
                if g is None
                else poisoned(
                    g.array,
                    f"{self.name}: a second derivative through a backward that {why}",
                    "write backward with mg operations on its Variables",
                )
                for g in results
            ]
        return results

    def _unpacked(self, dy, wrap):
        if not isinstance(dy, Pack):
            return [wrap(dy)]
        dys = []
        for k, (shape, dtype) in enumerate(self.outputs):
            parts = dy.parts.get(k)
            if parts is None:
                dys.append(self._missing(shape, dtype) if self.ctx.materializes else None)
                continue
            total = wrap(parts[0])
            for part in parts[1:]:
                total = total + wrap(part)
            dys.append(total)
        return dys

    def _missing(self, shape, dtype):
        device = default_device()
        zeros = device.empty(shape, dtype)
        device.fill(zeros, 0.0)
        return Variable(zeros)

    def _call(self, dys, saved):
        ctx = self.ctx
        object.__setattr__(ctx, "_saved", saved)
        try:
            grads = self.cls.backward(ctx, *dys)
        finally:
            object.__setattr__(ctx, "_saved", None)
        grads = grads if isinstance(grads, tuple) else (grads,)
        if len(grads) != len(self.wanted):
            raise GradientError(
                f"{self.name}.backward: wanted {len(self.wanted)} gradients, one an argument of "
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


class ErrorPlan:
    """A node that cannot be differentiated: says why."""

    input_names = saved_names = ()

    def __init__(self, message, fix):
        self.name, self.message, self.fix = "error", message, fix

    def backward(self, node, dy):
        """Raises."""
        raise GradientError(self.message, fix=self.fix)

    backward_graph = backward


def poisoned(array: Array, message, fix):
    """A Variable whose gradient raises."""
    return Variable(array, Node(ErrorPlan(message, fix), ()), True)
