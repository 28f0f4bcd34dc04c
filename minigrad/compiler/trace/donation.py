"""Handles donated arguments: the step takes over their memory, and every later use raises.

A Storage that has lost its memory changes its class to `Donated`. Views, detached Variables and
values saved for backward ask the Storage for its Buffer, and so raise as well. A copy-on-write
clone is another Storage over the same Buffer and stays valid: a Buffer that is shared or pinned is
copied before it is handed over.
"""

from minigrad.arguments import short
from minigrad.array.array import Array, fresh, moves
from minigrad.array.layout import contiguous_strides
from minigrad.errors import ArgumentError, ArgumentTypeError, DonatedError
from minigrad.memory.interrupts import uninterrupted
from minigrad.nn.parameter import Buffer, Parameter
from minigrad.tape.node import place_line
from minigrad.tape.variable import Variable

_buffer = Array.__dict__["buffer"]


class Donated(Array):
    """A Storage without memory. `written_at`: (the step that took it, the line, what it keeps)."""

    __slots__ = ()

    @uninterrupted
    def __del__(self):
        pass  # the bytes have another owner

    @property
    def buffer(self):
        raise donated_error(self)


def donated_error(storage):
    """Return the error for a use of donated memory."""
    taker, place, _ = storage.written_at
    return DonatedError(
        f"a value was used whose memory has been donated to the compiled step '{taker}'",
        f"{storage.dtype}, {storage.size} elements",
        "use what the step returned; clone it before (y = x.clone()) to keep a copy of the old "
        "values; or leave it out of donate=",
        details=[("donated at", place_line(place))],
    )


@uninterrupted
def spend(storage, taker, place, owner=None):
    """Take a Storage's memory away; release it, unless `owner`, an Array, takes it over.

    Memory that NumPy views stays as long as NumPy holds the Storage.
    """
    buffer = storage.buffer
    if owner is None and buffer.pins:
        owner = fresh(buffer, storage.shape, storage.dtype, storage.size)
    if owner is None:
        buffer.owners -= 1
        if not buffer.owners:
            buffer.home.pool.release(buffer)
    _buffer.__delete__(storage)
    storage.is_flat = False
    storage.written_at = taker, place, owner if buffer.pins else None
    storage.__class__ = Donated
    moves.count += 1


@uninterrupted
def moved(storage, taker, place):
    """Move a donated Storage's memory to a new Storage; spend the old one."""
    new = fresh(storage.buffer, storage.shape, storage.dtype, storage.size)
    new.is_flat = storage.is_flat
    spend(storage, taker, place, new)
    return new


def _like(storage, buffer, shape):
    """Return an Array over a Buffer, with the size and dtype of a Storage."""
    new = fresh(buffer, shape, storage.dtype, storage.size)
    new.is_flat = storage.is_flat or storage.device == "cpu"
    return new


@uninterrupted
def claimed(storage, copy_buffer, copies, index):
    """Return None if the step may overwrite a Storage's memory, else an Array over a copy.

    copies: {index of the argument Value: how often it had to be copied}.
    """
    old = storage.buffer
    if old.owners == 1 and not old.pins and not old.is_foreign:
        return None  # nothing else owns the Buffer, knows its address or may write it
    copies[index] = copies.get(index, 0) + 1
    return _like(storage, copy_buffer(old), storage.shape)


@uninterrupted
def taken(storage, copy, shape, taker, place):
    """Return the Array of a result that was written to donated memory, or to its `copy`."""
    if copy is None:
        copy = _like(storage, storage.buffer, shape)
        spend(storage, taker, place, copy)
    else:
        copy.shape, copy.strides = shape, contiguous_strides(shape)
        spend(storage, taker, place)
    return copy


def check_member(member, described):
    """Raise if a Variable cannot be donated. described: the Description it belongs to."""
    x, storage = member.variable, member.array.storage
    what = f"donate: {member.where}"
    if isinstance(x, (Parameter, Buffer)):
        raise ArgumentError(
            f"{what} is a {type(x).__name__}, which models and optimizers hold on to",
            x.describe(),
            "a step may write it in place as it is; donate values that nobody needs afterwards",
        )
    if x._requires_grad:
        raise ArgumentError(
            f"{what} requires gradients: a graph or an optimizer may hold on to it",
            x.describe(),
            "pass x.detach() of a value that nobody needs afterwards",
        )
    for other in described.members:
        if other is not member and other.array.storage is storage:
            raise ArgumentError(
                f"{what} and {other.where} show the same memory: it can be given away once",
                x.describe(),
                "pass a clone in one of the two places: x.clone()",
            )
    if not (member.array.is_contiguous and member.array.size == storage.size):
        raise ArgumentError(
            f"{what} shows a part of its memory, or in another order",
            f"{x.describe()} of {storage.size} elements",
            "donate the whole, or pass a copy: mg.variable(x)",
        )


def members_of(described, donate, names):
    """Return the Members in the arguments that `donate` selects by position or name."""
    selected = []
    for which in donate:
        if isinstance(which, int):
            prefix = f"argument {which}"
            more = f"argument {names[which]!r}" if which < len(names) else None
        else:
            prefix = f"argument {which!r}"
            more = f"argument {names.index(which)}" if which in names else None
        mine = [
            m for m in described.members if _is_below(m.where, prefix) or _is_below(m.where, more)
        ]
        if not mine:
            raise ArgumentError(
                f"donate: wanted a Variable as {prefix}, or some inside it",
                f"{len(described.members)} Variables in all: "
                + ", ".join(m.where for m in described.members),
                "positions count from 0, self included; names are those of the parameters",
            )
        selected += [m for m in mine if m not in selected]
    for member in selected:
        check_member(member, described)
    return selected


def _is_below(where, prefix):
    return prefix is not None and (
        where == prefix or where.startswith((f"{prefix} ", f"{prefix}["))
    )


def replaced(tree, function):
    """Replace each Variable in a tree of results by function(variable)."""
    if isinstance(tree, Variable):
        return function(tree)
    if isinstance(tree, dict):
        for key in tree:
            tree[key] = replaced(tree[key], function)
        return tree
    if isinstance(tree, list):
        tree[:] = [replaced(x, function) for x in tree]
        return tree
    if isinstance(tree, tuple):
        values = [replaced(x, function) for x in tree]
        return type(tree)(*values) if hasattr(tree, "_fields") else tuple(values)
    return tree


def after_eager(result, storages, taker, place):
    """Spend the donated Storages of a step that ran eagerly, and return its result.

    A result over donated memory (x.add_(y); return x) takes it over.
    """
    new = {}

    def handed_over(x):
        storage = x.array.storage
        if not any(storage is s for s in storages) and storage not in new:
            return x
        if storage not in new:
            new[storage] = moved(storage, taker, place)
        over, a = new[storage], x.array
        is_whole = a.is_contiguous and a.size == over.size
        if is_whole and a.shape == over.shape:
            return type(x)(over, name=x.name)
        return type(x)(over.view(a.shape, a.strides, a.offset), name=x.name)

    result = replaced(result, handed_over)
    for storage in storages:
        if storage not in new:
            spend(storage, taker, place)
    return result


def unused_error(unused, results, why=""):
    """Return the error for donations that no result can use.

    Args:
        unused: Members. results: Refs of what the step returns. why: the planner's reason why no
            result of the first one's size and dtype could take its memory, if any.
    """
    made = ", ".join(f"{r.dtype}{list(r.shape)}" for r in results) or "none"
    first = unused[0]
    more = f" (and {len(unused) - 1} more)" if len(unused) > 1 else ""
    a = first.array
    if not any(r.size == a.size and r.dtype is a.dtype for r in results):
        why = "fits no result by size and dtype"
    elif why:
        why = f"cannot be written over by a result: {why}"
    else:
        why = "is not needed: other donated values are in the place of the results of its size"
    return ArgumentError(
        f"donate: {first.where}{more} {why}; nothing was run",
        f"{a.dtype}{list(a.shape)}; the results: {made}",
        "leave it out of donate=, or compile with strict=False, where its memory goes back to the "
        "pool after the call",
    )


def checked(donate, step):
    """Return positions and names to donate as a tuple; raise if there is no such argument."""
    try:
        donate = (donate,) if isinstance(donate, str) else tuple(donate)
    except TypeError:  # one position, or nothing that could be one
        donate = (donate,)
    for which in donate:
        if isinstance(which, bool) or not isinstance(which, (int, str)):
            raise ArgumentTypeError("donate: wanted positions or names", short(which))
        is_name = isinstance(which, str)
        known = which in step.names if is_name else 0 <= which < len(step.names)
        if not known and not (step.is_open and (is_name or which >= 0)):
            raise ArgumentError(
                f"donate: '{step.name}' has no such argument",
                short(which),
                f"its arguments: {', '.join(step.names)}; positions count from 0",
            )
    return donate
