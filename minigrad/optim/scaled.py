"""Marks on gradients that no step may take yet: what sets them, and who refuses them.

A mark (`Variable.mark`) is the GradScaler that scaled the loss, or `Alone` if the gradients of
other ranks are missing. A node of the scaled loss notes each backward pass that goes through it.
The pass then marks the gradients that it writes, and `unscale_` takes the marks away. Those of a
DataParallel come from its `backward`, and end with the reduction.
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


class Alone:
    """The mark of gradients that are one rank's alone. scaler: their mark before, or None."""

    __slots__ = ("scaler",)

    def __init__(self, scaler):
        self.scaler = scaler


def mark(leaves, scaler):
    """Marks the gradients of leaves as scaled."""
    marks.are_used = True
    for leaf in leaves:
        if leaf._grad is not None:
            leaf._grad.mark = scaler


def mark_alone(parameters):
    """Marks the gradients of parameters as this rank's alone."""
    marks.are_used = True
    for _, g in _marked(parameters, lambda m: type(m) is not Alone):
        g.mark = Alone(g.mark)


def mark_reduced(parameters):
    """Takes the marks of `mark_alone` away."""
    for _, g in _marked(parameters, lambda m: type(m) is Alone):
        g.mark = g.mark.scaler


def scaled_of(parameters):
    """Returns those of the parameters whose gradients are scaled."""
    if not marks.are_used:
        return []

    def scales(m):
        return (m.scaler if type(m) is Alone else m) is not None

    return [p for p, _ in _marked(parameters, scales)]


def _marked(parameters, fits):
    """Returns (parameter, gradient) where the gradient's mark fits."""
    pairs = [(p, p._grad) for p in parameters]
    return [(p, g) for p, g in pairs if g is not None and fits(g.mark)]


def refuse_alone(name, parameters):
    """Raises StateError if gradients of parameters are this rank's alone."""
    if alone := [p for p, _ in _marked(parameters, lambda m: type(m) is Alone)]:
        raise StateError(
            f"{name}: wanted gradients of all ranks",
            f"those of {called(alone)} are this rank's alone",
            "one replica.backward outside no_sync() before the step",
        )


def refuse_marked(name, parameters, fix):
    """Raises StateError if gradients are still marked. fix: what to do where they are scaled."""
    if not marks.are_used:
        return
    refuse_alone(name, parameters)
    if scaled := scaled_of(parameters):
        raise StateError(
            f"{name}: wanted unscaled gradients",
            f"those of {called(scaled)} are gradients of a loss that a GradScaler has scaled",
            fix,
        )


def called(parameters):
    """Returns the names of parameters, for a message."""
    return ", ".join(f"'{p.name or p.describe()}'" for p in parameters)
