"""Data races: which threads used each cell of memory, and whether anything orders their accesses.

Two accesses to one cell race if different threads make them, at least one writes, they are not both
atomic, and no barrier lies between them. A barrier orders the accesses of its block's threads;
nothing orders different blocks of one launch (but see `ordering`). Nor does lock-step order the
lanes of a warp: since 2017 each may run ahead. Writing the same value twice is also a race: a
compiler may split or repeat a store if it assumes that no other thread sees it.

For each cell we keep, as keys (see `uses`),

- the key of the last writer. Earlier writers are ordered before it, or were reported as a race.
- the least and the greatest key of all readers: they tell whether any thread but a given one has
  read since the barrier, which is all that a writer must know. The least is stored as the maximum
  of keys with inverted thread bits, so that a newer barrier always wins.
- the same for atomic operations.

For shared memory that is all. For global memory we also keep the least and greatest thread of the
whole launch: they tell whether another block has used the cell.

Reads go on a list first: if no thread writes before all blocks pass a barrier, we never process
them.
"""

from typing import Any

import numpy as np

from minigrad.simt.watch.uses import ATOMIC, READ, SITE_BITS, WRITE, Conflict

MOST_WAITING = 1 << 22  # reads on the list before they move into the records, to save memory


class _Extremes:
    """The greatest key and the greatest mirrored key of each cell; -1: none."""

    def __init__(self, cells):
        self.last = np.full(cells, -1, np.int64)
        self.first = np.full(cells, -1, np.int64)

    def add(self, cells, key, mirror):
        # if a cell occurs twice, the last assignment wins: the greatest thread, as lanes ascend
        self.last[cells] = np.maximum(self.last[cells], key)
        backwards = cells[::-1]
        self.first[backwards] = np.maximum(self.first[backwards], mirror[::-1])

    def copy(self):
        new = object.__new__(_Extremes)
        new.last, new.first = self.last.copy(), self.first.copy()
        return new

    def split(self, parts):
        self.last, self.first = np.repeat(self.last, parts), np.repeat(self.first, parts)


class _Users:
    """The threads that read cells, or used them atomically, since the barrier and ever."""

    def __init__(self, cells, grid):
        self.cells, self.grid = cells, grid
        self.any = False
        self.waiting, self.waiting_cells = [], 0
        self.recent: Any = None
        self.ever: Any = None

    def add(self, use):
        self.any = True
        self.waiting.append(use)
        self.waiting_cells += use.index.size * use.parts
        if self.waiting_cells > MOST_WAITING:
            self.settle()

    def forget(self):
        """Forget all accesses to shared memory: they cannot race after a barrier of all blocks."""
        self.any = False
        self.waiting, self.waiting_cells = [], 0

    def settle(self):
        """Move the waiting accesses into the records."""
        for whole in self.waiting:
            use = whole.ends()
            keys, cells = use.keys, use.cells
            if self.grid:
                self.ever = self.ever or _Extremes(self.cells)
                self._look_back(keys)
                number = keys.number[use.lanes] << SITE_BITS
                self.ever.add(cells, number + use.site, (number ^ keys.ids) + use.site)
            if not self.grid or self.recent is not None:
                self.recent = self.recent or _Extremes(self.cells)
                self.recent.add(
                    cells, keys.key[use.lanes] + use.site, keys.mirror[use.lanes] + use.site
                )
        self.waiting, self.waiting_cells = [], 0

    def _look_back(self, keys):
        """Split recent from ever at the first barrier: until then all keys are of epoch 0."""
        if keys.later and self.recent is None:
            self.recent = self.ever.copy()

    def others(self, use):
        """Return which accesses (bool) follow unordered ones of other threads, or None."""
        self.settle()
        keys, cells = use.keys, use.cells
        out = None
        if self.grid:
            self._look_back(keys)
            last = self.ever.last[cells]
            used = last >= 0
            if not used.any():
                return None
            number = keys.number[use.lanes]
            last, first = keys.thread(last), keys.thread(self.ever.first[cells] ^ keys.ids)
            if self.recent is None:
                return used & ((last != number) | (first != number))
            begin, threads = keys.block_first[use.lanes], np.uint64(keys.lanes.threads)
            away = (last - begin).view(np.uint64) >= threads
            away |= (first - begin).view(np.uint64) >= threads
            out = used & away
        last = self.recent.last[cells]
        fresh = last >= use.of(keys.start)
        if not fresh.any():
            return out
        apart = (last ^ keys.key[use.lanes]) | (self.recent.first[cells] ^ keys.mirror[use.lanes])
        fresh &= (apart & keys.ids) != 0
        return fresh if out is None else out | fresh

    def who(self, use, at):
        """Return (thread, site) of another thread's use that nothing orders before `at`."""
        keys, cell, lane = use.keys, use.cells[at], use.lanes[at]
        me, start = keys.number[lane], keys.start
        start = start[lane] if isinstance(start, np.ndarray) else start
        for records, oldest in ((self.recent, start), (self.ever, 0)):
            if records is not None and records.last[cell] >= oldest:
                for key in (records.last[cell], records.first[cell] ^ keys.ids):
                    if keys.thread(key) != me:
                        return int(keys.thread(key)), int(key) & ((1 << SITE_BITS) - 1)
        raise AssertionError("no other thread in the records")

    def split(self, parts):
        self.settle()
        self.cells *= parts
        for records in (self.recent, self.ever):
            if records is not None:
                records.split(parts)


class Shadow:
    """The records of one region.

    Args:
        cells: the number of cells.
        grid: whether the memory is global: other blocks use it, and barriers do not order them.
    """

    def __init__(self, cells, grid):
        self.cells, self.grid = cells, grid
        self.writer: Any = None  # until the first write
        self.written = False
        self.users = {READ: _Users(cells, grid), ATOMIC: _Users(cells, grid)}

    def forget(self):
        """Forget all accesses: all blocks of the wave passed a barrier; only for shared memory."""
        self.written = False
        for users in self.users.values():
            users.forget()

    def split(self, parts):
        """Split each cell into `parts` cells with the same records."""
        self.cells *= parts
        if self.writer is not None:
            self.writer = np.repeat(self.writer, parts)
        for users in self.users.values():
            users.split(parts)

    def suspects(self, kind, use):
        """Yield (kind, bool vector) of earlier accesses that no barrier of the block orders."""
        if self.written:
            where = self._against_writer(use)
            if where is not None and where.any():
                yield WRITE, where
        for other, users in self.users.items():
            if users.any and kind != other:  # read with read, atomic with atomic: no race
                where = users.others(use)
                if where is not None and where.any():
                    yield other, where

    def note(self, kind, use):
        """Record an access; return the Conflict of two lanes that write one cell at once."""
        if kind != WRITE:
            self.users[kind].add(use)
            return None
        if self.writer is None:
            self.writer = np.full(self.cells, -1, np.int64)
        self.written = True
        key = use.keys.key[use.lanes] + use.site
        self.writer[use.cells] = key
        twice = self.writer[use.cells] != key
        return self.conflict(WRITE, twice, use) if twice.any() else None

    def conflict(self, kind, where, use):
        """Return the Conflict of the first access that `suspects` found."""
        at = int(where.argmax())
        if kind == WRITE:
            key = int(self.writer[use.cells[at]])
            thread, site = int(use.keys.thread(key)), key & ((1 << SITE_BITS) - 1)
        else:
            thread, site = self.users[kind].who(use, at)
        return Conflict(at, thread, site, kind)

    def _against_writer(self, use):
        keys = use.keys
        old = self.writer[use.cells]
        if not self.grid:
            fresh = old >= use.of(keys.start)
            if fresh.any():
                fresh &= ((old ^ keys.key[use.lanes]) & keys.ids) != 0
            return fresh
        used = old >= 0
        if not used.any():
            return None
        number = keys.number[use.lanes]
        thread = keys.thread(old)
        used &= thread != number
        if keys.later and used.any():
            begin = keys.block_first[use.lanes]
            away = (thread - begin).view(np.uint64) >= np.uint64(keys.lanes.threads)
            used &= away | (old >= use.of(keys.start))
        return used
