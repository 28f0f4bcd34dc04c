"""Derivatives of functions: grad, vjp, jvp, hvp, jacobian, hessian; and of Variables: gradients.

All of them are exact and use the one backward pass. Functions take and return Variables; other data
becomes constants. Derivatives nest: one may use another, and `backward()` passes through them.
"""

from typing import Any

import numpy as np

from minigrad.arguments import flag
from minigrad.autograd.traced import (
    TracedCall,
    checked_function,
    chosen_arguments,
    fitting,
    full_like,
    gradients_at,
    paired,
)
from minigrad.devices.backend import device_of
from minigrad.devices.backend import values as values_of
from minigrad.errors import ArgumentError, ArgumentTypeError, GradientError, ShapeError
from minigrad.hints import teaching
from minigrad.ops.table import functions
from minigrad.seams import seams
from minigrad.tape.modes import enable_grad
from minigrad.tape.upstream import upstream
from minigrad.tape.variable import Variable


@teaching
def gradients(outputs, inputs, dy=None, *, create_graph=False, retain_graph=False):
    """Returns the gradients of outputs with respect to inputs, without setting `.grad`.

    Args:
        outputs: a Variable or a sequence of them; their gradients are summed.
        inputs: a Variable or a sequence of them, leaves or results of operations.
        dy: upstream gradients, one per output, of the output's shape; None for an output of one
            element.
        create_graph: record the gradients in a graph of their own, for higher derivatives.
        retain_graph: keep the saved values for another pass; implied by create_graph.

    Returns:
        One gradient per input, of the input's shape and dtype, or None if no output depends on the
        input: a Variable for a single input, a tuple for a sequence.

    >>> import minigrad as mg
    >>> x = mg.variable([1.0, 2.0], requires_grad=True)
    >>> h = x * x
    >>> dx, dh = mg.gradients((3.0 * h).sum(), [x, h])
    >>> dx.tolist(), dh.tolist()
    ([6.0, 12.0], [3.0, 3.0])
    """
    create_graph = flag("gradients", "create_graph", create_graph)
    retain_graph = flag("gradients", "retain_graph", retain_graph)
    ys = _sequence("outputs", outputs)
    xs = _sequence("inputs", inputs)
    dys = list(dy) if isinstance(dy, (list, tuple)) else [dy] * len(ys)
    if len(dys) != len(ys) or (len(ys) > 1 and isinstance(dy, Variable)):
        raise ShapeError(
            "gradients: wanted one dy per output",
            f"{1 if isinstance(dy, Variable) else len(dys)} for {len(ys)} outputs",
        )
    for k, x in enumerate(xs):
        if not x.requires_grad:
            raise GradientError(
                f"gradients: input {k} requires no gradient, so nothing was recorded for it",
                x.describe(),
                "set x.requires_grad = True before the outputs are computed",
            )
    pairs = [(y, upstream(y, d)) for y, d in zip(ys, dys, strict=True)]
    grads = gradients_at(pairs, xs, create_graph, retain_graph)
    return grads[0] if isinstance(inputs, Variable) else tuple(grads)


def _sequence(name, value):
    if isinstance(value, Variable):
        return [value]
    if not isinstance(value, (list, tuple)) or not all(isinstance(v, Variable) for v in value):
        kind = type(value).__name__
        if isinstance(value, (list, tuple)):
            kind = f"a {kind} of {', '.join(sorted({type(v).__name__ for v in value}))}"
        raise ArgumentTypeError(f"gradients: wanted a Variable or a sequence for {name}", kind)
    if not value:
        raise ArgumentError(f"gradients: wanted at least one Variable for {name}", "none")
    return list(value)


@teaching
def grad(f, argnums: int | tuple[int, ...] = 0, has_aux=False):
    """Returns the function that computes the gradient of f, whose result has one element.

    Args:
        f: takes Variables or data, or dicts, lists, tuples and dataclasses that contain them;
            returns a Variable of one element.
        argnums: the index of the argument to differentiate by, or a tuple of indices.
        has_aux: f returns (result, auxiliary); the new function returns (gradient, auxiliary).

    Returns:
        A function with f's arguments. It returns a gradient of the argument's shape and dtype, or a
        tuple of gradients for a tuple of argnums. For a dict, a list or a dataclass the gradient
        has the same form, with None instead of leaves without floats. It is zeros if the result
        does not depend on the argument. It is part of a graph if an argument or another value that
        f uses requires gradients.

    >>> import minigrad as mg
    >>> f = lambda x: x * x * x
    >>> mg.grad(f)(2.0).item(), mg.grad(mg.grad(f))(2.0).item()
    (12.0, 12.0)
    >>> mg.grad(lambda p: p["w"] * p["b"])({"w": mg.variable(2.0), "b": mg.variable(3.0)})
    {'w': Variable(3.), 'b': Variable(2.)}
    """
    both = value_and_grad(f, argnums, has_aux, name="grad")

    def gradient(*args):
        value, g = both(*args)
        return (g, value[1]) if has_aux else g

    return _named(gradient, f, "gradient")


@teaching
def value_and_grad(f, argnums: int | tuple[int, ...] = 0, has_aux=False, *, name="value_and_grad"):
    """Returns the function that computes (value, gradient) of f together. See `grad`.

    With has_aux it returns ((value, auxiliary), gradient).

    >>> import minigrad as mg
    >>> value, g = mg.value_and_grad(lambda x: (x * x).sum())([1.0, 2.0])
    >>> value.item(), g.tolist()
    (5.0, [2.0, 4.0])
    """
    checked_function(name, f, argnums)
    has_aux = flag(name, "has_aux", has_aux)

    def both(*args):
        trace = TracedCall(name, f, args, argnums, has_aux)
        y = trace.scalar()
        grads = trace.grouped(trace.pull([full_like(y, 1.0)]))
        value = trace.result()
        g = tuple(grads) if isinstance(argnums, (tuple, list)) else grads[0]
        return ((value, trace.aux) if has_aux else value), g

    return _named(both, f, "value_and_grad")


def _named(function, f, what):
    function.__name__ = f"{what}_of_{getattr(f, '__name__', 'f')}"
    function.__doc__ = f"The {what} of {getattr(f, '__name__', 'f')}."
    return function


@teaching
def vjp(f, *args):
    """Returns f's result and its pullback, the function u -> u times the Jacobian.

    Args:
        f: takes the arguments, returns a Variable or several.
        args: the arguments, in the forms that `grad` takes. f is differentiated by all of them.

    Returns:
        (result, pull). pull(dy) takes a Variable of the result's shape, or a tuple for several
        results. It returns one gradient per argument: a Variable for one argument, else a tuple.
        You may call it several times; it keeps the graph's saved values alive.

    >>> import minigrad as mg
    >>> y, pull = mg.vjp(lambda x: x * x, mg.variable([1.0, 2.0]))
    >>> pull(mg.variable([1.0, 10.0])).tolist()
    [2.0, 40.0]
    """
    trace = TracedCall("vjp", checked_function("vjp", f), args, tuple(range(len(args))))

    def pull(dy):
        dys = [dy] if trace.is_single else list(dy)
        dys = fitting("vjp", "dy", dys, trace.outputs)
        grads = trace.grouped(trace.pull(dys, retain_graph=True))
        return grads[0] if len(args) == 1 else tuple(grads)

    return trace.result(), _named(pull, f, "pullback")


@teaching
def jvp(f, inputs, tangents):
    """Returns f's result and its derivative along the tangents: the Jacobian times v.

    It uses reverse mode twice. The pullback is linear in its dy, so its own pullback gives J v.

    Args:
        f: takes the inputs, returns a Variable or several.
        inputs: a Variable, a dict or a dataclass of them, or a tuple of f's arguments.
        tangents: of the form and the shapes of inputs.

    Returns:
        (result, derivative), both in the form that f returns.

    >>> import minigrad as mg
    >>> y, dy = mg.jvp(lambda x: x * x, mg.variable([1.0, 2.0]), mg.variable([1.0, 10.0]))
    >>> dy.tolist()
    [2.0, 40.0]
    """
    xs, vs = paired("jvp", inputs, tangents)
    trace = TracedCall("jvp", checked_function("jvp", f), xs, tuple(range(len(xs))))
    vs = fitting("jvp", "tangents", vs, trace.inputs)
    with enable_grad():
        dys = [full_like(y, 0.0) for y in trace.outputs]
        for d in dys:
            d.requires_grad = True
        pulled = trace.pull(dys, create_graph=True)
    derivatives = trace.again(pulled, vs, dys)
    return trace.result(), (derivatives[0] if trace.is_single else tuple(derivatives))


@teaching
def hvp(f, x, v):
    """Returns the Hessian of f at x times v, by two backward passes, without forming the Hessian.

    Args:
        f: returns a Variable of one element.
        x: a Variable, or a tuple of f's arguments.
        v: of the form and the shapes of x.

    Returns:
        A Variable of x's shape, or a tuple.

    >>> import minigrad as mg
    >>> x, v = mg.variable([1.0, 2.0]), mg.variable([1.0, 1.0])
    >>> mg.hvp(lambda x: (x * x * x).sum(), x, v).tolist()
    [6.0, 12.0]
    """
    xs, vs = paired("hvp", x, v)
    trace = TracedCall("hvp", checked_function("hvp", f), xs, tuple(range(len(xs))))
    vs = fitting("hvp", "v", vs, trace.inputs)
    with enable_grad():
        first = trace.pull([full_like(trace.scalar(), 1.0)], create_graph=True)
    products = trace.grouped(trace.again(first, vs, trace.inputs))
    return tuple(products) if isinstance(x, (tuple, list)) else products[0]


@teaching
def jacobian(f, argnums: int | tuple[int, ...] = 0):
    """Returns the function that computes f's Jacobian, by one backward pass per result element.

    Args:
        f: takes Variables (or data), returns one Variable.
        argnums: the index of the argument to differentiate by, or a tuple of indices.

    Returns:
        A function with f's arguments. It returns a Variable `(*f's shape, *the argument's shape)`,
        or a tuple of these for a tuple of argnums. The derivative of result [i] by argument [j] is
        at [i, j].

    >>> import minigrad as mg
    >>> mg.jacobian(lambda x: x * x)([1.0, 2.0]).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    checked_function("jacobian", f, argnums)

    def matrix(*args):
        trace = TracedCall("jacobian", f, args, argnums)
        y = trace.only()
        rows = [trace.pull([_unit(y, k)], retain_graph=k + 1 < y.size) for k in range(y.size)]
        matrices = [_stacked([row[n] for row in rows], y, x) for n, x in enumerate(trace.inputs)]
        matrices = trace.grouped(matrices)
        return tuple(matrices) if isinstance(argnums, (tuple, list)) else matrices[0]

    return _named(matrix, f, "jacobian")


@teaching
def hessian(f, argnums: int | tuple[int, ...] = 0):
    """Returns the function that computes the Hessian of f, which returns one element.

    For one argument of shape s the Hessian has shape `(*s, *s)`. For a tuple of argnums it is a
    tuple of tuples, with the second derivative by arguments i and j at [i][j].

    >>> import minigrad as mg
    >>> mg.hessian(lambda x: (x * x * x).sum())([1.0, 2.0]).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    checked_function("hessian", f, argnums)

    def matrix(*args):
        numbers = tuple(chosen_arguments("hessian", argnums, args))
        rows: Any = tuple([jacobian(grad(f, k), numbers)(*args) for k in numbers])
        return rows if isinstance(argnums, (tuple, list)) else rows[0][0]

    return _named(matrix, f, "hessian")


def _unit(y, k):
    values = np.zeros(y.size)
    values[k] = 1.0
    return Variable(device_of(y.array).from_numpy(values.reshape(y.shape), y.dtype))


def _stacked(rows, y, x):
    shape = (*y.shape, *x.shape)
    if not rows:
        return full_like(x, 0.0, shape)
    if seams.effects.is_tracing or any(row.requires_grad for row in rows):
        return functions["reshape"](functions["stack"](rows, 0), shape)
    device = device_of(x.array)
    values = np.stack([values_of(row.array) for row in rows]).reshape(shape)
    return Variable(device.from_numpy(values, x.dtype))
