"""Function: a custom operation with its own backward. The engine checks all that it returns."""

from typing import Any

from minigrad.arguments import function
from minigrad.array.array import View
from minigrad.seams import seams
from minigrad.tape import promises
from minigrad.tape.context import Context
from minigrad.tape.function_plan import FunctionPlan, SelectPlan
from minigrad.tape.modes import no_grad, state
from minigrad.tape.node import Node
from minigrad.tape.variable import Variable


class Function:
    """A custom operation: subclass with static `forward(ctx, ...)` and `backward(ctx, *dys)`.

    forward gets the arguments and returns one Variable or a tuple of them; its operations are not
    recorded. backward gets one upstream gradient per output and returns one gradient (or None) per
    argument. Call the operation as `MyFunction.apply(x)` or `MyFunction()(x)`.

    Raises:
        ArgumentTypeError: forward or backward returned something else than Variables.
        GradientError: backward did not return one gradient per argument of forward.
        ShapeError, DTypeError, DeviceError: a gradient does not fit its argument.

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

    def __init_subclass__(cls, **more):
        super().__init_subclass__(**more)
        promises.check_class(cls)

    def __init__(self, *args):
        if args:
            promises.refuse_arguments(type(self).__name__, args)

    def __call__(self, *args, **named):
        return type(self).apply(*args, **named)

    @classmethod
    def apply(cls, *args, **named):
        """Runs forward, and records the call if an argument requires gradients.

        Pass arguments by position: backward returns one gradient for each, in their order.
        """
        if named:
            promises.refuse_names(cls.__name__, named)
        promises.check_method(cls, "forward", "(ctx, ...)")
        needs = tuple([isinstance(a, Variable) and a._requires_grad for a in args])
        ctx = Context(cls.__name__, needs)
        began = [a.array.version if isinstance(a, Variable) else None for a in args]
        try:
            with no_grad():
                result = seams.effects.function_forward(cls, ctx, args)
        except TypeError:
            promises.refuse_call(cls, "forward", (ctx, *args))
            raise
        outputs = result if isinstance(result, tuple) else (result,)
        promises.check_outputs(cls.__name__, outputs)
        written = [
            a for a, v in zip(args, began, strict=True) if v is not None and a.array.version != v
        ]
        if state.notes is not None:
            state.notes.add(cls, ctx, args, outputs, isinstance(result, tuple), bool(written))
        if not state.recording or not any(needs):
            return result
        promises.check_method(cls, "backward", "(ctx, *dys)")
        promises.check_writes(cls.__name__, ctx._dirty, args, outputs, written)
        recorded = _record(cls, ctx, args, outputs, began)
        return recorded if isinstance(result, tuple) else recorded[0]


def once_differentiable(backward):
    """Marks a backward as not differentiable: a second derivative through it raises."""
    function("once_differentiable", "backward", backward).is_differentiable_once = True
    return backward


def _record(cls, ctx, args, outputs, began):
    """Returns the output Variables with their nodes. began: versions of the arguments before."""
    kept, versions, roles = [], [], []
    for v, array, version in ctx._to_save:
        role, k = _role(v, args, outputs, ctx._dirty)
        if role == "input" and version != began[k]:  # forward saved it after writing to it
            array, version = v.array, began[k]
        elif array is not None and array is not v.array:
            version = array.version  # the copy has a version of its own
        kept.append(array)
        versions.append(version)
        roles.append((role, k))
    ctx.__dict__["_to_save"] = []
    ctx.__dict__["_hidden"] = promises.hidden_intermediate(ctx, args)
    wanted = [(a.shape, a.dtype, a.device) if isinstance(a, Variable) else None for a in args]
    plan = FunctionPlan(cls, ctx, roles, wanted, [(y.shape, y.dtype) for y in outputs])
    edges = tuple(
        (a.node or a) if n else None for a, n in zip(args, ctx.needs_input_grad, strict=True)
    )
    node = Node(plan, edges, tuple(kept), tuple(versions), None, ())
    single = len(outputs) == 1
    results, held = [], {a.array.storage for a in args if isinstance(a, Variable)}
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
            array = y.array
            if array.storage in held:  # two Variables share it: a view notices writes
                array = array.view(array.shape, array.strides)
            if type(array) is View:
                array.made_at = array.version
            results.append(Variable(array, mine, True))
        held.add(y.array.storage)
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
    """Returns the role of a saved Variable.

    It is ('input', k), ('output', k), ('intermediate', 0), or ('none', 0) for None. An argument
    that forward wrote to now holds an output. If it was passed twice it counts as an input, because
    backward could mean either.
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
