"""The backward pass: gradients flow from the roots to the leaves, consumers before producers.

From top to bottom the file has the entry points, the walk over the nodes in the order that
`order.py` finds, and the writes to `.grad`. All checks come before all writes. `.grad` is written
after the whole pass, so an error leaves it unchanged.
"""

import time
from operator import length_hint

from minigrad.arguments import flag
from minigrad.array.array import Array
from minigrad.devices.backend import device_of
from minigrad.devices.threads import SPLIT
from minigrad.errors import GraphFreedError, SeamError
from minigrad.formulas.expression import ADD
from minigrad.memory.interrupts import ready, uninterrupted
from minigrad.seams import seams
from minigrad.tape.finality import Finals
from minigrad.tape.lending import run_hooks
from minigrad.tape.modes import enable_grad, no_grad, state
from minigrad.tape.node import Node
from minigrad.tape.order import leading_to, ordered
from minigrad.tape.probe import run_as
from minigrad.tape.upstream import upstream
from minigrad.tape.variable import Variable
from minigrad.tape.versions import check, raise_modified


def backward(root, dy=None, retain_graph=False, create_graph=False):
    """Adds dy times d(self)/d(leaf) to `.grad` of every leaf that requires gradients.

    Args:
        dy: the upstream gradient, of self's shape and dtype; 1 by default if self has one element.
        retain_graph: keep the saved values for another backward; by default they are freed.
        create_graph: record the gradients in a graph of their own, for higher derivatives.

    Raises:
        GradientError: self requires no gradient, or has several elements and no dy was given.
        GraphFreedError: an earlier backward has freed what the graph saved.
        SavedValueModifiedError: a saved value was written to in place. No `.grad` was changed.
    """
    if retain_graph is not False:
        retain_graph = flag("backward", "retain_graph", retain_graph)
    if create_graph is not False:
        create_graph = flag("backward", "create_graph", create_graph)
    if state.watchers:
        run_as("backward", _run_backward, root, dy, retain_graph, create_graph)
    else:
        _run_backward(root, dy, retain_graph, create_graph)


def backward_telling(root, dy, on_final):
    """Goes backward as `root.backward(dy)`. on_final: see `Finals`; if it raises, `.grad` stays."""
    if state.watchers:
        run_as("backward", _run_backward, root, dy, on_final=on_final)
    else:
        _run_backward(root, dy, on_final=on_final)


def _run_backward(root, dy, retain_graph=False, create_graph=False, on_final=None):
    ready()
    dy = upstream(root, dy)
    leaves = gradients(
        [root], [dy], retain_graph, create_graph, is_committed=not create_graph, on_final=on_final
    )
    commit(leaves, [dy.array.storage], state.take_scaler())


class BackwardPass:
    """A running backward pass.

    is_committed: whether its gradients go to `.grad`, directly into slices of groups if possible.
    is_entrusted: whether user code has run during the pass; see `lending.entrusted`.
    scaled_by: the GradScaler whose scaled loss the pass went through, or None.
    """

    __slots__ = ("is_active", "is_committed", "is_entrusted", "scaled_by")

    def __init__(self, is_committed, is_entrusted):
        self.scaled_by = None
        self.is_active, self.is_committed, self.is_entrusted = True, is_committed, is_entrusted


def gradients(
    roots,
    dys,
    retain_graph=False,
    create_graph=False,
    only=None,
    is_committed=False,
    on_final=None,
):
    """Computes the gradients of all leaves, or of the targets in `only`, without setting `.grad`.

    Args:
        roots: Variables that require gradients.
        dys: for each root an upstream gradient, a Variable of the root's shape and dtype.
        retain_graph, create_graph: as for `backward`.
        only: leaf Variables and Nodes to differentiate; the walk skips nodes that lead to none.
        is_committed: the result goes to `commit`, so flat buffers of groups may be written.
        on_final: see `Finals`.

    Returns:
        {leaf Variable or Node: gradient}. Gradients are Variables with create_graph, else Arrays.
    """
    start = {}
    for root, dy in zip(roots, dys, strict=True):
        key = root.node or root
        value = dy if create_graph else dy.array
        start[key] = value if key not in start else add_gradients(start[key], value)
    order = _order([key for key in start if type(key) is Node], create_graph)
    live = None
    if only is not None:
        live = leading_to(order, only)
        order = [node for node in order if node in live]
        start = {key: g for key, g in start.items() if key in live}
    for node in order:
        kept = node.kept
        if kept is None or seams.check_saved is not None:
            if live is None or not live.isdisjoint(node.edges):  # it leads to a target
                check(node)
            continue
        for value, version in zip(kept, node.versions, strict=True):
            is_changed = version is not None and value.version != version
            if is_changed and (live is None or not live.isdisjoint(node.edges)):
                raise_modified(node, value, version)
    mode = enable_grad if create_graph else no_grad
    outer, mine = state.backward_pass, BackwardPass(is_committed, seams.in_backward)
    running = state.running
    nodes = iter(order) if on_final is None else Finals(order, start, on_final)
    state.backward_pass = mine  # no call may stand between this and `try`: Ctrl-C comes at calls
    try:
        with mode():
            return flow(order, nodes, start, retain_graph or create_graph, create_graph, only, live)
    finally:
        state.backward_pass, state.running = outer, running
        mine.is_active, state.scaled_by = False, mine.scaled_by


def _order(roots, create_graph):
    """Returns all nodes that the roots depend on, ordered by the engine or by a learner's seam."""
    if not seams.in_backward:
        return ordered(roots)
    if create_graph:
        raise SeamError(
            "a learner's part runs in first-order backward passes only",
            "create_graph=True",
            "leave the mg.use block for higher derivatives",
        )
    if seams.find_cycle:
        seams.find_cycle(roots)
    return (seams.topological_order or ordered)(roots)


# -- The walk --------------------------------------------------------------------------------------


def flow(order, nodes, arrived, retain_graph, create_graph, only=None, live=None):
    """Walks the nodes in order and returns the gradients of the leaves and of the targets.

    Args:
        order: nodes, consumers before producers.
        nodes: an iterator over them.
        arrived: node or leaf -> the sum of its gradients so far; at first those of the roots.
        retain_graph: whether nodes keep their saved values.
        create_graph: whether gradients are Variables with a graph of their own.
        only, live: the targets, and all nodes that lead to them; None for all leaves.
    """
    dys = {}
    try:
        if (
            create_graph
            or (only is not None and any(type(target) is Node for target in only))
            or state.observers
            or seams.in_backward
            or state.watchers
        ):
            dys = walk(nodes, arrived, retain_graph, create_graph, only, live)
        else:
            _plain(nodes, arrived, retain_graph, live)
    except TypeError as error:
        node = order[len(order) - length_hint(nodes) - 1]
        if node.kept is None:  # it was not freed when the pass began
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
    leaves.update(dys)
    return leaves


def _plain(order, arrived, retain_graph, live):
    """Walks the nodes on the fast path, without observers. Eager training spends its time here."""
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
        plan = node.plan
        if plan.add_to is not None:
            edge = node.edges[0]
            if edge in owned:
                plan.add_to(node, dy, arrived[edge])
                if not retain_graph:
                    node.kept = None
                continue
            if edge not in arrived and edge is not None:
                owned.add(edge)  # add_to makes a new array for it
        if live is not None:
            plan = plan.narrowed(node.edges, live)
        grads = plan.backward(node, dy)
        if not retain_graph:
            node.kept = None
        for edge, g in zip(node.edges, grads, strict=True):
            if edge is None or g is None or (live is not None and edge not in live):
                continue
            before = arrive(edge)
            if before is None:
                arrived[edge] = g
            elif edge in owned:  # no other code holds this sum: add in place
                entry = entries[before.dtype.index]
                if entry is not None and g.is_flat and before.size < SPLIT:
                    address = before.buffer.address
                    entry(address, g.buffer.address, address, before.size)
                else:
                    add_into(before, g)
            else:  # another edge may share the first gradient
                total = arrived[edge] = add_gradients(before, g)
                if type(total) is Array:
                    owned.add(edge)
        dy = grads = g = before = total = None  # free memory at once


def walk(order, arrived, retain_graph, create_graph, only, live):
    """Walks the nodes with all options; returns the gradients of the nodes in `only`.

    The gradients of leaves stay in `arrived`, before their hooks.
    """
    owned, dys, running = set(), {}, state.backward_pass
    observers, accumulate, watched = state.observers, seams.accumulate, state.watchers
    for node in order:
        dy = arrived.pop(node, None)
        if dy is None:
            continue  # reached only through inputs that take no gradient
        if node.hooks:
            dy = run_hooks(node.hooks, dy)
        if only is not None and live is not None and node in only:
            dys[node] = dy
            if live.isdisjoint(node.edges):  # it leads to no other target
                continue
        if running.is_entrusted:
            check(node)
        if watched:
            state.running = f"{node.op} backward", (node.code, node.instruction)
            if seams.effects.is_tracing and not create_graph and type(dy) is Array and dy.is_flat:
                dy = dy.view(dy.shape, dy.strides)  # a View, because fast paths take flat arrays
        began = time.perf_counter() if observers else 0.0
        plan = node.plan if live is None else node.plan.narrowed(node.edges, live)
        if create_graph:
            grads = plan.backward_graph(node, dy)
        else:
            grads = plan.backward(node, dy)
        if observers:
            for observe in observers:
                observe(node, dy, grads, time.perf_counter() - began)
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
        if not retain_graph:
            node.kept = None  # last, because `flow` looks at it after a TypeError above
    return dys


def add_gradients(a, b):
    """Returns a + b as a new Array (or Variable)."""
    if not isinstance(a, Array):
        return a + b
    device = device_of(a)
    out = device.empty(a.shape, a.dtype)
    device.elementwise(ADD, (a, b), (out,))
    return out


def add_into(a, b):
    """Computes a += b for a sum that no other code holds."""
    entry = ADD.entry_in_place[a.dtype.index]
    if entry and b.is_flat and a.is_flat and b.dtype is a.dtype and a.size < SPLIT:
        entry(a.buffer.address, b.buffer.address, a.buffer.address, a.size)
    else:
        device_of(a).elementwise(ADD, (a, b), (a,))


# -- Writing .grad ---------------------------------------------------------------------------------


def commit(leaves, taken=(), scaler=None):
    """Adds gradients to `.grad`. No `.grad` shares memory with another or with `taken`."""
    _write_grads(leaves, set(taken), scaler)
    for leaf in leaves:
        for hook in tuple((leaf.post_hooks or {}).values()):
            hook(leaf)


@uninterrupted
def _write_grads(leaves, seen, scaler):
    """Writes every `.grad`; the loss's scaler marks it. After Ctrl-C all are new or none is."""
    seams.effects.grad(*leaves)
    for leaf, g in leaves.items():
        write_grad(leaf, g, seen)
    if scaler is not None:
        scaler._mark(leaves)


def write_grad(leaf, g, seen):
    """Stores or adds one gradient. seen: the Storages that are in use as a `.grad` already."""
    before = leaf._grad
    if not isinstance(g, Array):
        storage = g.array.storage
        mine = g.clone() if storage in seen else g
        seen.add(storage)
        leaf._grad = mine if before is None else before + mine
        return
    device = device_of(g)
    if leaf.group is not None and (before is None or before.node is None):
        leaf.group[0].store(leaf, g)
    elif before is None:
        fresh = type(g) is Array and g.storage not in seen
        seen.add(g.storage)
        leaf._grad = Variable(g if fresh else device.convert(g, g.dtype))
    elif before.node is not None:  # a gradient with a graph of its own
        leaf._grad = Variable(add_gradients(before.array, g))
    else:
        device.prepare_write(before.array)
        device.elementwise(ADD, (before.array, g), (before.array,))


Variable.backward = backward  # assigned here because this module imports Variable
