"""Who owns whom: parameters and modules know their owners weakly, by attribute name.

From that come the names of parameters ("0.weight") and the question an optimizer asks: is this
parameter still part of a living module?
"""

import weakref

from minigrad.memory.interrupts import uninterrupted
from minigrad.seams import seams
from minigrad.tape.writes import writes


class Changes:
    """Counts changes of ownership in this process: who remembers the number sees that one came."""

    __slots__ = ("count",)

    def __init__(self):
        self.count = 0

    @uninterrupted
    def note(self, dead=None):
        """One more change. Also called when a module dies, with its weak reference.

        What a traced step does to the modules that it makes itself concerns nobody else.
        """
        self.count += 1
        if not seams.effects.is_tracing or dead is not None:
            writes.note()


changes = Changes()


def reference(module):
    """A weak reference whose death is a change of ownership, unless a traced step made it."""
    return weakref.ref(module, None if seams.effects.is_tracing else changes.note)


def add_owner(owners, module_reference, attribute):
    """A list of owners with one more; the dead are left out."""
    changes.note()
    return [*(o for o in owners if o[0]() is not None), (module_reference, attribute)]


def remove_owner(owners, module, attribute):
    """A list of owners without (module, attribute)."""
    changes.note()
    return [o for o in owners if not (o[0]() is module and o[1] == attribute)]


def path(owners):
    """The dotted name from the outermost living owner, or None if none lives.

    Of several owners the first counts, as for tied weights.
    """
    for module_reference, attribute in owners:
        module = module_reference()
        if module is not None:
            prefix = path(module.__dict__["_owners"])
            return f"{prefix}.{attribute}" if prefix else attribute
    return None


def is_owned(owners):
    """Whether an owner lives."""
    return any(module_reference() is not None for module_reference, _ in owners)
