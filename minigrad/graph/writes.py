"""Attributes that compiled steps rely on: every write is counted, and refused inside a step."""

from minigrad.graph.modes import state


class Writes:
    """What has been set in this process, as far as compiled steps ask.

    count: moves whenever an attribute of a Module, Parameter, Optimizer or manager is set, or a
    hook of a Module or leaf. lasting: does not move where `training` of a Module is switched, which
    goes to and fro; switched: ids of the Modules that were so switched an odd number of times.
    """

    __slots__ = ("count", "lasting", "switched")

    def __init__(self):
        self.count, self.lasting, self.switched = 0, 0, set()

    def note(self):
        """One more change that nothing takes back."""
        self.lasting += 1
        self.count += 1  # last: who sees the new number sees the new state

    def switch(self, module):
        """`training` of a Module gets its other value."""
        if id(module) in self.switched:
            self.switched.discard(id(module))
        else:
            self.switched.add(id(module))
        self.count += 1

    def state(self):
        """Equal to an earlier one if all attributes are as they were then."""
        return self.lasting, frozenset(self.switched)


writes = Writes()


def written(owner, what, is_switch=False):
    """Notes a write, before it is done. what: as "Linear.scale = ...", for the error.

    While a step is traced, only objects that the step itself makes may be written: nobody else
    relies on them, so that they do not count.

    is_switch: whether it only gives `training` of a Module its other value.
    """
    if state.trace is not None:
        state.trace.write(owner, what)
    elif is_switch:
        writes.switch(owner)
    else:
        writes.note()


def hooked():
    """Notes that a hook of a Module or a leaf was set or taken away.

    A step that is traced may do so: what its hooks do is a part of its program.
    """
    if state.trace is None:
        writes.note()
