"""The backward pass: gradients flow from the roots to the leaves, consumers before producers.

Everything is checked before anything is written; `.grad` is written after the whole pass, so an
error leaves it as it was.
"""

from minigrad.array.array import Array
from minigrad.devices.backend import device_of
from minigrad.errors import (
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    GradientError,
    InPlaceError,
    SeamError,
    ShapeError,
)
from minigrad.memory.interrupts import ready, uninterrupted
from minigrad.tape import variable as variable_module
from minigrad.tape.flow import ADD, add_gradients, ends_at, flow
from minigrad.tape.modes import enable_grad, no_grad, state
from minigrad.tape.node import Node
from minigrad.tape.order import leading_to, ordered
from minigrad.tape.probe import run_as
from minigrad.tape.variable import Variable
from minigrad.tape.versions import check, raise_modified
from minigrad.tape.writes import hooked


class Pass:
    """A backward pass that runs.

    is_committed: its gradients go to `.grad`, straight into their slots if possible.
    is_entrusted: code that is not the engine's has run in it; see `entrusted`.
    """

    __slots__ = ("is_active", "is_committed", "is_entrusted")

    def __init__(self, is_committed, is_entrusted):
        self.is_active, self.is_committed, self.is_entrusted = True, is_committed, is_entrusted


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
    order = _order([key for key in start if type(key) is Node], create_graph)
    live = None
    if only is not None:
        live = leading_to(order, only)
        order = [node for node in order if node in live]
        start = {key: g for key, g in start.items() if key in live}
    watched = live is not None or state.seams is not None
    for node in order:
        kept = node.kept
        if kept is None or watched:
            if live is None or not ends_at(node, live):
                check(node)
            continue
        for value, version in zip(kept, node.versions, strict=True):
            if version is not None and value.version != version:
                raise_modified(node, value, version)
    mode = enable_grad if create_graph else no_grad
    outer, mine = state.backward_pass, Pass(is_committed, state.seams is not None)
    running = state.running
    state.backward_pass = mine
    try:
        with mode():
            return flow(order, start, retain_graph or create_graph, create_graph, only, live)
    finally:
        state.backward_pass, state.running = outer, running
        mine.is_active = False


def _order(roots, create_graph):
    """All nodes the roots depend on, consumers before producers, by the engine or a learner."""
    seams = state.seams
    if seams is None:
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
    if dy.array.device != root.array.device:
        raise DeviceError(
            f"backward: wanted dy on {root.device}, as what it is the gradient of",
            dy.device,
            f"move it: dy.to({root.device!r})",
        )
    return dy


def run_backward(root, dy, retain_graph, create_graph):
    """Variable.backward."""
    if state.watchers:
        run_as("backward", _run_backward, root, dy, retain_graph, create_graph)
    else:
        _run_backward(root, dy, retain_graph, create_graph)


def _run_backward(root, dy, retain_graph, create_graph):
    ready()
    dy = upstream(root, dy)
    leaves = gradients([root], [dy], retain_graph, create_graph, is_committed=not create_graph)
    commit(leaves, [dy.array.storage])


def commit(leaves, taken=()):
    """Adds gradients to `.grad`. The first one is never an alias of another's, nor of `taken`."""
    _write_grads(leaves, set(taken))
    for leaf in leaves:
        for hook in tuple((leaf.post_hooks or {}).values()):
            hook(leaf)


@uninterrupted
def _write_grads(leaves, seen):
    """Writes all of them: Ctrl-C finds every `.grad` as it was, or every one new."""
    if state.trace is not None:
        for leaf in leaves:
            state.trace.grad(leaf)
    for leaf, g in leaves.items():
        write_grad(leaf, g, seen)


def write_grad(leaf, g, seen):
    """Stores or adds one gradient; `seen` holds the Storages given away so far."""
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


class Handle:
    """Removes a hook: `handle.remove()`. is_lasting: of a Module or a leaf, not of one graph."""

    def __init__(self, hooks, key, is_lasting=True):
        self._hooks, self._key, self._is_lasting = hooks, key, is_lasting

    @uninterrupted
    def remove(self):
        """Takes the hook away; doing so twice is fine."""
        if self._hooks.pop(self._key, None) is not None and self._is_lasting:
            hooked()

    def __enter__(self):
        return self

    @uninterrupted
    def __exit__(self, *error):
        self.remove()


def _callable(name, hook):
    if not callable(hook):
        raise ArgumentTypeError(f"{name}: wanted a function", f"{hook!r:.60}")


def register_hook(x, hook):
    """Variable.register_hook."""
    _callable("register_hook", hook)
    if not x.requires_grad:
        raise GradientError("register_hook: this Variable gets no gradient", x.describe())
    owner = x.node or x
    if owner.hooks is None:
        owner.hooks = {}
    key = object()
    owner.hooks[key] = hook
    if owner is x:
        hooked()
    return Handle(owner.hooks, key, is_lasting=owner is x)


def register_post_accumulate_hook(x, hook):
    """Variable.register_post_accumulate_hook: for leaves."""
    _callable("register_post_accumulate_hook", hook)
    if x.node is not None or not x.requires_grad:
        raise GradientError(
            "register_post_accumulate_hook: wanted a leaf that requires gradients", x.describe()
        )
    if x.post_hooks is None:
        x.post_hooks = {}
    key = object()
    x.post_hooks[key] = hook
    hooked()
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
