"""Marks on gradients of a loss that a GradScaler has scaled: what sets them, and who refuses them.

A node of the scaled loss notes each backward pass that goes through it. The pass then marks the
gradients that it writes (`Variable.scaled_by`), and `unscale_` takes the marks away.
"""

from minigrad.errors import StateError
from minigrad.tape.modes import state
from minigrad.tape.node import Plan


class _Marks:
    """are_used: whether this process ever set a mark. Without one, nobody need look for any."""

    are_used = False


marks = _Marks()


class Marking(Plan):
    """The plan of a scaled loss's node: the same plan, which notes that a pass went through it."""

    def __init__(self, plan, scaler):
        self._plan, self._scaler = plan, scaler

    def __getattr__(self, name):
        return getattr(self._plan, name)

    def backward(self, node, dy):
        """Computes the gradients, and notes the scaler."""
        if state.backward_pass is not None:
            state.backward_pass.scaled_by = self._scaler
        return self._plan.backward(node, dy)

    def backward_graph(self, node, dy):
        """Computes gradients with a graph, and notes the scaler."""
        if state.backward_pass is not None:
            state.backward_pass.scaled_by = self._scaler
        return self._plan.backward_graph(node, dy)

    def narrowed(self, edges, live):
        """Returns a plan without the gradients of edges outside `live`."""
        return Marking(self._plan.narrowed(edges, live), self._scaler)


ELSEWHERE = "the GradScaler of another rank"  # a mark on gradients that came from there


def is_scaled(loss):
    """Returns whether a GradScaler has scaled this loss."""
    return loss.node is not None and isinstance(loss.node.plan, Marking)


def mark(leaves, scaler):
    """Marks the gradients of leaves as scaled."""
    marks.are_used = True
    for leaf in leaves:
        if leaf._grad is not None:
            leaf._grad.scaled_by = scaler


def scaled_of(parameters):
    """Returns those of the parameters whose gradients are marked."""
    if not marks.are_used:
        return []
    found = [(p, p._grad) for p in parameters]
    return [p for p, g in found if g is not None and g.scaled_by is not None]


def refuse_scaled(name, parameters, fix):
    """Raises StateError if gradients of parameters are still scaled. fix: what to do instead."""
    if scaled := scaled_of(parameters):
        raise StateError(
            f"{name}: wanted unscaled gradients",
            f"those of {called(scaled)} are gradients of a loss that a GradScaler has scaled",
            fix,
        )


def called(parameters):
    """Returns the names of parameters, for a message."""
    return ", ".join(f"'{p.name or p.describe()}'" for p in parameters)
