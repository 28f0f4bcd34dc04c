"""Attributes that compiled steps rely on: every write is counted, and refused inside a step."""

from minigrad.graph.modes import state


class Writes:
    """`count` moves whenever an attribute of a Module, Parameter, Optimizer or manager is set."""

    __slots__ = ("count",)

    def __init__(self):
        self.count = 0


writes = Writes()


def written(owner, what):
    """Notes a write, before it is done. what: as "Linear.scale = ...", for the error."""
    writes.count += 1
    if state.trace is not None:
        state.trace.write(owner, what)
