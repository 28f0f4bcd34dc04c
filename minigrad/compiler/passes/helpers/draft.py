"""Holds a Recording's instructions while a pass changes them, indexed by what they touch."""

from bisect import bisect_left, bisect_right, insort
from dataclasses import replace
from operator import itemgetter

from minigrad.compiler.program.program import Ref

POSITION = itemgetter(0)


class Draft:
    """Instructions by position; a removed one leaves None.

    reads and writes: per Value a list of (position, Ref) in order of positions. stops: positions of
    instructions that can stop the step.
    """

    def __init__(self, recording):
        self.recording = recording
        self.instructions = list(recording.instructions)
        self.reads, self.writes = {}, {}
        self.results = {r.value for r in recording.results}
        self.stops = [k for k, i in enumerate(self.instructions) if i.stops]
        self.changed = False
        for k, i in enumerate(self.instructions):
            for r in i.reads:
                self.reads.setdefault(r.value, []).append((k, r))
            for r in i.outputs:
                self.writes.setdefault(r.value, []).append((k, r))

    def reads_of(self, value):
        """Return (position, Ref) of all reads of a Value."""
        return self.reads.get(value, [])

    def writes_of(self, value):
        """Return (position, Ref) of all writes to a Value."""
        return self.writes.get(value, [])

    def stops_within(self, first, last):
        """Return whether the step can stop at a position from first to last."""
        k = bisect_left(self.stops, first)
        return k < len(self.stops) and self.stops[k] <= last

    def replace(self, k, new=None):
        """Replace the instruction at a position, or remove it."""
        self.changed = True
        old = self.instructions[k]
        for value in {r.value for r in (*old.reads, *old.outputs)}:
            for table in (self.reads, self.writes):
                entries = table.get(value, ())
                a = bisect_left(entries, k, key=POSITION)
                b = bisect_right(entries, k, key=POSITION)
                if a < b:
                    del table[value][a:b]
        self.instructions[k] = new
        if new is not None:
            for r in new.reads:
                insort(self.reads.setdefault(r.value, []), (k, r), key=POSITION)
            for r in new.outputs:
                insort(self.writes.setdefault(r.value, []), (k, r), key=POSITION)

    def move(self, value, function):
        """Replace each Ref over a Value by function(ref), wherever it is read or written."""

        def moved(ref: Ref):
            return function(ref) if ref.value is value else ref

        for k in sorted({k for k, _ in (*self.reads_of(value), *self.writes_of(value))}):
            self.replace(k, self.instructions[k].with_refs(moved))

    def finish(self):
        """Return the changed Recording, or the original one if nothing was changed."""
        if not self.changed:
            return self.recording
        return replace(self.recording, instructions=[i for i in self.instructions if i is not None])


def within(entries, first, last):
    """Return the entries (position, Ref) with positions from first to last."""
    a = bisect_left(entries, first, key=POSITION)
    return entries[a : bisect_right(entries, last, lo=a, key=POSITION)]
