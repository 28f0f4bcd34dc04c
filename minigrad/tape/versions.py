"""Whether what a node saved is as it was, and what code that is not the engine's is given of it."""

from minigrad.array.array import Array
from minigrad.devices.backend import device_of
from minigrad.errors import GraphFreedError, SavedValueModifiedError
from minigrad.seams import seams
from minigrad.tape.modes import state
from minigrad.tape.variable import Variable, written_line


def check(node):
    """Raises if a node's saved values are gone or were written to."""
    kept = node.kept
    if kept is None:
        raise GraphFreedError(
            f"backward through {node.op} a second time: what it saved was freed by the first",
            fix="pass retain_graph=True to the first backward, or compute the result again",
            details=[("made at", node.line)],
        )
    if seams.check_saved is not None:
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


def entrusted():
    """Notes that code runs which is not the engine's: it may write to what nodes have saved.

    From then on, the backward pass that runs checks each node once more, when its turn comes.
    """
    running = state.backward_pass
    if running is not None:
        running.is_entrusted = True


def lent(g):
    """A gradient (an Array or a Variable) for such code, which may write to it.

    Other edges may have the same gradient: a write makes a copy, and only who wrote sees it.
    """
    if type(g) is Array:
        return Variable(device_of(g).share(g))
    if isinstance(g, Array):
        return Variable(_twin(g))
    if g.node is None and g._requires_grad:
        return g  # a leaf, known by its Variable: a write to it that is recorded raises
    return Variable(_twin(g.array), g.node, g._requires_grad)


def _twin(array):
    """The same values, copied at the first write to either."""
    base, device = array.storage, device_of(array)
    if array is base:
        return device.share(array)
    if base.buffer.pins or base.is_foreign or 2 * array.nbytes < base.nbytes:
        return device.convert(array, array.dtype)
    return device.share(base).view(array.shape, array.strides, array.offset)


def given_back(x, given, g):
    """The gradient that goes on: of x, which such code made of `given`, which was lent of g.

    Whoever keeps x may write to it later, so that what goes on is a twin.
    """
    if x is given and not x.array.version and (isinstance(g, Array) or x.node is g.node):
        return g
    return _twin(x.array) if isinstance(g, Array) else lent(x)
