"""The walk of a backward pass: gradients move along the edges, sums form where they meet."""

import time
from operator import length_hint

from minigrad.array.array import Array
from minigrad.devices.backend import device_of
from minigrad.errors import ArgumentTypeError, DeviceError, GraphFreedError, ShapeError
from minigrad.formulas.expression import Program, symbol
from minigrad.tape.modes import state
from minigrad.tape.node import Node
from minigrad.tape.variable import Variable
from minigrad.tape.versions import check, entrusted, given_back, lent

ADD = Program(["a", "b"], [symbol("a") + symbol("b")])


def flow(order, arrived, retain_graph, create_graph, only=None, live=None):
    """Walks the nodes in order and returns the gradients of the leaves and of the targets.

    Args:
        order: nodes, consumers before producers.
        arrived: node or leaf -> the sum of what has come so far: at first, of the roots.
        retain_graph: whether nodes keep what they saved.
        create_graph: whether gradients are Variables with a graph of their own.
        only, live: the targets and all that leads to them; None for every leaf.
    """
    nodes, found = iter(order), {}
    try:
        if create_graph or only is not None or state.observers or state.seams or state.watchers:
            found = walk(nodes, arrived, retain_graph, create_graph, only, live)
        else:
            _plain(nodes, arrived, retain_graph)
    except TypeError as error:
        node = order[len(order) - length_hint(nodes) - 1]
        if node.kept is None:  # it was there when the pass began
            raise GraphFreedError(
                f"another thread went back through this graph and freed what {node.op} saved",
                fix="let one thread call backward, or compute the loss in each",
                details=[("made at", node.line)],
            ) from error
        raise
    leaves = {}
    for edge, g in arrived.items():
        if type(edge) is not Node:
            leaves[edge] = run_hooks(edge.hooks, g) if edge.hooks else g
    leaves.update(found)
    return leaves


def _plain(order, arrived, retain_graph):
    """The walk when nobody watches: eager time is spent here."""
    owned, arrive, leave, entries = set(), arrived.get, arrived.pop, ADD.entry_in_place
    running = state.backward_pass
    for node in order:
        dy = leave(node, None)
        if dy is None:
            continue  # reached only through inputs that take no gradient
        if node.hooks:
            dy = run_hooks(node.hooks, dy)
        if running.is_entrusted:
            check(node)
        grads = node.plan.backward(node, dy)
        if not retain_graph:
            node.kept = None
        for edge, g in zip(node.edges, grads, strict=True):
            if edge is None or g is None:
                continue
            before = arrive(edge)
            if before is None:
                arrived[edge] = g
            elif edge in owned:  # nobody else has seen this sum: add in place
                entry = entries[before.dtype.index]
                if g.is_flat and entry is not None:
                    address = before.buffer.address
                    entry(address, g.buffer.address, address, before.size)
                else:
                    add_into(before, g)
            else:  # what arrived first may be shared with another edge
                total = arrived[edge] = add_gradients(before, g)
                if type(total) is Array:
                    owned.add(edge)
        dy = grads = g = before = total = None  # memory that nobody needs goes back at once


def ends_at(node, live):
    """Whether a wanted node leads to no other target: its own gradient is all that is needed."""
    return not any(edge in live for edge in node.edges)


def walk(order, arrived, retain_graph, create_graph, only, live):
    """The walk with all that can be asked of it; returns the gradients of wanted nodes.

    Those of the leaves stay in `arrived`, before their hooks.
    """
    owned, found, running = set(), {}, state.backward_pass
    observers, seams, watched = state.observers, state.seams, state.watchers
    accumulate = seams.accumulate if seams and seams.accumulate else None
    for node in order:
        dy = arrived.pop(node, None)
        if dy is None:
            continue  # reached only through inputs that take no gradient
        if node.hooks:
            dy = run_hooks(node.hooks, dy)
        if only is not None and node in only:
            found[node] = dy
            if ends_at(node, live):
                continue
        if running.is_entrusted:
            check(node)
        if watched:
            state.running = f"{node.op} backward", (node.code, node.instruction)
            if state.trace is not None and not create_graph and type(dy) is Array and dy.is_flat:
                dy = dy.view(dy.shape, dy.strides)  # real memory: short ways would compute with it
        began = time.perf_counter() if observers else 0.0
        if create_graph:
            grads = node.plan.backward_graph(node, dy)
        else:
            grads = node.plan.backward(node, dy)
        if observers:
            for observe in observers:
                observe(node, dy, grads, time.perf_counter() - began)
        if not retain_graph:
            node.kept = None
        for edge, g in zip(node.edges, grads, strict=True):
            if edge is None or g is None or (live is not None and edge not in live):
                continue
            before = arrived.get(edge)
            if accumulate is not None:
                accumulate(arrived, edge, g)
            elif before is None:
                arrived[edge] = g
            elif create_graph:
                arrived[edge] = before + g
            elif edge in owned:
                add_into(before, g)
            else:
                total = arrived[edge] = add_gradients(before, g)
                if type(total) is Array:
                    owned.add(edge)
    return found


def add_gradients(a, b):
    """a + b as a new Array (or Variable)."""
    if not isinstance(a, Array):
        return a + b
    device = device_of(a)
    out = device.empty(a.shape, a.dtype)
    device.elementwise(ADD, (a, b), (out,))
    return out


def add_into(a, b):
    """a += b for a sum that is ours: no one else has seen it."""
    entry = ADD.entry_in_place[a.dtype.index]
    if entry is not None and b.is_flat and a.is_flat and b.dtype is a.dtype:
        entry(a.buffer.address, b.buffer.address, a.buffer.address, a.size)
    else:
        device_of(a).elementwise(ADD, (a, b), (a,))


def run_hooks(hooks, g):
    """Passes a gradient through hooks in order; each may replace it."""
    entrusted()
    grad = given = lent(g)
    for hook in tuple(hooks.values()):
        result = hook(grad)
        if result is None:
            continue
        if not isinstance(result, Variable):
            raise ArgumentTypeError(
                "a gradient hook: wanted a Variable or None", f"{type(result).__name__}"
            )
        if result.shape != grad.shape or result.dtype is not grad.dtype:
            raise ShapeError(
                f"a gradient hook: wanted a gradient of {grad.describe()}", result.describe()
            )
        if result.array.device != grad.array.device:
            raise DeviceError(f"a gradient hook: wanted a gradient on {grad.device}", result.device)
        grad = result
    return given_back(grad, given, g)
