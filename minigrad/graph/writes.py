"""Attributes that compiled steps rely on: every write is counted, and refused inside a step."""

from minigrad.graph.modes import state


class Writes:
    """`count` moves whenever an attribute of a Module, Parameter, Optimizer or manager is set."""

    __slots__ = ("count",)

    def __init__(self):
        self.count = 0


writes = Writes()


def written(owner, what):
    """Notes a write, before it is done. what: as "Linear.scale = ...", for the error.

    While a step is traced, only objects that the step itself makes may be written: nobody else
    relies on them, so that they do not count.
    """
    if state.trace is None:
        writes.count += 1
    else:
        state.trace.write(owner, what)
