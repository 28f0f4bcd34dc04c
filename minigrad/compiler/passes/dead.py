"""Dead code elimination: what is never read is not computed."""

from typing import Any

from minigrad.array.overlap import overlaps
from minigrad.compiler.passes.helpers.regions import Intervals, interval, shows_same
from minigrad.compiler.program.program import Recording


def eliminate_dead(recording, dead_slices=()):
    """Remove instructions whose outputs are all overwritten or dropped before they are read.

    Walk backwards and track, per Value, the elements that are needed later: at the end, those of
    the results and of all memory outside the step. Keep instructions that can stop the step.

    Args:
        dead_slices: (Value, offset, size) of captured memory that is undefined after the step.

    >>> from minigrad.compiler.program.printing import show
    >>> from minigrad.compiler.program.sketch import Sketch
    >>> s = Sketch()
    >>> x, w = s.argument((4,)), s.captured("w", (4,))
    >>> unread = s.exp(x)
    >>> s.fill(0.0, out=w)
    >>> s.mul(x, 2.0, out=w)
    >>> print(show(s.recording()))
    %0 float32[4] = exp x0
    w := fill 0.0
    w := mul x0 2.0
    >>> print(show(eliminate_dead(s.recording())))
    w := mul x0 2.0
    """
    wanted: dict = {}  # Value -> _Wanted, ALL or NONE
    for value, offset, size in dead_slices:
        if wanted.get(value, ALL) is ALL:
            wanted[value] = _Wanted(value)
        wanted[value].dense.cut(offset, offset + size)
    for r in recording.results:
        _read(r, wanted)
    kept = []
    for i in reversed(recording.instructions):
        if not i.stops and not any(_is_wanted(r, wanted) for r in i.outputs):
            continue
        kept.append(i)
        if i.op != "put":  # it writes only some rows
            for r in i.outputs:
                _overwritten(r, wanted)
        for r in i.reads:
            _read(r, wanted)
    if len(kept) == len(recording.instructions):
        return recording
    return Recording(kept[::-1], recording.arguments, recording.results, recording.donated)


ALL: Any
NONE: Any
ALL, NONE = object(), object()  # elements of a Value are wanted: the usual states


def _state(value, wanted):
    state = wanted.get(value)
    if state is None:
        return NONE if value.is_temporary else ALL
    return state


def _is_whole(r):
    return interval(r) == (0, r.value.size, True)


def _is_wanted(r, wanted):
    state = _state(r.value, wanted)
    return state is ALL or (state is not NONE and state.includes(r))


def _read(r, wanted):
    state = _state(r.value, wanted)
    if state is ALL:
        return
    if _is_whole(r):
        wanted[r.value] = ALL
        return
    if state is NONE:
        state = wanted[r.value] = _Wanted(None)
    state.add(r)


def _overwritten(r, wanted):
    state = _state(r.value, wanted)
    if state is NONE:
        return
    if _is_whole(r):
        wanted[r.value] = NONE
        return
    if state is ALL:
        state = wanted[r.value] = _Wanted(r.value)
    state.remove(r)


class _Wanted:
    """The elements of one Value that are read later: intervals, and Refs with gaps."""

    __slots__ = ("dense", "sparse")

    def __init__(self, value):
        self.dense, self.sparse = Intervals(), []
        if value is not None:  # all of it
            self.dense.put(0, value.size)

    def includes(self, r):
        low, high, is_dense = interval(r)
        if is_dense:
            return self.dense.meets(low, high) or any(r.overlaps(x) for x in self.sparse)
        within = self.dense.within(low, high)
        return any(overlaps(r[1:], ((b - a,), (1,), a)) for a, b in within) or any(
            r.overlaps(x) for x in self.sparse
        )

    def add(self, r):
        low, high, is_dense = interval(r)
        if is_dense:
            self.dense.put(low, high)
        elif not any(shows_same(r, x) for x in self.sparse):
            self.sparse.append(r)

    def remove(self, r):
        low, high, is_dense = interval(r)
        if is_dense:
            self.dense.cut(low, high)
            if self.sparse:
                self.sparse = [x for x in self.sparse if not _inside(x, low, high)]
        elif self.sparse:
            self.sparse = [x for x in self.sparse if not shows_same(r, x)]


def _inside(r, low, high):
    start, stop, _ = interval(r)
    return low <= start and stop <= high
