"""Makes stand-ins: Variables without memory that a traced function gets as arguments.

They let the trace detect a function that also captures an argument's memory (self.h), or that keeps
an argument. The program identifies an argument only by its index: it runs with any slice of a data
set.
"""

import copy
import gc
import weakref

from minigrad.array.array import Array
from minigrad.array.layout import is_contiguous
from minigrad.array.overlap import span
from minigrad.compiler.trace.refusals import kept_error
from minigrad.compiler.trace.tracebuffer import StandInBuffer
from minigrad.devices.backend import device_of
from minigrad.errors import TraceError
from minigrad.tape.variable import Variable


class StandInGroup:
    """The members over one Storage. low: their first element, relative to member 0's offset.

    base: the stand-in of that Storage. is_fixed: the members stand for themselves (Parameters).
    """

    def __init__(self, members):
        self.members, first = members, members[0]
        self.is_fixed = any(m.is_fixed for m in members)
        self.storage = first.array.storage
        spans = [(m.array.offset, *span(m.array.shape, m.array.strides)) for m in members]
        start = min(offset + low for offset, low, _, _ in spans)
        self.low = start - first.array.offset
        self.size = max(offset + high for offset, _, high, _ in spans) - start
        self.where = first.where
        if self.is_fixed:
            self.base = self.storage
            return
        dtype = first.array.dtype
        buffer = StandInBuffer(self.size * dtype.itemsize, self.where, self.storage.device)
        self.base = Array(buffer, (self.size,), dtype)
        self.base.is_flat = False  # keeps ops off their fast paths, which compute immediately
        self.start = start

    @property
    def number(self):
        return self.members[0].number

    def copied(self):
        """Return a copy of all elements that the members cover."""
        shown = self.members[0].array.storage.view((self.size,), (1,), self.start)
        return device_of(shown).convert(shown, shown.dtype)

    def forget(self):
        """Release the arguments of the traced call."""
        if not self.is_fixed:
            self.storage = None

    def stand_in(self, member):
        """Return a stand-in Variable for a member."""
        if self.is_fixed:
            return member.variable
        a, x = member.array, member.variable
        if len(self.members) == 1 and a.size == self.size and is_contiguous(a.shape, a.strides):
            array = self.base
            array.shape, array.strides = a.shape, a.strides
        else:
            array = self.base.view(a.shape, a.strides, a.offset - self.start)
        out = type(x)(array, requires_grad=x._requires_grad, name=x.name)
        out._grad = x._grad
        return out


def give_memory(array, source):
    """Give an Array without memory, or with unwritten memory, the bytes of another."""
    array.buffer = source.buffer
    source.buffer.owners += 1
    array.is_flat = array.is_contiguous


class StandIns:
    """The arguments of a call with stand-ins for Variables: `args` and `kwargs`.

    groups: by Storage. member_of: {id of a stand-in: the Member it stands for}.
    """

    def __init__(self, description, args, kwargs, numbers):
        self._numbers, self._moving = numbers, description.moving
        self.groups = [StandInGroup(members) for members in description.groups]
        self._made, self.member_of = {}, {}
        for group in self.groups:
            for member in group.members:
                x = member.variable
                if id(x) not in self._made:
                    made = self._made[id(x)] = group.stand_in(member)
                    self.member_of[id(made)] = member
        wheres = description.wheres
        self.args = tuple(map(self._tree, args, wheres))
        self.kwargs = {
            key: self._tree(kwargs[key], f"argument {key!r}") for key in description.order
        }
        self._before = _tokens((self.args, self.kwargs))

    def _tree(self, tree, where):
        if isinstance(tree, Variable):
            return self._made[id(tree)]
        if isinstance(tree, dict):
            values = {key: self._tree(value, f"{where}[{key!r}]") for key, value in tree.items()}
            if type(tree) is dict:
                return values
            new = copy.copy(tree)  # a defaultdict keeps its factory
            new.update(values)
            return new
        if isinstance(tree, (tuple, list)):
            values = [self._tree(x, f"{where}[{k}]") for k, x in enumerate(tree)]
            return type(tree)(*values) if hasattr(tree, "_fields") else type(tree)(values)
        if where in self._moving:
            return self._numbers.argument(tree, where)
        return tree

    def of(self, members):
        """Return the stand-ins of some Members."""
        return [self._made[id(m.variable)] for m in members]

    def check_leaves(self, capture):
        """Raise if backward inside the function reached an argument that carries a graph."""
        members = [self.member_of[id(v)] for v in capture.variables]
        for effect in capture.grads:
            if effect.leaf is not None:
                continue
            member = members[effect.argument]
            node = member.variable.node
            if node is not None:
                raise TraceError(
                    f"{member.where} carries a graph, and backward inside the compiled step would "
                    "go on there",
                    f"the output of {node.op}",
                    "pass x.detach(), or compute it inside the step; or return the loss and call "
                    "backward outside",
                    details=[("made at", node.line)],
                )

    def check_unchanged(self):
        """Raise if the function changed a list or dict among its arguments."""
        if _tokens((self.args, self.kwargs)) != self._before:
            raise TraceError(
                "the compiled step changes a list or dict that is passed to it; a program changes "
                "arrays alone",
                fix="return what is to be appended, and append it outside",
            )

    def let_go(self, is_first=False):
        """Drop the stand-ins; raise if the function kept one, or a view of one.

        A stand-in that the first call keeps gets a copy of the argument instead.
        """
        alive = [(weakref.ref(g.base), g) for g in self.groups if not g.is_fixed]
        self.args, self.kwargs, self._made = (), {}, {}
        for group in self.groups:
            group.base = None
        if any(reference() is not None for reference, _ in alive):
            gc.collect()  # what is held only by a cycle is not kept
            for reference, group in alive:
                base = reference()
                if base is not None and not is_first:
                    raise kept_error(group.where)
                if base is not None:
                    give_memory(base, group.copied())


def _tokens(tree):
    """Flatten a tree into a list of types, keys and ids of leaves."""
    tokens, stack = [], [tree]
    while stack:
        x = stack.pop()
        if isinstance(x, dict):
            tokens += (dict, *x)
            stack += x.values()
        elif isinstance(x, (tuple, list)):
            tokens += (type(x), len(x))
            stack += x
        else:
            tokens.append(id(x))
    return tokens
