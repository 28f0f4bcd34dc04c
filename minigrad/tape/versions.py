"""Checks that saved values are unchanged, and protects gradients from writes of user code."""

from minigrad.array.array import Array
from minigrad.devices.backend import device_of
from minigrad.errors import GraphFreedError, SavedValueModifiedError
from minigrad.seams import seams
from minigrad.tape.modes import state
from minigrad.tape.variable import Variable, written_line


def check(node):
    """Raises if a node's saved values were freed or written to."""
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
    """Raises the error for a saved value that was written to."""
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
    """Notes that user code runs, which may write to saved values.

    From now on, the running backward pass checks each node again when it reaches the node.
    """
    running = state.backward_pass
    if running is not None:
        running.is_entrusted = True


def lent(g):
    """Returns a gradient (an Array or a Variable) as a Variable that user code may write to.

    Other edges may share the gradient, so a write makes a copy that only user code sees.
    """
    if type(g) is Array:
        return Variable(device_of(g).share(g))
    if isinstance(g, Array):
        return Variable(_twin(g))
    if g.node is None and g._requires_grad:
        return g  # a leaf, identified by its Variable: a recorded write to it raises
    return Variable(_twin(g.array), g.node, g._requires_grad)


def _twin(array):
    """Returns an Array with the same values, copied at the first write to either.

    It copies a broadcast Array now, so that each index has an element of its own to write.
    """
    base, device = array.storage, device_of(array)
    if array is base:
        return device.share(array)
    if base.buffer.pins or base.is_foreign or array.is_broadcast or 2 * array.nbytes < base.nbytes:
        return device.convert(array, array.dtype)
    return device.share(base).view(array.shape, array.strides, array.offset)


def given_back(x, given, g):
    """Returns the gradient with which the pass continues after user code.

    User code got `given`, which `lent` made from g, and returned x. It may keep x and write to it
    later, so the pass continues with a twin of x.
    """
    if x is given and not x.array.version and (isinstance(g, Array) or x.node is g.node):
        return g
    return _twin(x.array) if isinstance(g, Array) else lent(x)
