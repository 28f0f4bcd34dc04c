"""The backward pass: gradients flow from the roots to the leaves, consumers before producers.

Everything is checked before anything is written; `.grad` is written after the whole pass, so an
error leaves it as it was.
"""

import time

from minigrad.array.array import Array
from minigrad.errors import (
    ArgumentTypeError,
    DTypeError,
    GradientError,
    GraphFreedError,
    InPlaceError,
    SavedValueModifiedError,
    ShapeError,
)
from minigrad.graph import variable as variable_module
from minigrad.graph.modes import enable_grad, no_grad, state
from minigrad.graph.node import Node
from minigrad.graph.order import leading_to, ordered
from minigrad.graph.variable import Variable, written_line
from minigrad.kernels.backend import device_of
from minigrad.kernels.expression import Program, symbol

ADD = Program(["a", "b"], [symbol("a") + symbol("b")])


class Pass:
    """A backward pass whose gradients go to `.grad`: it may write them straight into their slots."""

    is_active = True


def gradients(roots, dys, retain_graph=False, create_graph=False, only=None, is_committed=False):
    """The gradients of all leaves, or of the targets in `only`, as a dict; writes no `.grad`.

    Args:
        roots: Variables that require gradients.
        dys: per root its upstream gradient (a Variable of its shape and dtype).
        only: leaf Variables and Nodes whose gradients are wanted; nothing else is visited.
        is_committed: the result is for `commit`: flat buffers of groups may be written.

    Returns:
        {leaf Variable or Node: gradient}; Arrays, or Variables with create_graph.
    """
    start = {}
    for root, dy in zip(roots, dys, strict=True):
        key = root.node or root
        value = dy if create_graph else dy.array
        start[key] = value if key not in start else add_gradients(start[key], value)
    seams = state.seams
    find = seams.topological_order if seams and seams.topological_order else ordered
    order = find([key for key in start if type(key) is Node])
    live = None
    if only is not None:
        live = leading_to(order, only)
        order = [node for node in order if node in live]
        start = {key: g for key, g in start.items() if key in live}
    for node in order:
        if live is None or not _ends_at(node, live):
            check(node)
    mode = enable_grad if create_graph else no_grad
    outer, mine = state.backward_pass, Pass() if is_committed else None
    state.backward_pass = mine
    try:
        with mode():
            return _flow(order, start, retain_graph or create_graph, create_graph, only, live)
    finally:
        state.backward_pass = outer
        if mine is not None:
            mine.is_active = False


def check(node):
    """Raises if a node's saved values are gone or were written to."""
    kept = node.kept
    if kept is None:
        raise GraphFreedError(
            f"backward through {node.op} a second time: what it saved was freed by the first",
            fix="pass retain_graph=True to the first backward, or compute the result again",
            details=[("made at", node.line)],
        )
    seams = state.seams
    if seams and seams.check_saved:
        seams.check_saved(node)
        return
    for value, version in zip(kept, node.versions, strict=True):
        if version is not None and value.version != version:
            raise_modified(node, value, version)


def raise_modified(node, value, version):
    """The error of a saved value that was written to."""
    names = [n for n, k in zip(node.plan.saved_names, node.kept, strict=False) if k is value]
    edge = node.edge_of(names[0]) if names else None
    name = getattr(edge, "name", None) or (names[0] if names else "?")
    raise SavedValueModifiedError(
        f"{node.op} saved {name} ({value.dtype}{list(value.shape)}) for backward, "
        "and it was written to in place before backward used it",
        f"version {value.version}, saved at version {version}",
        "write out of place (y = y + 1 instead of y += 1), or after backward",
        details=[("saved at", node.line), ("written at", written_line(value))],
    )


def _ends_at(node, live):
    """Whether a wanted node leads to no other target: its own gradient is all that is needed."""
    return not any(edge in live for edge in node.edges)


def _flow(order, arrived, retain_graph, create_graph, only, live):
    """Walks the nodes in order. `arrived`: node or leaf -> the sum of what has come so far.

    only, live: the targets and what leads to them, or None for all.
    """
    leaves, owned = {}, set()
    found = {}
    observers, seams = state.observers, state.seams
    accumulate = seams.accumulate if seams and seams.accumulate else None
    for node in order:
        dy = arrived.pop(node, None)
        if dy is None:
            continue  # reached only through inputs that take no gradient
        if node.hooks:
            dy = run_hooks(node.hooks, dy, create_graph)
        if only is not None and node in only:
            found[node] = dy
            if _ends_at(node, live):
                continue
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
            if before is None:
                arrived[edge] = g
            elif accumulate is not None:
                accumulate(arrived, edge, g)
            elif create_graph:
                arrived[edge] = before + g
            elif edge in owned:
                add_into(before, g)
            else:
                total = arrived[edge] = add_gradients(before, g)
                if type(total) is Array:
                    owned.add(edge)
    for edge, g in arrived.items():
        if type(edge) is not Node:
            if edge.hooks:
                g = run_hooks(edge.hooks, g, create_graph)
            leaves[edge] = g
    leaves.update(found)
    return leaves


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
    entry = ADD.entry[a.dtype.index]
    if entry is not None and b.is_flat and a.is_flat and b.dtype is a.dtype:
        entry(a.buffer.address, b.buffer.address, a.buffer.address, a.size)
    else:
        device_of(a).elementwise(ADD, (a, b), (a,))


def run_hooks(hooks, g, create_graph):
    """Passes a gradient through hooks in order; each may replace it."""
    grad = g if create_graph else Variable(g)
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
        grad = result
    return grad if create_graph else grad.array


def upstream(root, dy):
    """Checks a root and its dy; ones for a root of one element."""
    if not isinstance(root, Variable):
        raise ArgumentTypeError("backward: wanted a Variable", f"{type(root).__name__}")
    if not root.requires_grad:
        raise GradientError(
            "backward: this Variable requires no gradient, so there is no graph to go back through",
            root.describe(),
            "set requires_grad=True on a leaf it depends on, and compute it outside no_grad()",
        )
    if dy is None:
        if root.size != 1:
            raise GradientError(
                "backward: wanted one element, or an upstream gradient dy",
                f"shape {root.shape}",
                "reduce first (y.sum() or y.mean()), or pass dy of this shape",
            )
        device = device_of(root.array)
        ones = device.empty(root.shape, root.dtype)
        device.fill(ones, 1.0)
        return Variable(ones)
    if not isinstance(dy, Variable):
        raise ArgumentTypeError(
            "backward: wanted a Variable for dy", f"{type(dy).__name__}", "mg.variable(dy)"
        )
    if dy.shape != root.shape:
        raise ShapeError(f"backward: wanted dy of shape {root.shape}", f"{dy.shape}")
    if dy.dtype is not root.dtype:
        raise DTypeError(f"backward: wanted dy of dtype {root.dtype}", f"{dy.dtype}")
    return dy


def run_backward(root, dy, retain_graph, create_graph):
    """Variable.backward."""
    dy = upstream(root, dy)
    commit(gradients([root], [dy], retain_graph, create_graph, is_committed=not create_graph))


def commit(leaves):
    """Adds gradients to `.grad`. The first one is never an alias of another's."""
    seen = set()
    for leaf, g in leaves.items():
        write_grad(leaf, g, seen)
    for leaf in leaves:
        for hook in tuple((leaf.post_hooks or {}).values()):
            hook(leaf)


def write_grad(leaf, g, seen):
    """Stores or adds one gradient; `seen` holds the Storages given away so far."""
    before = leaf.grad_
    if not isinstance(g, Array):
        leaf.grad_ = g if before is None else before + g
        return
    device = device_of(g)
    if leaf.group is not None and (before is None or before.node is None):
        leaf.group[0].store(leaf, g)
    elif before is None:
        fresh = type(g) is Array and g.storage not in seen
        seen.add(g.storage)
        leaf.grad_ = Variable(g if fresh else device.convert(g, g.dtype))
    elif before.node is not None:  # a gradient with a graph of its own
        leaf.grad_ = Variable(add_gradients(before.array, g))
    else:
        device.prepare_write(before.array)
        device.elementwise(ADD, (before.array, g), (before.array,))


class Handle:
    """Removes a hook: `handle.remove()`."""

    def __init__(self, hooks, key):
        self._hooks, self._key = hooks, key

    def remove(self):
        """Takes the hook away; doing so twice is fine."""
        self._hooks.pop(self._key, None)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()


def register_hook(x, hook):
    """Variable.register_hook."""
    if not x.requires_grad:
        raise GradientError("register_hook: this Variable gets no gradient", x.describe())
    owner = x.node or x
    if owner.hooks is None:
        owner.hooks = {}
    key = object()
    owner.hooks[key] = hook
    return Handle(owner.hooks, key)


def register_post_accumulate_hook(x, hook):
    """Variable.register_post_accumulate_hook: for leaves."""
    if x.node is not None or not x.requires_grad:
        raise GradientError(
            "register_post_accumulate_hook: wanted a leaf that requires gradients", x.describe()
        )
    if x.post_hooks is None:
        x.post_hooks = {}
    key = object()
    x.post_hooks[key] = hook
    return Handle(x.post_hooks, key)


def check_write(x, what):
    """Variable.write_check."""
    if state.recording and x.requires_grad and x.node is None:
        raise InPlaceError(
            f"{what}: in-place writes to a leaf that requires gradients cannot be recorded",
            x.describe(),
            "write inside `with mg.no_grad():`, or out of place",
        )


for _name in ("run_backward", "register_hook", "register_post_accumulate_hook", "check_write"):
    setattr(variable_module.from_backward, _name, globals()[_name])
