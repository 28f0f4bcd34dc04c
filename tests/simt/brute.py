"""A second opinion on data races: every access is an event, and what it knows of is a set of bits.

Slow and plain on purpose. Barriers, syncwarps, fences and atomics unite sets; an access races with
an earlier one on the same byte if it does not know of it.
"""

import numpy as np


class Brute:
    def __init__(self, threads):
        self.threads = threads  # of a block
        self.events = []  # (thread, kind, site)
        self.known = {}  # thread -> bits of the events that are ordered before its next one
        self.fenced = {}  # thread -> bits that it may release
        self.released = {}  # (memory, byte) -> bits
        self.cells = {}  # (memory, byte) -> [event]

    def access(self, kind, site, accesses):
        """accesses: [(thread, memory, [byte])] in lane order; returns the events raced with.

        A list of (thread, earlier event) pairs; all accesses happen at once, in any order.
        """
        races, new = [], []
        for thread, memory, used in accesses:
            event = len(self.events)
            self.events.append((thread, kind, site))
            for byte in used:
                cell = self.cells.setdefault((memory, byte), [])
                for old in cell:
                    who, what, _ = self.events[old]
                    quiet = what == kind != "write"
                    if who != thread and not quiet and not self.known.get(thread, 0) >> old & 1:
                        races.append((thread, old))
                cell.append(event)
            new.append((thread, event, memory, used[0]))
        for thread, event, memory, byte in new:
            bit = 1 << event
            if kind == "atomic":
                place = memory, byte
                self.known[thread] = self.known.get(thread, 0) | self.released.get(place, 0)
                if thread in self.fenced:
                    free = self.fenced[thread] | bit
                    self.released[place] = self.released.get(place, 0) | free
            self.known[thread] = self.known.get(thread, 0) | bit
        return races

    def meet(self, group):
        """Threads pass a barrier of the block or of the warp together."""
        known = fenced = 0
        some = any(thread in self.fenced for thread in group)
        for thread in group:
            known |= self.known.get(thread, 0)
            fenced |= self.fenced.get(thread, 0)
        for thread in group:
            self.known[thread] = known
            if some:
                self.fenced[thread] = fenced

    def fence(self, group):
        for thread in group:
            self.fenced[thread] = self.fenced.get(thread, 0) | self.known.get(thread, 0)


class Both:
    """A memory of the simulator and the brute one, driven together.

    Each step returns (the error that the simulator raised or None, races that brute force found).
    """

    def __init__(self, blocks, threads, per_wave, exact, global_bytes):
        from minigrad.simt.watch.memory import Memory

        self.grid, self.threads, self.per_wave = blocks, threads, per_wave
        self.memory = Memory("kernel", exact=exact)
        self.brute = Brute(threads)
        self.data = np.zeros(global_bytes, np.uint8)
        self.region = self.memory.buffer(self.data, "x")
        self.sites = {}

    def begin(self, first):
        from minigrad.simt.machine.lanes import Lanes

        blocks = min(self.per_wave, self.grid - first)
        self.lanes = Lanes((self.grid, 1, 1), (self.threads, 1, 1), first, blocks)
        self.memory.begin(self.lanes)

    def share(self, nbytes):
        self.shared = self.memory.shared(nbytes, "tile")
        for region_guard in [self.shared._guard]:
            region_guard.full = True  # other tests look at initialisation

    def site(self, line):
        from minigrad.simt.watch.memory import Site

        return self.sites.setdefault(line, Site("kernel.py", line, 0, f"x[{line}]", "kernel"))

    def thread(self, lane):
        return self.lanes.first * self.threads + int(lane)

    def access(self, kind, space, dtype, index, active, line, width=1):
        """index: element within the block's shared memory or within x; (count,) or scalar."""
        from minigrad.errors import DataRaceError

        dtype, size = np.dtype(dtype), np.dtype(dtype).itemsize
        region = self.region if space == "global" else self.shared
        if region.stride:
            index = index + self.lanes.block * (region.stride // size)
        some = range(self.lanes.count) if active is None else np.flatnonzero(active)
        used = []
        for lane in some:
            at = int(index if np.ndim(index) == 0 else index[lane]) * size
            memory = "x" if space == "global" else ("tile", self.lanes.first)
            used.append((self.thread(lane), memory, list(range(at, at + size * width))))
        races = self.brute.access(kind, line, used)
        index = np.asarray(index, np.int64)[()]
        value = dtype.type(1)
        site = self.site(line)
        try:
            if kind == "read":
                region.load(dtype, index, active, site, width)
            elif kind == "write":
                values = value if width == 1 else [value] * width
                region.store(dtype, index, values, active, site, width)
            else:
                region.atomic(dtype, "add", index, value, active, site)
        except DataRaceError as error:
            return error, races
        return None, races

    def barrier(self, blocks):
        self.memory.barrier(blocks)
        for block in range(self.lanes.blocks) if blocks is None else np.flatnonzero(blocks):
            self.brute.meet([self.thread(block * self.threads + k) for k in range(self.threads)])

    def warp_barrier(self, active):
        self.memory.warp_barrier(active)
        on = np.arange(self.lanes.count) if active is None else np.flatnonzero(active)
        for warp in np.unique(self.lanes.warp[on]):
            self.brute.meet([self.thread(lane) for lane in on[self.lanes.warp[on] == warp]])

    def fence(self, active):
        self.memory.fence(active)
        on = np.arange(self.lanes.count) if active is None else np.flatnonzero(active)
        self.brute.fence([self.thread(lane) for lane in on])
