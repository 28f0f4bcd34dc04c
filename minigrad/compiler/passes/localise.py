"""Gradients that are never read after the step become temporaries, which can stay in registers.

A gradient is written to its slice of a flat buffer, which exists outside the step. If there was
none before the step, or the step cleared it unread, and the step drops it at its end (`zero_grad`),
nothing outside needs it.
"""

from bisect import bisect_right

from minigrad.compiler.passes.helpers.regions import Intervals, interval, shows_same
from minigrad.compiler.program.program import TEMPORARY, Recording, Value


def localise(recording, dead_slices=()):
    """Turn parts of dead slices that are written before they are read into temporaries.

    Refs that overlap, such as the fill of a whole buffer and a slice of it, move together; none of
    them moves if one reaches beyond the dead slices.

    Args:
        dead_slices: (Value, offset, size) of captured memory that is undefined after the step.

    >>> from minigrad.compiler.program.printing import show
    >>> from minigrad.compiler.program.sketch import Sketch, view
    >>> s = Sketch()
    >>> x, flat = s.argument((4,)), s.captured("flat", (12,))
    >>> dw, db = view(flat, (4,)), view(flat, (4,), offset=8)
    >>> s.exp(x, out=dw)
    >>> s.add(db, dw, out=db)
    >>> print(show(s.recording()))
    flat[0:4] := exp x0
    flat[8:12] := add flat[8:12] flat[0:4]
    >>> print(show(localise(s.recording(), [(flat.value, 0, 4), (flat.value, 8, 4)])))
    %0 float32[4] = exp x0
    flat[8:12] := add flat[8:12] %0
    """
    dead = {}
    for value, offset, size in dead_slices:
        dead.setdefault(value, Intervals()).put(offset, offset + size)
    moved = {}
    for value, accesses in _accesses(recording, dead).items():
        parts = [p for p in _parts(accesses) if dead[value].find(p.low, p.high) and p.is_private()]
        if parts:
            moved[value] = [p.low for p in parts], parts
            for p in parts:
                p.value = Value(
                    TEMPORARY, value.dtype, p.high - p.low, name=value.name, place=value.place
                )
    if not moved:
        return recording

    def move(ref):
        split = moved.get(ref.value)
        if split is None or not ref.size:
            return ref
        low, _, _ = interval(ref)
        k = bisect_right(split[0], low) - 1
        if k < 0 or low >= split[1][k].high:
            return ref
        return ref._replace(value=split[1][k].value, offset=ref.offset - split[1][k].low)

    instructions = [
        i.with_refs(move) if any(r.value in moved for r in (*i.reads, *i.writes)) else i
        for i in recording.instructions
    ]
    return Recording(instructions, recording.arguments, recording.results, recording.donated)


READ, WRITE, CHANGE, RESULT = range(4)  # CHANGE: writes unknown elements


def _accesses(recording, values):
    """Return per Value, in order: (kind of access, Ref)."""
    accesses = {value: [] for value in values}
    if not accesses:
        return accesses
    for i in recording.instructions:
        for r in i.reads:
            if r.value in accesses:
                accesses[r.value].append((READ, r))
        for r in i.outputs:
            if r.value in accesses:
                accesses[r.value].append((CHANGE if i.op == "put" else WRITE, r))
    for r in recording.results:
        if r.value in accesses:
            accesses[r.value].append((RESULT, r))
    return accesses


class _Part:
    """An interval of a Value and its accesses in order; no Ref reaches beyond it."""

    def __init__(self, low, high):
        self.low, self.high, self.accesses = low, high, []
        self.value: Value

    def is_private(self):
        """Return whether every element is written before it is read."""
        written, sparse = Intervals(), []
        for what, r in self.accesses:
            low, high, is_dense = interval(r)
            if what == RESULT:
                return False
            if what == READ:
                if not written.find(low, high) and not any(shows_same(r, x) for x in sparse):
                    return False
            elif what == WRITE:
                if is_dense:
                    written.put(low, high)
                else:
                    sparse.append(r)
        return True


def _parts(accesses):
    """Group the Refs of one Value into parts, in order of memory."""
    spans = sorted({interval(r)[:2] for _, r in accesses if r.size})
    parts = []
    for low, high in spans:
        if parts and low < parts[-1].high:
            parts[-1].high = max(parts[-1].high, high)
        else:
            parts.append(_Part(low, high))
    lows = [p.low for p in parts]
    for what, r in accesses:
        if r.size:
            parts[bisect_right(lows, interval(r)[0]) - 1].accesses.append((what, r))
    return parts
