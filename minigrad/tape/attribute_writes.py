"""Counts writes to attributes that compiled steps rely on; a trace refuses such writes."""

import weakref

from minigrad.memory.interrupts import uninterrupted
from minigrad.seams import seams


class Writes:
    """Counts the writes in this process that compiled steps must notice.

    count: increases when an attribute of a Module, Parameter, Optimizer or manager is set, or a
    hook of a Module or leaf. lasting: the same without switches of a Module's `training`, which
    alternates. switched: ids of the Modules whose `training` was switched an odd number of times.

    A number attribute of a Module counts only at its first change. From then on compiled steps read
    it at each run.
    """

    __slots__ = ("_numbers", "count", "lasting", "switched")

    def __init__(self):
        self.count, self.lasting, self.switched = 0, 0, set()
        self._numbers = {}  # (id of a Module, attribute) -> weak reference to the Module

    @uninterrupted
    def note(self):
        """Counts a change that cannot be reversed."""
        self.lasting += 1
        self.count += 1  # last, so that a thread that sees the count also sees the state

    @uninterrupted
    def switch(self, module):
        """Counts a switch of `training` of a Module."""
        if id(module) in self.switched:
            self.switched.discard(id(module))
        else:
            self.switched.add(id(module))
        self.count += 1

    def renumber(self, module, name):
        """Notes that a number attribute gets a new value of the same type."""
        key = id(module), name
        known = self._numbers.get(key)
        if known is None or known() is not module:
            self._numbers[key] = weakref.ref(module, lambda _: self._numbers.pop(key, None))
            self.note()

    def numbers(self):
        """Returns (Module, attribute) of each number that has changed."""
        changed = [(known(), name) for (_, name), known in list(self._numbers.items())]
        return [(module, name) for module, name in changed if module is not None]

    def state(self):
        """Returns a value that equals an earlier one if no attribute has changed since."""
        return self.lasting, frozenset(self.switched)


writes = Writes()


def written(owner, what, is_switch=False, number=None):
    """Notes a write before it happens.

    While a step is traced, it may write only to objects that it has made itself. Nothing else
    relies on these, so such writes do not count.

    Args:
        owner: the object to write to.
        what: text for the error, such as "Linear.scale = ...".
        is_switch: whether the write only switches `training` of a Module.
        number: the attribute, if the write only changes a number.
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
    """Notes that a hook of a Module or a leaf was set or removed.

    A traced step may do this: the effects of its hooks are part of its program.
    """
    if not seams.effects.is_tracing:
        writes.note()
