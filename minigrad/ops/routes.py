"""Routes: generated code that repeats what an operation did for a key seen before.

A key has all that decides what a call does: shapes, strides, dtypes and devices of the inputs, the
types of numbers, and the other arguments. The second call with a key records what forward does
(`devices.cpu.routes`), and generates code from the record. Further calls find this code in one
look-up (`ops.fast`). `gradients` does the same for the backward of a node.
"""

import copy
from math import inf
from typing import Any

from minigrad.array.array import Array, View
from minigrad.array.dtypes import DTYPES, DType, int64
from minigrad.devices.cpu.device import cpu
from minigrad.devices.cpu.own_matmul import state as own_matmul
from minigrad.devices.cpu.routes import recorded, written
from minigrad.ops.fast import EXACT, USABLE, Records, call_of_route
from minigrad.seams import seams
from minigrad.tape.modes import SLOW, state, watch
from minigrad.tape.node import Node, Plan
from minigrad.tape.variable import Variable

MOST = 2048  # keys that an operation keeps; one more clears them all
LARGEST = 2**22  # elements: above, what Python takes is negligible
NUMBERS = tuple(
    d.memory.type for d in DTYPES if d.kind != "b" and not d.is_coded
)  # NumPy's, of our dtypes
LOST: Any = object()  # stands where a route would: there is none
PLAIN = {int, bool, type(None), str, DType}  # types of arguments that a key may have


def are_plain(values):
    """Returns whether a key may have the values: they are immutable, and equal themselves."""
    for value in values:
        kind = type(value)
        is_number = kind is float and value == value
        if kind not in PLAIN and not is_number and not is_plain_tuple(value):
            return False
    return True


def kind_of(value):
    """Returns what tells a value in a key from equal ones that mean something else."""
    return repr(value) if type(value) is float else type(value)


def is_plain_tuple(value):
    """Returns whether a value is a tuple of ints, None and such tuples.

    A key does not compare types inside tuples.
    """
    return type(value) is tuple and all(
        type(v) is int or v is None or is_plain_tuple(v) for v in value
    )


def are_here(arrays, largest: float = LARGEST):
    """Returns whether Arrays are on the CPU, and small enough for a route to pay."""
    return all(x.buffer.pool is cpu.pool and x.size <= largest for x in arrays)


def key_of(op, args, attributes):
    """Returns the key of a call, or None if the call must take the slow path.

    args: Variables, and numbers for elementwise operations. The code of `ops.fast` makes the same
    keys.
    """
    key = []
    for a in args:
        kind = type(a)
        if op.takes_numbers and (kind is float or (kind is int and -EXACT <= a <= EXACT)):
            key.append(kind)
            continue
        if USABLE[kind] > state.path:
            return None
        x = a.array
        if type(x) is View and x.made_at is not None and x.made_at != x.version and a.node:
            return None
        buffer = x.buffer
        key.append((x.shape, x.strides, x.dtype, buffer.pool, buffer.is_foreign))
    for t in attributes:
        key += t, kind_of(t)
    return tuple(key) if are_plain(attributes) else None


def by_route(op, args, attributes=()):
    """Runs the route of a call. Returns None if the call must take the slow path.

    The second call with a key records what forward does, and makes a route for further calls.
    """
    if state.path == SLOW:
        return None if state.asked is None else _shown(op, args, attributes)
    if op.takes_numbers and any(isinstance(a, NUMBERS) for a in args):
        args = [a.item() if isinstance(a, NUMBERS) else a for a in args]
    key = key_of(op, args, attributes)
    if key is None:
        return None
    call = op.calls.get(key)
    if call is None:
        if note_first(op.calls, key):
            return None
        call = _found(op, key, args, attributes)
    return call(state.path, *args)


def _shown(op, args, attributes):
    """Runs an operation and adds it to those that have been asked for, without those inside it."""
    asked, state.asked = state.asked, None
    try:
        y = op.slow_path(*args, *attributes)
    finally:
        state.asked = asked
    args = [a.item() if isinstance(a, NUMBERS) else a for a in args]
    asked.append((op, args, attributes, y))
    return y


def call_of(op, args, attributes):
    """Returns the route of a call, made now if it has none yet; None if none can be made."""
    key = key_of(op, args, attributes)
    if key is None:
        return None
    note_first(op.calls, key)
    call = op.calls.get(key) or _found(op, key, args, attributes)
    return call if call.__code__.co_name == "route" else None


def _found(op, key, args, attributes):
    """Returns the function that runs further calls with a key: a route, or the slow path."""

    def slow(path, *args):
        return op.slow_path(*args, *attributes)

    route = op.calls[key] = _explored(op, args, attributes) or slow
    return route


def note_first(routes, key):
    """Notes a key; returns whether it is new. A route does not pay for a single call."""
    if key in routes:
        return False
    if len(routes) >= MOST:
        routes.clear()
    routes[key] = None
    return True


def noted(*arguments):
    """Like `recorded`, but without fast paths, so that every operation reaches the device."""
    before = state.path, state.watchers
    try:
        watch(+1)
        recording = recorded(*arguments)
    finally:  # without a call: Python delivers Ctrl-C at calls
        state.path, state.watchers = before
    return recording


def _explored(op, args, attributes):
    """Runs a call once to record what it does; returns its route, or None if it has none."""
    operands = [a.array if isinstance(a, Variable) else a for a in args]
    arrays = [x for x in operands if isinstance(x, Array)]
    largest = inf if op.is_view else LARGEST  # a view takes no longer of more elements
    if not arrays or not are_here(arrays, largest):
        return None
    if not op.routes_ints and any(
        isinstance(x, Array) and not x.dtype.is_float for x in operands[op.promotes]
    ):
        return None
    out, recorder = noted(op.forward, operands, op.inputs, *attributes)
    if int in map(type, operands) and out.dtype.kind == "i" and out.dtype is not int64:
        return None  # this dtype may not hold the number: each call must ask
    if recorder is None or out.size > largest or any(out is x for x in recorder.inputs):
        return None  # an input returned as it is may be a View in one call, and not in the next
    slow = f"slow({', '.join([f'a{k}' for k in range(len(operands))])}, *others)"
    lines = written(recorder, out, slow)
    if lines is None:
        return None
    if op.stores_numbers and out.dtype.is_float:
        most = out.dtype.overflow
        checks = [
            f"if not -{most!r} < x{k} < {most!r}: return {slow}"
            for k, x in enumerate(operands)
            if not isinstance(x, Array)
        ]
        lines = lines._replace(lines=(*checks, *lines.lines))
    kinds = "".join("x" if isinstance(x, Array) else "n" for x in operands)
    outline = tuple(
        [(x.shape, x.dtype) if isinstance(x, Array) else None for x in (*operands, out)]
    )
    is_recorded = out.dtype.is_float and op.has_gradients
    known = Records(op, kinds, outline), attributes, op.slow_path
    is_view = type(out) is View
    call = call_of_route(lines, kinds, is_view, is_recorded, recorder.has_product, known)
    call.checks = len(recorder.checks)
    return call


class RoutedPlan(Plan):
    """A Plan that records what it does for a layout of dy, and repeats it.

    general(node, dy): computes gradients for any operands, by `gradients`. op: the operation.
    """

    is_of_route = False  # whether the saved values of all its nodes have the same layouts
    writes: Any = ()  # inputs whose gradients may go directly into the flat buffer of a group

    def __init__(self, op, mask):
        self.op, self.mask, self.name, self.input_names = op, mask, op.name, op.inputs
        self.routes = {}  # key: a route, LOST, or None for a key that came once
        self.narrow = {}  # mask: the plan for only these gradients

    def general(self, node, dy):
        """Computes gradients for any operands."""
        raise NotImplementedError

    def narrowed(self, edges, live):
        mask = sum([1 << k for k, e in enumerate(edges) if e is not None and e in live])
        if mask == self.mask:
            return self
        plan = self.narrow.get(mask)
        if plan is None:
            plan = copy.copy(self)
            plan.mask, plan.routes, plan.narrow = mask, {}, {}
            plan.leave_out()
            if self.is_of_route:
                plan = plan.of_route()
            self.narrow[mask] = plan
        return plan

    def leave_out(self):
        """Leaves out the gradients that are not in the mask. The saved values stay the same."""
        raise NotImplementedError

    def of_route(self):
        """Returns a plan for the nodes of one route, whose saved values have the same layouts.

        So only the layout of dy selects the code.
        """
        plan = copy.copy(self)
        plan.is_of_route, plan.routes, plan.narrow = True, {}, {}
        general, routes, writes = plan.general, plan.routes, plan.writes

        def backward(node, dy):
            if state.path != SLOW and not seams.in_backward and not own_matmul.is_used:
                route = routes.get((dy.strides, dy.dtype, dy.buffer.pool))
                if route is not None and route is not LOST:
                    for k in writes:
                        if in_group(node.edges[k]):
                            return general(node, dy)
                    return route(dy, *node.kept)
            return general(node, dy)

        plan.backward = backward
        return plan


def in_group(edge):
    """Returns whether an edge is a parameter with a slice of a group's flat buffer."""
    return type(edge) is not Node and edge.group is not None


def gradients(plan, node, dy, function):
    """Computes the gradients of a node, by a route if there is one.

    function(dy, *kept) -> a list of Arrays and None. Apart from its arguments it may depend only on
    the node's `wanted` and attributes.
    """
    kept = node.kept
    if (
        state.path == SLOW
        or seams.in_backward
        or own_matmul.is_used
        or not are_plain(node.attributes)
    ):
        return function(dy, *kept)
    if plan.is_of_route:
        key = dy.strides, dy.dtype, dy.buffer.pool
    else:
        key = [node.wanted, (dy.shape, dy.strides, dy.dtype, dy.buffer.pool)]
        key += [*node.attributes, *map(kind_of, node.attributes)]
        for x in kept:
            if isinstance(x, Array):
                key.append((x.shape, x.strides, x.dtype, x.buffer.pool))
            else:
                key.append(type(x))
        key = tuple(key)
    route = plan.routes.get(key)
    if route is None and not note_first(plan.routes, key):
        return _explored_gradients(plan, key, (dy, *kept), function)
    if route is None or route is LOST:
        return function(dy, *kept)
    return route(dy, *kept)


def _explored_gradients(plan, key, operands, function):
    """Computes the gradients for the second call with a key, and makes a route if possible."""
    numbers = [x for x in operands if not isinstance(x, Array)]
    arrays = [x for x in operands if isinstance(x, Array)]
    route = LOST
    if are_here(arrays) and all(
        type(x) is float or (type(x) is int and abs(x) <= EXACT) for x in numbers
    ):
        results, recorder = noted(function, operands, plan.arguments)
        if recorder is not None:
            lines = written(recorder, results)
            route = LOST if lines is None else lines.function(len(operands))
    else:
        results = function(*operands)
    plan.routes[key] = route
    return results
