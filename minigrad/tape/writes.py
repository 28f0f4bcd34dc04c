"""Attributes that compiled steps rely on: every write is counted, and refused inside a step."""

import weakref

from minigrad.memory.interrupts import uninterrupted
from minigrad.seams import seams


class Writes:
    """What has been set in this process, as far as compiled steps ask.

    count: moves whenever an attribute of a Module, Parameter, Optimizer or manager is set, or a
    hook of a Module or leaf. lasting: does not move where `training` of a Module is switched, which
    goes to and fro; switched: ids of the Modules that were so switched an odd number of times.

    A number in an attribute of a Module that gets another value counts once: from then on compiled
    steps read it at each run.
    """

    __slots__ = ("_numbers", "count", "lasting", "switched")

    def __init__(self):
        self.count, self.lasting, self.switched = 0, 0, set()
        self._numbers = {}  # (id of a Module, attribute) -> a weak reference to it

    @uninterrupted
    def note(self):
        """One more change that nothing takes back."""
        self.lasting += 1
        self.count += 1  # last: who sees the new number sees the new state

    @uninterrupted
    def switch(self, module):
        """`training` of a Module gets its other value."""
        if id(module) in self.switched:
            self.switched.discard(id(module))
        else:
            self.switched.add(id(module))
        self.count += 1

    def renumber(self, module, name):
        """A number in an attribute gets another value, of the same type."""
        key = id(module), name
        known = self._numbers.get(key)
        if known is None or known() is not module:
            self._numbers[key] = weakref.ref(module, lambda _: self._numbers.pop(key, None))
            self.note()

    def numbers(self):
        """(Module, attribute) of each number that has been set anew."""
        found = [(known(), name) for (_, name), known in list(self._numbers.items())]
        return [(module, name) for module, name in found if module is not None]

    def state(self):
        """Equal to an earlier one if all attributes are as they were then."""
        return self.lasting, frozenset(self.switched)


writes = Writes()


def written(owner, what, is_switch=False, number=None):
    """Notes a write, before it is done. what: as "Linear.scale = ...", for the error.

    While a step is traced, only objects that the step itself makes may be written: nobody else
    relies on them, so that they do not count.

    is_switch: whether it only gives `training` of a Module its other value. number: the attribute,
    if a number there only gets another value.
    """
    if seams.effects.write(owner, what):
        return
    if is_switch:
        writes.switch(owner)
    elif number is not None:
        writes.renumber(owner, number)
    else:
        writes.note()


def hooked():
    """Notes that a hook of a Module or a leaf was set or taken away.

    A step that is traced may do so: what its hooks do is a part of its program.
    """
    if not seams.effects.is_tracing:
        writes.note()
