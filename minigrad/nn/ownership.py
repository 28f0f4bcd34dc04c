"""Owners of parameters and modules: weak references to the owning modules, with attribute names.

They determine the names of parameters ("0.weight") and tell an optimizer whether a parameter is
still part of a living module.
"""

import weakref

from minigrad.memory.interrupts import uninterrupted
from minigrad.seams import seams
from minigrad.tape.attribute_writes import writes


class Changes:
    """Counts changes of ownership in this process. A cache is stale if the count has changed."""

    __slots__ = ("count",)

    def __init__(self):
        self.count = 0

    @uninterrupted
    def note(self, dead=None):
        """Counts a change. dead: the weak reference of a module that died, else None.

        Changes to modules that a traced step has made itself do not count.
        """
        self.count += 1
        if not seams.effects.is_tracing or dead is not None:
            writes.note()


changes = Changes()


def reference(module):
    """Returns a weak reference to a module; its death counts as a change, except in a trace."""
    return weakref.ref(module, None if seams.effects.is_tracing else changes.note)


def add_owner(owners, module_reference, attribute):
    """Returns the living owners and the new one, as a list."""
    changes.note()
    return [*(o for o in owners if o[0]() is not None), (module_reference, attribute)]


def remove_owner(owners, module, attribute):
    """Returns the owners without (module, attribute), as a list."""
    changes.note()
    return [o for o in owners if not (o[0]() is module and o[1] == attribute)]


def path(owners):
    """Returns the dotted name from the outermost living owner, or None if none lives.

    Of several owners, as of tied weights, the first one counts.
    """
    for module_reference, attribute in owners:
        module = module_reference()
        if module is not None:
            prefix = path(module.__dict__["_owners"])
            return f"{prefix}.{attribute}" if prefix else attribute
    return None


def is_owned(owners):
    """Returns whether any owner lives."""
    return any(module_reference() is not None for module_reference, _ in owners)
