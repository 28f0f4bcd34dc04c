"""Saves values for backward, and restores them as Variables when backward builds a graph."""

from minigrad.array.array import Array
from minigrad.devices.backend import device_of
from minigrad.tape.modes import state
from minigrad.tape.node import Node, Plan
from minigrad.tape.variable import Variable


def protected(array):
    """Returns the Array to save: a copy if untracked or permitted writes may change it."""
    if array.buffer.is_foreign:
        return device_of(array).convert(array, array.dtype)
    return device_of(array).share(array) if state.saving_copies else array


class SavedPlan(Plan):
    """The plan of a leaf's saved value: its gradient is the gradient of the leaf."""

    name, input_names, saved_names = "saved", ("leaf",), ()

    def backward(self, node, dy):
        """Returns the gradient itself."""
        return (dy,)

    backward_graph = backward


SAVED = SavedPlan()


def saved_variable(node, k, value):
    """Returns a saved value as a Variable with its edge. k: the input, or < 0 for the output."""
    if not isinstance(value, Array):
        return value
    if k < 0:
        return Variable(value, node, True)
    edge = node.edges[k]
    if edge is None:
        return Variable(value)
    if type(edge) is Node:
        return Variable(value, edge, True)
    # the leaf may differ by now: a copy was saved, or the leaf got another Array
    return edge if edge.array is value else Variable(value, Node(SAVED, (edge,)), True)
