"""What a node saves for backward, and how it is read again where backward builds a graph."""

from minigrad.array.array import Array
from minigrad.devices.backend import device_of
from minigrad.tape.modes import state
from minigrad.tape.node import Node, Plan
from minigrad.tape.variable import Variable


def protected(array):
    """The Array to save: itself, or a copy if untracked or permitted writes may change it."""
    if array.buffer.is_foreign:
        return device_of(array).convert(array, array.dtype)
    return device_of(array).share(array) if state.saving_copies else array


class SavedPlan(Plan):
    """A leaf as it was when it was saved: its gradient is the leaf's."""

    name, input_names, saved_names = "saved", ("leaf",), ()

    def backward(self, node, dy):
        """The gradient itself."""
        return (dy,)

    backward_graph = backward


SAVED = SavedPlan()


def saved_variable(node, k, value):
    """A saved value as the Variable that it was, input k or (k < 0) the output, with its edge."""
    if not isinstance(value, Array):
        return value
    if k < 0:
        return Variable(value, node, True)
    edge = node.edges[k]
    if edge is None:
        return Variable(value)
    if type(edge) is Node:
        return Variable(value, edge, True)
    # a copy was saved, or the leaf got another Array: its bytes may be others by now
    return edge if edge.array is value else Variable(value, Node(SAVED, (edge,)), True)
