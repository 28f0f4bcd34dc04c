"""Dead code: what nobody reads is not computed."""

from minigrad.compiler.passes.regions import Intervals, interval, meets, meets_interval, shows_same
from minigrad.compiler.program import Recording


def eliminate_dead(recording, dead_slices=()):
    """Leaves out instructions whose every output is overwritten or forgotten before it is read.

    Walks backwards and keeps, per Value, the elements whose present content is still wanted: at
    the end those of the results and of everything that exists outside the step. An instruction
    that can stop the step stays.

    Args:
        dead_slices: (Value, offset, size) of captured memory that is undefined after the step.

    >>> from minigrad.compiler.passes.printing import show
    >>> from minigrad.compiler.passes.sketch import Sketch
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
    undefined = {}
    for value, offset, size in dead_slices:
        undefined.setdefault(value, []).append((offset, size))
    wanted: dict = {}
    for r in recording.results:
        _wanted(wanted, r.value, undefined).add(r)
    kept = []
    for i in reversed(recording.instructions):
        live = [_wanted(wanted, r.value, undefined) for r in i.outputs]
        if not i.stops and not any(x.includes(r) for x, r in zip(live, i.outputs, strict=True)):
            continue
        kept.append(i)
        if i.op != "put":  # which writes some rows and leaves the others
            for x, r in zip(live, i.outputs, strict=True):
                x.remove(r)
        for r in i.reads:
            _wanted(wanted, r.value, undefined).add(r)
    if len(kept) == len(recording.instructions):
        return recording
    return Recording(kept[::-1], recording.arguments, recording.results, recording.donated)


def _wanted(wanted, value, undefined):
    found = wanted.get(value)
    if found is None:
        found = wanted[value] = _Wanted()
        if not value.is_temporary:
            found.dense.put(0, value.size)
            for offset, size in undefined.get(value, ()):
                found.dense.cut(offset, offset + size)
    return found


class _Wanted:
    """The elements of one Value that are read later: intervals, and Refs with gaps."""

    __slots__ = ("dense", "sparse")

    def __init__(self):
        self.dense, self.sparse = Intervals(), []

    def includes(self, r):
        low, high, is_dense = interval(r)
        if is_dense:
            return self.dense.meets(low, high) or any(meets(r, x) for x in self.sparse)
        return any(meets_interval(r, *x) for x in self.dense.within(low, high)) or any(
            meets(r, x) for x in self.sparse
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
