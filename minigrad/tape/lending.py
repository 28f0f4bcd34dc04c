"""Lends gradients to users' functions, which may keep them, write to them or replace them."""

from minigrad.array.array import Array
from minigrad.devices.backend import device_of
from minigrad.errors import ArgumentTypeError, DeviceError, ShapeError
from minigrad.tape.modes import state
from minigrad.tape.variable import Variable


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


def run_hooks(hooks, g):
    """Passes a gradient through hooks in order. Each hook may replace the gradient."""
    entrusted()
    grad = given = lent(g)
    for hook in tuple(hooks.values()):
        grad = replaced("hook", hook(grad), grad)
    return given_back(grad, given, g)


def replaced(kind, result, grad):
    """Checks and returns the gradient from a user's function; for None, the previous one.

    kind: the kind of function, for errors.
    """
    if result is None:
        return grad
    if not isinstance(result, Variable):
        raise ArgumentTypeError(
            f"a gradient {kind}: wanted a Variable or None", f"{type(result).__name__}"
        )
    if result.shape != grad.shape or result.dtype is not grad.dtype:
        raise ShapeError(
            f"a gradient {kind}: wanted a gradient of {grad.describe()}", result.describe()
        )
    if result.array.device != grad.array.device:
        raise DeviceError(f"a gradient {kind}: wanted a gradient on {grad.device}", result.device)
    return result
