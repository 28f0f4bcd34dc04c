"""Routes: the short way of every operation, which does what an earlier call did, in one look-up.

`by_route` is the first thing that `apply` tries. Its key says all that decides what a call does:
shapes, strides, dtypes and devices of the inputs, the types of numbers, and the other arguments.
The second call with a key notes what forward does (`devices.cpu.routes`), and what is written of
these notes answers all further ones. `gradients` does the same for a node's backward.
"""

import functools
import sys
from typing import Any

from minigrad.array.array import Array, View
from minigrad.array.dtypes import DTYPES, bool_, int64
from minigrad.devices.backend import _active
from minigrad.devices.cpu.device import cpu
from minigrad.devices.cpu.own_matmul import state as own_matmul
from minigrad.devices.cpu.routes import recorded, written
from minigrad.ops.operands import InferenceVariable
from minigrad.seams import seams
from minigrad.tape.modes import NO_GRAD, SLOW, SPAN, note, state, watch
from minigrad.tape.node import OURS, Node, next_serial
from minigrad.tape.saved import protected
from minigrad.tape.variable import Variable

MOST = 512  # routes that an operation keeps
LARGEST = 2**18  # elements: kernels of larger arrays take far longer than the long way
NUMBERS = tuple(d.numpy.type for d in DTYPES if d.kind != "b")  # NumPy's, of our dtypes
EXACT = 2**53  # float64 holds all ints up to this size
LOST: Any = object()  # in the place of a route: there is none
PLAIN = {int, bool, type(None), str}


class Route:
    """What an operation does for one key: call(*args) -> its result, or None if there is no route.

    records: for each set of inputs that require gradients (plan, wanted, save), as a Node takes
    them; save(*operands, out) -> (saved values, their versions).
    """

    __slots__ = ("call", "has_product", "records")

    def __init__(self):
        self.call, self.has_product, self.records = None, False, {}


def are_plain(values):
    """Whether equal arguments of equal types mean the same, and do not change."""
    for value in values:
        kind = type(value)
        if kind not in PLAIN and not _is_plain_tuple(value):
            return False
    return True


def _is_plain_tuple(value):
    """A tuple of ints, None and such tuples: within tuples types are not compared."""
    return type(value) is tuple and all(
        type(v) is int or v is None or _is_plain_tuple(v) for v in value
    )


def are_here(arrays):
    """Whether Arrays lie on the CPU and are small enough for a route to matter."""
    return all(x.buffer.pool is cpu.pool and x.size <= LARGEST for x in arrays)


def by_route(op, args, attributes=()):
    """The result of an operation by the short way, or None where it has to go the long one.

    args: Variables, or for elementwise operations numbers, too.
    """
    if state.path == SLOW or _active.device is not None or not op.has_routes:
        return None
    key = []
    for a in args:
        kind = type(a)
        if kind is not Variable:
            if op.takes_numbers and (kind is float or (kind is int and -EXACT <= a <= EXACT)):
                key.append(kind)
                continue
            if op.takes_numbers and isinstance(a, NUMBERS):
                return by_route(op, [b.item() if b is a else b for b in args], attributes)
            if not isinstance(a, Variable) or kind is InferenceVariable:
                return None
        x = a.array
        if type(x) is View and x.made_at is not None and x.made_at != x.version and a.node:
            return None
        key.append((x.shape, x.strides, x.dtype, x.buffer.pool))
    if attributes:
        if not are_plain(attributes):
            return None
        key += attributes, tuple(map(type, attributes))
    key = tuple(key)
    route = op.routes.get(key)
    if route is None:
        if is_first(op.routes, key):
            return None
        route = op.routes[key] = _explored(op, args, attributes)
    if route.call is None or (route.has_product and own_matmul.is_used):
        return None
    return route.call(*args)


def is_first(routes, key):
    """Whether no call has had this key; what is called once does not repay a route."""
    if key in routes:
        return False
    if len(routes) >= MOST:
        routes.clear()
    routes[key] = None
    return True


def _noted(*arguments):
    """As `recorded`, and no operation inside passes the device by."""
    watch(+1)
    try:
        return recorded(*arguments)
    finally:
        watch(-1)


def _explored(op, args, attributes):
    """The Route of a call, which is made once to see what it does."""
    route = Route()
    operands = [a.array if isinstance(a, Variable) else a for a in args]
    arrays = [x for x in operands if isinstance(x, Array)]
    if not arrays or not are_here(arrays):
        return route
    if not op.routes_ints and any(
        isinstance(x, Array) and not x.dtype.is_float for x in operands[op.promotes]
    ):
        return route
    out, recorder = _noted(op.forward, operands, op.inputs, *attributes)
    run = None
    if int in map(type, operands) and not (out.dtype.is_float or out.dtype in (bool_, int64)):
        return route  # whether such a dtype holds a number is asked at each call
    if recorder is not None and not any(out is x for x in recorder.inputs):
        run = written(recorder, out)  # an input itself is a View in one call, and none in another
    if recorder is not None and run is not None:
        route.has_product = recorder.has_product
        kinds = "".join("x" if isinstance(x, Array) else "n" for x in operands)
        saves = out.dtype.is_float and op.has_gradients
        outline = [(x.shape, x.dtype) if isinstance(x, Array) else None for x in (*operands, out)]
        route.call = _caller(kinds, type(out) is View, saves)(
            run, route.records, lambda mask: _record(op, route, mask, outline), attributes
        )
    return route


def _record(op, route, mask, outline):
    """Makes what a Node takes for a set of inputs.

    outline: (shape, dtype) of the operands, of which numbers have None, and of the output.
    """
    plan = op.plan(mask)
    *wanted, own = outline
    is_uniform = op.takes_numbers and all(w == own for w in wanted)
    kinds = "".join("n" if w is None else "x" for w in wanted)
    found = plan, None if is_uniform else tuple(wanted), _saver(kinds, plan.saved_index)
    route.records[mask] = found
    return found


SAFE = "({0} if not ({0}.buffer.is_foreign or state.saving_copies) else protected({0}))"


@functools.lru_cache(1024)
def _saver(kinds, index):
    """A function (*operands, out) -> (saved values, their versions), generated for one choice."""
    names = [f"x{k}" for k in range(len(kinds))]
    chosen = [("out", "x") if k < 0 else (names[k], kinds[k]) for k in index]
    lines = [f"    {n} = {SAFE.format(n)}\n" for n, kind in dict.fromkeys(chosen) if kind == "x"]
    kept = "".join(f"{n}, " for n, _ in chosen)
    versions = "".join(f"{n}.version, " if kind == "x" else "None, " for n, kind in chosen)
    scope = {"state": state, "protected": protected}
    exec(
        f"def save({', '.join(names)}, out):\n{''.join(lines)}    return ({kept}), ({versions})\n",
        scope,
    )
    return scope["save"]


CALLER = """
def make(run, records, record, attributes):
    def call({args}):
        {operands}
        out = run({names})
        y = new(Variable)
        y.array = out
        {shown}
        {unrecorded}
            y._requires_grad, y.node = False, None
            return y
        mask = {mask}
        plan, wanted, save = records.get(mask) or record(mask)
        node = new(Node)
        node.plan, node.wanted, node.attributes, node.hooks = plan, wanted, attributes, None
        node.kept, node.versions = save({names}, out)
        node.edges = ({edges},)
        {dated}
        node.serial = next_serial()
        frame = getframe(2)
        while OURS[frame.f_code.co_filename] and frame.f_back is not None:
            frame = frame.f_back
        node.code, node.instruction = frame.f_code, frame.f_lasti
        y._requires_grad, y.node = True, node
        if state.path == SPAN:
            note(node)
        return y
    return call
"""


@functools.lru_cache(256)
def _caller(kinds, is_view, saves):
    """Makes functions of Variables and numbers, of which kinds says "x" and "n", from routes."""
    variables = [k for k, kind in enumerate(kinds) if kind == "x"]
    needs = " or ".join(f"a{k}._requires_grad" for k in variables)
    scope = {
        "new": object.__new__, "Variable": Variable, "Node": Node, "OURS": OURS, "note": note,
        "next_serial": next_serial, "getframe": sys._getframe, "state": state, "NO_GRAD": NO_GRAD,
        "SPAN": SPAN,
    }  # fmt: skip
    edge = "(a{0}.node or a{0}) if a{0}._requires_grad else None"
    text = CALLER.format(
        args=", ".join(f"a{k}" for k in range(len(kinds))),
        names=", ".join(f"x{k}" for k in range(len(kinds))),
        operands="; ".join(
            f"x{k} = a{k}.array" if kind == "x" else f"x{k} = a{k}" for k, kind in enumerate(kinds)
        ),
        shown="out.shown_by(y)" if is_view else "",
        dated="out.made_at = out.version" if is_view else "",
        unrecorded=f"if state.path == NO_GRAD or not ({needs}):" if saves else "if True:",
        mask=" | ".join(f"(a{k}._requires_grad and {1 << k})" for k in variables),
        edges=", ".join(edge.format(k) if kind == "x" else "None" for k, kind in enumerate(kinds)),
    )
    exec(text, scope)
    return scope["make"]


def gradients(plan, node, dy, function):
    """The gradients of a node, by the short way where there is one.

    function(dy, *kept) -> a list of Arrays and None; it may depend on the node's `wanted` and
    attributes alone. plan.routes: {key: what was written}.
    """
    kept = node.kept
    if (
        state.path == SLOW
        or _active.device is not None
        or seams.in_backward
        or own_matmul.is_used
        or not plan.op.has_routes
        or not are_plain(node.attributes)
    ):
        return function(dy, *kept)
    key = [node.wanted, node.attributes, (dy.shape, dy.strides, dy.dtype, dy.buffer.pool)]
    for x in kept:
        if isinstance(x, Array):
            key.append((x.shape, x.strides, x.dtype, x.buffer.pool))
        else:
            key.append(type(x))
    key = tuple(key)
    route = plan.routes.get(key)
    if route is None and not is_first(plan.routes, key):
        return _explored_gradients(plan, key, (dy, *kept), function)
    if route is None or route is LOST:
        return function(dy, *kept)
    return route(dy, *kept)


def _explored_gradients(plan, key, operands, function):
    """The gradients of the first call with a key."""
    numbers = [x for x in operands if not isinstance(x, Array)]
    arrays = [x for x in operands if isinstance(x, Array)]
    route = LOST
    if are_here(arrays) and all(
        type(x) is float or (type(x) is int and abs(x) <= EXACT) for x in numbers
    ):
        results, recorder = _noted(function, operands, plan.arguments)
        if recorder is not None:
            route = written(recorder, results) or LOST
    else:
        results = function(*operands)
    plan.routes[key] = route
    return results
