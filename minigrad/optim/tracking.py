"""Tracks the parameters that an optimizer updates, their names, and the orphans among them."""

from minigrad.errors import ArgumentError
from minigrad.nn import Module
from minigrad.optim.group import check_trainable


class Tracking:
    """Follows modules by the ids of their parameters, and keeps Parameters that were given.

    orphans: {id: Parameter} that the optimizer must report. These are given Parameters that no
    living module contains any more, and followed Parameters that are gone but have state.
    """

    def __init__(self, optimizer):
        self._optimizer = optimizer
        self._names, self._warned = {}, set()
        self._followed = {}  # id -> Parameter of a followed module
        self.orphans = {}

    def update(self):
        """Lists the parameters of modules again; returns whether the list has changed."""
        optimizer = self._optimizer
        owner_of, followed, names, lists = {}, {}, {}, []
        for k, group in enumerate(optimizer.groups):
            members = []
            for source in group.sources:
                is_module = isinstance(source, Module)
                named = source.named_parameters() if is_module else [(None, source)]
                for name, p in named:
                    check_trainable(optimizer.algorithm, p)
                    if p.id in owner_of:
                        if is_module and owner_of[p.id] == (k, True):
                            continue  # two modules of one group share it
                        _raise_twice(optimizer.algorithm, p)
                    owner_of[p.id] = k, is_module
                    members.append(p)
                    if is_module:
                        followed[p.id] = p
                        names[p.id] = name
                    else:
                        names[p.id] = p.name or self._names.get(p.id)
            lists.append(members)
        self._name(lists, names)
        self._find_orphans(lists, followed)
        changed = False
        for group, members in zip(optimizer.groups, lists, strict=True):
            before = group.parameters
            if len(before) != len(members) or any(
                a is not b for a, b in zip(before, members, strict=True)
            ):
                group.follow(members)
                changed = True
        return changed

    def _name(self, lists, names):
        """Gives every parameter a unique name."""
        used = set()
        for k, p in enumerate(p for members in lists for p in members):
            name = base = names[p.id] or f"parameter_{k}"
            copies = 1
            while name in used:
                copies += 1
                name = f"{base}#{copies}"
            used.add(name)
            self._names[p.id] = name

    def _find_orphans(self, lists, followed):
        state, orphans = self._optimizer.state, {}
        for id_, p in {**self._followed, **self.orphans}.items():
            if id_ not in followed and p.is_orphan and id_ in state:
                orphans[id_] = p
        for members in lists:
            for p in members:
                if p.id not in followed and p.is_orphan:
                    orphans[p.id] = p
        self._followed, self.orphans = followed, orphans

    def knows(self, parameter):
        """Returns whether the parameter is updated now, is an orphan, or has state."""
        return parameter.id in self.orphans or any(
            p is parameter for group in self._optimizer.groups for p in group.parameters
        ) or parameter.id in self._optimizer.state  # fmt: skip

    def replaced(self, old, new):
        """Replaces a given `old` with `new`, and forgets `old`."""
        self.orphans.pop(old.id, None)
        self._followed.pop(old.id, None)
        for group in self._optimizer.groups:
            group.sources = [new if s is old else s for s in group.sources]

    def unwarned(self):
        """Returns the orphans that no warning has named yet."""
        new = [p for id_, p in self.orphans.items() if id_ not in self._warned]
        self._warned.update(p.id for p in new)
        return new

    def rename(self, names):
        """Takes over {id: name}, the names that another optimizer used for the parameters."""
        self._names.update(names)

    def accept_orphans(self):
        """Forgets orphans that were followed, with their state."""
        given = {p.id for group in self._optimizer.groups for p in group.parameters}
        for id_ in list(self.orphans):
            if id_ not in given:
                self._optimizer.state.pop(id_, None)
                del self.orphans[id_]

    def name_of(self, parameter):
        """Returns the name under which the parameter is or was tracked."""
        return self._names.get(parameter.id) or parameter.name

    def named(self):
        """Returns (name, Parameter) in order."""
        return [(self._names[p.id], p) for g in self._optimizer.groups for p in g.parameters]


def _raise_twice(algorithm, parameter):
    raise ArgumentError(
        f"{algorithm}: '{parameter.name or parameter.describe()}' was given twice; it would be "
        "updated twice per step",
        fix="give each parameter once, in one group; model.parameters() lists tied ones once",
    )
