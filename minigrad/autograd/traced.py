"""Records one call of a function with stand-ins for its arguments.

All functional transforms use it.
"""

from types import FunctionType
from typing import Any

from minigrad.arguments import short
from minigrad.array.array import Array
from minigrad.autograd.trees import beside, inputs_of, is_input, is_tree, mapped, refilled
from minigrad.devices.backend import device_of
from minigrad.errors import ArgumentError, ArgumentTypeError, DTypeError, GradientError, ShapeError
from minigrad.hints import explained, fails_at_the_call
from minigrad.ops.operands import constant, first_variable
from minigrad.tape.backward import gradients as backward_gradients
from minigrad.tape.modes import enable_grad, state
from minigrad.tape.node import Node
from minigrad.tape.variable import Variable, filled


def gradients_at(pairs, xs, create_graph=False, retain_graph=False):
    """Returns the gradients of sum <y, dy> at xs as Variables, None if no path leads to an x."""
    if not pairs:
        return [None] * len(xs)
    targets = {x.node or x for x in xs}
    grads = backward_gradients(
        [y for y, _ in pairs], [d for _, d in pairs], retain_graph, create_graph, targets
    )
    given = {d.array.storage for _, d in pairs}
    results = []
    for x in xs:
        g = grads.get(x.node or x)
        if isinstance(g, Array):
            # results must not share memory, but two of them, or one and dy, may be one Array
            own = type(g) is Array and g.storage not in given
            g = g if own else device_of(g).convert(g, g.dtype)
            given.add(g.storage)
            g = Variable(g)
        results.append(g)
    return results


def or_zeros(grads, models):
    """Returns the gradients with zeros instead of None."""
    return [full_like(x, 0.0) if g is None else g for x, g in zip(models, grads, strict=True)]


class TracedCall:
    """One call of a function with new Variables instead of the chosen arguments.

    inputs: the new Variables. outputs: the results. is_part: whether the derivatives belong to an
    outer graph, because recording was on and a value outside needs gradients.
    """

    def __init__(self, name, f, arguments, argnums: int | tuple[int, ...] = 0, has_aux=False):
        self.name, before = name, state.context
        chosen = chosen_arguments(name, argnums, arguments)
        arguments, recording, self.inputs = list(arguments), state.recording, []
        self.trees = [arguments[k] for k in chosen]
        self.context = state.context = _Watch()
        try:
            with enable_grad():
                outside = [self._stand_ins(arguments, k, recording) for k in chosen]
                result = f(*arguments)
        except TypeError as error:
            if not fails_at_the_call(error) or not isinstance(f, FunctionType):
                raise
            raise explained(f, error) from None
        finally:
            state.context = before
        if before is not None and self.context.has_left_graph:
            before.has_left_graph = True
        self.aux = None
        if has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise ArgumentTypeError(
                    f"{name}: wanted f to return (result, auxiliary) because of has_aux=True",
                    type(result).__name__,
                )
            result, self.aux = result
        self.is_single = not isinstance(result, (tuple, list))
        self.outputs = [result] if self.is_single else list(result)
        for y in self.outputs:
            if not isinstance(y, Variable):
                raise ArgumentTypeError(
                    f"{name}: wanted f to return a Variable", f"{type(y).__name__}"
                )
        self._check_left()
        self.is_part = recording and (any(outside) or self._reaches_others())

    def _stand_ins(self, arguments, k, recording):
        """Replaces argument k; returns whether a part of it belongs to an outer graph."""
        tree, outside, count = arguments[k], [], len(self.inputs)
        near = first_variable([*arguments, *inputs_of(tree)])

        def stand_in(leaf):
            if tree is not leaf and not is_input(leaf):
                return leaf
            outside.append(self._stand_in(leaf, k, recording, near))
            return self.inputs[-1]

        arguments[k] = mapped(tree, stand_in)
        if len(self.inputs) == count:
            raise ArgumentTypeError(
                f"{self.name}: wanted a Variable of floats, at least one, in argument {k}",
                short(tree),
            )
        return any(outside)

    def _stand_in(self, x, k, recording, near):
        """Appends a stand-in for x to the inputs; returns whether x belongs to an outer graph."""
        x = x if isinstance(x, Variable) else constant(x, self.name, near)
        if not x.dtype.is_float:
            raise DTypeError(
                f"{self.name}: wanted a floating point argument {k}",
                x.describe(),
                "convert it: x.to('float32')",
            )
        is_outside = recording and x.requires_grad
        self.inputs.append(x.clone() if is_outside else x.detach())
        if not is_outside:
            self.inputs[-1].requires_grad = True
        return is_outside

    def grouped(self, flat) -> list[Any]:
        """Returns values, one for each input, as a list in the form of the chosen arguments."""
        values = iter(flat)
        return [refilled(x, values) if is_tree(x) else next(values) for x in self.trees]

    def _check_left(self):
        """Raises if f left the graph: a result without a graph may still depend on arguments."""
        if self.context.has_left_graph and not any(y.requires_grad for y in self.outputs):
            raise GradientError(
                f"{self.name}: f left the graph (numpy, item, tolist), so it is unknown how its "
                "result depends on its arguments",
                fix="compute with mg functions inside f; use detach() where a constant is meant",
            )

    def _reaches_others(self):
        """Returns whether the outputs depend on leaves other than the stand-ins."""
        own = {id(x.node or x) for x in self.inputs}
        stack = [y.node or y for y in self.outputs if y.requires_grad]
        seen = set(map(id, stack))
        while stack:
            maker = stack.pop()
            if id(maker) in own:
                continue
            if type(maker) is not Node:
                return True
            for edge in maker.edges:
                if edge is not None and id(edge) not in seen:
                    seen.add(id(edge))
                    stack.append(edge)
        return False

    def pull(self, dys, create_graph=None, retain_graph=False):
        """Returns the gradients of sum <output, dy> at the inputs, zeros where there are none."""
        pairs = [(y, d) for y, d in zip(self.outputs, dys, strict=True) if y.requires_grad]
        create = self.is_part if create_graph is None else create_graph
        grads = gradients_at(pairs, self.inputs, create, retain_graph)
        return or_zeros(grads, self.inputs)

    def again(self, first, vectors, targets):
        """Returns the gradients of sum <first derivative, vector> at targets, or zeros."""
        pairs = [(g, v) for g, v in zip(first, vectors, strict=True) if g.requires_grad]
        create = self.is_part or (state.recording and any(v.requires_grad for v in vectors))
        return or_zeros(gradients_at(pairs, targets, create), targets)

    def result(self):
        """Returns f's result, detached from the stand-ins unless it belongs to an outer graph."""
        outputs = [y if self.is_part else y.detach() for y in self.outputs]
        return outputs[0] if self.is_single else tuple(outputs)

    def scalar(self):
        """Returns the only output. Raises unless it has one element."""
        y = self.only()
        if y.size != 1:
            raise GradientError(
                f"{self.name}: wanted f to return one element",
                f"shape {y.shape}",
                "reduce it (y.sum() or y.mean()), or use mg.vjp or mg.jacobian",
            )
        return y

    def only(self):
        """Returns the only output. Raises if there are several."""
        if not self.is_single:
            raise ArgumentTypeError(
                f"{self.name}: wanted f to return one Variable", f"{len(self.outputs)} of them"
            )
        return self.outputs[0]


class _Watch:
    """Notes whether a traced function took values out of the graph."""

    has_left_graph = False


def checked_function(name, f, argnums: object = 0):
    """Checks that f is a function and that argnums are ints; returns f."""
    if not callable(f):
        raise ArgumentTypeError(
            f"{name}: wanted a function",
            type(f).__name__,
            "mg.gradients(y, x) for the gradient of a Variable" if name == "grad" else None,
        )
    numbers = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    if not all(type(k) is int for k in numbers):
        raise ArgumentTypeError(
            f"{name}: wanted an int or a tuple of ints for argnums",
            type(argnums).__name__,
            f"the function first, then its arguments: mg.{name}(f)(x)",
        )
    return f


def chosen_arguments(name, argnums, arguments):
    """Checks argnums; returns the positions as a list."""
    numbers = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    for k in numbers:
        if not -len(arguments) <= k < len(arguments):
            raise ArgumentError(
                f"{name}: wanted argnums that exist", f"{k}, with {len(arguments)} arguments"
            )
    numbers = [k % len(arguments) for k in numbers]
    if len(set(numbers)) != len(numbers) or not numbers:
        raise ArgumentError(f"{name}: wanted different argnums, at least one", short(argnums))
    return numbers


def full_like(x, value, shape=None):
    """Makes a constant of a Variable's dtype, with its shape or the given one."""
    return Variable(filled(x.array, value, shape))


def paired(name, inputs, vectors):
    """Returns two equally long lists from Variables or tuples of them."""
    many = isinstance(inputs, (tuple, list))
    if many and not inputs:
        raise ArgumentError(f"{name}: wanted at least one argument of f", "none")
    xs = list(inputs) if many else [inputs]
    vs = list(vectors) if many and isinstance(vectors, (tuple, list)) else [vectors]
    if len(vs) != len(xs):
        raise ShapeError(f"{name}: wanted one vector per argument", f"{len(vs)} for {len(xs)}")
    return xs, [
        leaf for v, x in zip(vs, xs, strict=True) for leaf in beside(name, "the vectors", v, x)
    ]


def fitting(name, what, values, models):
    """Checks values against the shapes and dtypes of models; returns them as Variables."""
    if len(values) != len(models):
        raise ShapeError(f"{name}: wanted {len(models)} Variables for {what}", f"{len(values)}")
    checked = []
    for v, m in zip(values, models, strict=True):
        v = v if isinstance(v, Variable) else constant(v, name, m)
        if v.shape != m.shape:
            raise ShapeError(f"{name}: wanted {what} of shape {m.shape}", f"{v.shape}")
        if v.dtype is not m.dtype:
            raise DTypeError(f"{name}: wanted {what} of dtype {m.dtype}", f"{v.dtype}")
        checked.append(v)
    return checked
