"""Function: a custom operation with its own backward, checked at every border."""

from typing import Any

from minigrad.arguments import function
from minigrad.devices.backend import device_of
from minigrad.errors import ArgumentTypeError, GradientError
from minigrad.seams import seams
from minigrad.tape.function_plan import FunctionPlan, SelectPlan
from minigrad.tape.modes import no_grad, state
from minigrad.tape.node import Node
from minigrad.tape.variable import Variable


class Context:
    """Carries values from forward to backward.

    `save_for_backward` keeps Variables; other attributes are free for numbers and flags.
    """

    def __init__(self, name, needs_input_grad):
        self.name = name
        self.needs_input_grad = needs_input_grad
        self.materializes = True
        self.has_left_graph = False
        self._to_save, self._saved = [], None
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
        """Keeps Variables (or None) for backward: inputs, outputs or intermediates.

        Raises:
            ArgumentTypeError: something else; numbers are kept as attributes, `ctx.n = n`.
        """
        for v in values:
            if v is not None and not isinstance(v, Variable):
                raise ArgumentTypeError(
                    "save_for_backward: wanted Variables",
                    f"{type(v).__name__}",
                    "keep numbers as attributes: ctx.n = n",
                )
        self.__dict__["_to_save"] = [
            (None, None, None) if v is None else (v, protected(v.array), v.array.version)
            for v in values
        ]

    @property
    def saved(self):
        """The saved Variables, in backward, as a list in the order of `save_for_backward`.

        Raises GradientError anywhere else.
        """
        if self._saved is None:
            raise GradientError(f"{self.name}: ctx.saved exists in backward only")
        return self._saved

    saved_tensors = saved

    def mark_dirty(self, *inputs):
        """Declares that forward wrote in place to these inputs, which it also returns."""
        self.__dict__["_dirty"] = inputs

    def mark_non_differentiable(self, *outputs):
        """Declares that these outputs take no gradient."""
        self.__dict__["_non_differentiable"] = outputs

    def set_materialize_grads(self, value):
        """Sets whether missing upstream gradients arrive as zeros (the default) or as None."""
        self.materializes = bool(value)


class Function:
    """A custom operation: subclass with static `forward(ctx, ...)` and `backward(ctx, *dys)`.

    forward receives the arguments, runs unrecorded and returns one Variable or a tuple of them.
    backward receives one upstream gradient per output and returns one gradient (or None) per
    argument. Call the operation as `MyFunction.apply(x)` or `MyFunction()(x)`.

    Raises:
        ArgumentTypeError: forward or backward returned something else than Variables.
        GradientError: backward returned another number of gradients than forward has arguments.
        ShapeError, DTypeError, DeviceError: a gradient that does not fit its argument.

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
    forward: Any
    backward: Any

    def __call__(self, *args):
        return type(self).apply(*args)

    @classmethod
    def apply(cls, *args):
        """Runs forward, and records the call if an argument requires gradients."""
        _check_method(cls, "forward", "(ctx, ...)")
        needs = tuple([isinstance(a, Variable) and a._requires_grad for a in args])
        ctx = Context(cls.__name__, needs)
        began = [a.array.version if isinstance(a, Variable) else None for a in args]
        with no_grad():
            result = seams.effects.function_forward(cls, ctx, args)
        outputs = result if isinstance(result, tuple) else (result,)
        for y in outputs:
            if not isinstance(y, Variable):
                raise ArgumentTypeError(
                    f"{cls.__name__}.forward: wanted a Variable or a tuple of Variables",
                    f"{type(y).__name__}",
                    "wrap it: mg.variable(...)",
                )
        if state.notes is not None:
            state.notes.add(cls, ctx, args, outputs, isinstance(result, tuple))
        if not state.recording or not any(needs):
            return result
        _check_method(cls, "backward", "(ctx, *dys)")
        recorded = _record(cls, ctx, args, outputs, began)
        return recorded if isinstance(result, tuple) else recorded[0]


def _check_method(cls, name, arguments):
    if not hasattr(cls, name):
        raise ArgumentTypeError(
            f"{cls.__name__}: wanted a static method {name}",
            f"a Function without {name}",
            f"@staticmethod, def {name}{arguments}: ...",
        )


def once_differentiable(backward):
    """Marks a backward that is not differentiable: a second derivative through it raises."""
    function("once_differentiable", "backward", backward).is_differentiable_once = True
    return backward


def protected(array):
    """The Array to save: itself, or a copy if untracked or permitted writes may change it."""
    if array.buffer.is_foreign:
        return device_of(array).convert(array, array.dtype)
    return device_of(array).share(array) if state.saving_copies else array


def _record(cls, ctx, args, outputs, began):
    """Output Variables with their nodes; began: the versions of the arguments before forward."""
    for x in ctx._dirty:
        x.write_check(f"{cls.__name__} (mark_dirty)")
    kept, versions, roles = [], [], []
    for v, array, version in ctx._to_save:
        role, k = _role(v, args, outputs, ctx._dirty)
        if role == "input" and version != began[k]:  # saved after forward wrote to it
            array, version = v.array, began[k]
        elif array is not None and array is not v.array:
            version = array.version  # a copy's own
        kept.append(array)
        versions.append(version)
        roles.append((role, k))
    ctx.__dict__["_to_save"] = []
    wanted = [(a.shape, a.dtype, a.device) if isinstance(a, Variable) else None for a in args]
    plan = FunctionPlan(cls, ctx, roles, wanted, [(y.shape, y.dtype) for y in outputs])
    edges = tuple(
        (a.node or a) if n else None for a, n in zip(args, ctx.needs_input_grad, strict=True)
    )
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
            seams.effects.change(y, f"{cls.__name__}, which writes to its argument,")
            y.node, y._requires_grad = mine, True
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


def _role(v, args, outputs, dirty):
    """('input', k), ('output', k) or ('intermediate', 0) of a saved Variable.

    An argument that forward wrote to now holds an output. If it was passed twice, it counts as an
    input, because backward could mean either.
    """
    if v is None:
        return "none", 0
    is_dirty = dirty and any(v is x for x in dirty) and sum(v is a for a in args) == 1
    if not is_dirty:
        for k, a in enumerate(args):
            if v is a:
                return "input", k
    for k, y in enumerate(outputs):
        if v is y or v.array is y.array:
            return "output", k
    return "intermediate", 0
