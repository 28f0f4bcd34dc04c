"""What orders accesses besides barriers of whole blocks: `syncwarp`, and fences with atomics.

For kernels that use either. A `Log` keeps all their accesses with their times, so that each suspect
of `races` can be judged exactly: does this thread know now what the other thread did at time t?
Times count accesses and barriers of a launch.

- A barrier of the block makes everything before it known to all its threads.
- `syncwarp` makes what any of its lanes knows known to all of them, and to no other lane.
- A thread that passes a `threadfence` and then does an atomic operation *releases* at that cell
  what it knew at the fence. Each thread that later does an atomic operation on the cell *acquires*
  all that was released there. So the last block to count itself in may read what the others wrote.
  Releases hold across a barrier: one thread may fence, and another one count.
  PTX requires a second fence after the atomic operation. Hardly any kernel has one, since a barrier
  follows there, and it is not required here.

Plain loads and stores release and acquire nothing: a flag must be set and read by atomics.
"""

from typing import Any

import numpy as np

from minigrad.simt.machine.lanes import WARP
from minigrad.simt.watch.uses import WRITE, Conflict

NEVER = -1
MOST_LOGGED = 1 << 24  # accessed cells kept per launch; older ones count as ordered


class Log:
    """All accesses to one region that may still race with later ones."""

    def __init__(self):
        self.entries = []  # (kind, Use, time)

    def forget(self):
        """Forget all accesses: every block has passed a barrier; only for shared memory."""
        self.entries.clear()

    def before(self, kind, use, where):
        """Yield (kind, site, time, places in use, threads): pairs of accesses to equal cells."""
        places = np.flatnonzero(where)
        places = places[np.argsort(use.cells[places], kind="stable")]
        wanted = use.cells[places]
        for other, past, time in self.entries:
            if kind == other != WRITE:
                continue
            left = np.searchsorted(wanted, past.cells, "left")
            count = np.searchsorted(wanted, past.cells, "right") - left
            hit = np.flatnonzero(count)
            if not hit.size:
                continue
            count, left = count[hit], left[hit]
            ends = np.cumsum(count)
            pair = np.arange(ends[-1]) - np.repeat(ends - count - left, count)
            thread = np.repeat(past.keys.number[past.lanes[hit]], count)
            yield other, past.site, time, places[pair], thread

    def split(self, parts):
        """Split each cell into `parts` cells."""
        for k, (kind, use, time) in enumerate(self.entries):
            self.entries[k] = kind, use.finer(parts), time


class Ordering:
    """What each thread knows of others' accesses, over one launch."""

    def __init__(self):
        self.time = self.logged = 0
        self.fenced = False  # some thread has passed a fence
        self.cells = {}  # (region, byte) -> releases there: [(thread, time, times, seen), ...]
        self.met = {}  # which cells were acquired from -> what that makes known
        self.lanes: Any = None
        self.pair_time: Any = None

    def begin(self, lanes):
        """Begin a new wave."""
        self.lanes = lanes
        self.block_time = np.full(lanes.blocks, NEVER)  # of the last barrier
        self.warp_time = np.full(lanes.warps, NEVER)  # of the last syncwarp of all lanes
        self.pair_time = None  # (warps, 32, 32): what each lane knows of each, from syncwarps
        # per lane, and for all threads of a block: what was acquired, {cell: releases seen}, and
        # what may be released, (times of the block's threads, seen)
        self.seen, self.block_seen = {}, {}
        self.free, self.block_free = {}, {}

    def tick(self):
        """Return the time of a new event."""
        self.time += 1
        return self.time

    def barrier(self, blocks):
        """Record that blocks (numbers in the wave) passed a barrier."""
        self.block_time[blocks] = self.tick()
        threads = self.lanes.threads
        if self.seen or self.free:
            for block in blocks:
                for lane in range(block * threads, (block + 1) * threads):
                    if lane in self.seen:
                        merge(self.block_seen.setdefault(block, {}), self.seen.pop(lane))
                    if lane in self.free:
                        free = self.free.pop(lane)
                        self.block_free[block] = joined(self.block_free.get(block), free)

    def warp_barrier(self, active):
        """Record that lanes passed a `syncwarp`, each with the other active lanes of its warp."""
        lanes, now = self.lanes, self.tick()
        here = np.zeros((lanes.warps, WARP), bool)
        on = np.arange(lanes.count) if active is None else np.flatnonzero(active)
        here[lanes.warp[on], lanes.position[on]] = True
        present = np.bincount(lanes.warp, minlength=lanes.warps)
        whole = here.sum(1) == present
        self.warp_time[whole] = now
        if (here.any(1) & ~whole).any() or self.pair_time is not None:
            self._sync_pairs(here, now)
        if self.seen or self.free:
            for warp in np.flatnonzero(here.any(1)):
                self._share(on[lanes.warp[on] == warp])

    def _sync_pairs(self, here, now):
        if self.pair_time is None:
            self.pair_time = np.full((self.lanes.warps, WARP, WARP), NEVER)
        known = np.where(here[:, :, None], self.pair_time, NEVER).max(1)
        known = np.where(here, now, known)
        self.pair_time = np.where(here[:, :, None], known[:, None, :], self.pair_time)

    def _share(self, group):
        seen, free = {}, None
        for lane in group:
            merge(seen, self.seen.get(lane, {}))
            free = joined(free, self.free.get(lane))
        for lane in group:
            if seen:
                self.seen[int(lane)] = dict(seen)
            if free is not None:
                self.free[int(lane)] = free

    def fence(self, active):
        """Record that lanes passed a threadfence: they may now release what they know."""
        lanes, now = self.lanes, self.tick()
        self.fenced = True
        for lane in range(lanes.count) if active is None else np.flatnonzero(active):
            lane = int(lane)
            block = int(lanes.block[lane])
            times = np.full(lanes.threads, self.block_time[block])
            warp, position = lanes.warp[lane], lanes.position[lane]
            first = lanes.thread[lane] - position
            mates = times[first : first + WARP]
            np.maximum(mates, self.warp_time[warp], out=mates)
            if self.pair_time is not None:
                np.maximum(mates, self.pair_time[warp, position, : mates.size], out=mates)
            times[lanes.thread[lane]] = now
            seen = dict(self.block_seen.get(block, {}))
            merge(seen, self.seen.get(lane, {}))
            self.free[lane] = joined(self.free.get(lane), (times, seen))

    def atomic(self, memory, byte, lanes_on):
        """Record that lanes did an atomic operation on bytes, one after the other."""
        if not self.fenced:
            return
        lanes = self.lanes
        for lane, place in zip(lanes_on.tolist(), byte.tolist(), strict=True):
            block = int(lanes.block[lane])
            released = self.cells.setdefault((memory, place), [])
            if released:
                self.seen.setdefault(lane, {})[memory, place] = len(released)
            free = joined(self.block_free.get(block), self.free.get(lane))
            if free is not None:
                released.append((lanes.first * lanes.threads + lane, self.time, *free))

    def judge(self, log, kind, use, where):
        """Return the Conflict of the first unordered suspect, or None: see `Shadow.suspects`."""
        lanes, worst = self.lanes, None
        for other, site, time, places, thread in log.before(kind, use, where):
            lane = use.lanes[places]
            block = lanes.block[lane]
            mine = use.keys.number[lane]
            begin = use.keys.block_first[lane]
            same = (thread >= begin) & (thread < begin + lanes.threads)
            known = (thread == mine) | (same & (time < self.block_time[block]))
            warp, position = lanes.warp[lane], lanes.position[lane]
            there = thread - (begin + lanes.thread[lane] - position)
            mates = same & (there >= 0) & (there < WARP)
            known |= mates & (time < self.warp_time[warp])
            if self.pair_time is not None:
                known |= mates & (time < self.pair_time[warp, position, np.where(mates, there, 0)])
            for k in np.flatnonzero(~known):
                if worst is not None and places[k] >= worst.at:
                    continue
                if not self._acquired(int(lane[k]), int(thread[k]), time):
                    worst = Conflict(int(places[k]), int(thread[k]), site, other)
        return worst

    def _acquired(self, lane, thread, time):
        """Return whether a lane acquired a release of what a thread did at `time`."""
        if not self.fenced:
            return False
        seen = dict(self.block_seen.get(int(self.lanes.block[lane]), {}))
        merge(seen, self.seen.get(lane, {}))
        key = frozenset(seen.items())
        if key not in self.met:
            self.met[key] = self._reachable(seen)
        known, operations = self.met[key]
        block, place = divmod(thread, self.lanes.threads)
        return (thread, time) in operations or (block in known and time < known[block][place])

    def _reachable(self, seen):
        """Return ({block: threads' times}, {(thread, time of release)}) behind some releases."""
        known, operations, looked, todo = {}, set(), {}, [seen]
        while todo:
            for cell, count in todo.pop().items():
                for thread, time, times, further in self.cells[cell][looked.get(cell, 0) : count]:
                    block = thread // self.lanes.threads
                    old = known.get(block)
                    known[block] = times if old is None else np.maximum(old, times)
                    operations.add((thread, time))
                    todo.append(further)
                looked[cell] = max(count, looked.get(cell, 0))
        return known, operations

    def keep(self, log, kind, use):
        """Add an access to the log, with a new time."""
        now = self.tick()
        if self.logged < MOST_LOGGED:
            self.logged += use.cells.size
            log.entries.append((kind, use, now))


def merge(into, seen):
    """Add what another lane has acquired."""
    for cell, count in seen.items():
        into[cell] = max(count, into.get(cell, 0))


def joined(a, b):
    """Return the union of what two lanes may release; None means nothing."""
    if a is None or b is None:
        return b if a is None else a
    seen = dict(a[1])
    merge(seen, b[1])
    return np.maximum(a[0], b[0]), seen
