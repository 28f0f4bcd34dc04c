"""The watch over a launch's memory: uninitialised reads and data races become errors."""

import weakref
from typing import Any

import numpy as np

from minigrad.errors import DataRaceError, SimulationError, UninitializedReadError
from minigrad.simt.machine.faults import fault
from minigrad.simt.machine.lanes import unfold
from minigrad.simt.watch.flying import Flying
from minigrad.simt.watch.ordering import Log, Ordering
from minigrad.simt.watch.shadow import Shadow
from minigrad.simt.watch.uses import ATOMIC, READ, SITE_BITS, WRITE, Conflict, Keys, Use

OTHER_SITES = (1 << SITE_BITS) - 1  # stands for all sites beyond the first 4,095


class Watch:
    """What all regions of a launch share: the sites, and what orders accesses.

    Args:
        exact: whether more than barriers of whole blocks orders accesses; see `ordering`.
    """

    def __init__(self, exact):
        self.ordering = Ordering() if exact else None
        self.sites, self.numbers = [], {}
        self.guards = []  # of this wave's shared memory
        self.lanes: Any = None
        self._keys = None

    def begin(self, lanes):
        """Begin a new wave."""
        self.lanes, self._keys, self.guards = lanes, None, []
        x, y, z = lanes.grid
        self.id_bits = (x * y * z * lanes.threads).bit_length()
        if self.ordering is not None:
            self.ordering.begin(lanes)

    def barrier(self, blocks):
        """Record that blocks passed a barrier: bool (lanes.blocks,), or None for all blocks."""
        self._keys = None
        if blocks is None:
            for guard in self.guards:
                guard.forget()
        if self.ordering is not None:
            every = np.arange(self.lanes.blocks)
            self.ordering.barrier(every if blocks is None else every[blocks])

    @property
    def keys(self):
        """Return the lanes' keys since the last barrier."""
        if self._keys is None:
            self._keys = Keys(self.lanes, self.id_bits)
        return self._keys

    def number(self, site):
        """Return the number of a site, for keys."""
        number = self.numbers.get(site)
        if number is None:
            number = self.numbers[site] = min(len(self.sites), OTHER_SITES)
            self.sites.append(site)
        return number

    def name(self, thread):
        """Return `block (0, 0, 0), thread (3, 0, 0)` for a thread's number in the grid."""
        block, thread = self.places(thread)
        return f"block {block}, thread {thread}"

    def places(self, thread):
        """Return (blockIdx, threadIdx) for a thread's number in the grid, each (x, y, z)."""
        block, thread = divmod(thread, self.lanes.threads)
        return unfold(block, self.lanes.grid), unfold(thread, self.lanes.extents)


class Guard:
    """The watch over one region.

    Args:
        region: the region, of `size` bytes; in shared memory, each block has `used` of them.
    """

    def __init__(self, watch, region, used=None):
        # weak: regions hold their guards, and the watch holds those of shared memory
        self.watch: Any = weakref.proxy(watch)
        self.region: Any = weakref.proxy(region)
        self.used = used
        self.grain = 0  # bytes of a cell: the smallest element used so far
        self.shadow: Any = None  # until the first access
        self.filled: Any = None
        self.flying: Any = None  # until the first asynchronous copy
        self.log = Log() if watch.ordering is not None else None
        self.full = used is None  # whether every byte has been written; true of global memory
        if used is not None:
            watch.guards.append(self)

    def access(self, kind, itemsize, index, active, site, width=1):
        """Check one access: READ, WRITE or ATOMIC, of `width` elements per lane."""
        if self.grain == 0 or itemsize % self.grain:
            self._set_grain(itemsize)
        scale = itemsize // self.grain
        watch, shadow = self.watch, self.shadow
        use = Use(index, scale, scale * width, active, watch.keys, watch.number(site))
        if self.flying is not None:
            self._check_landed(kind, use, itemsize, site)
        if not self.full:
            if kind == WRITE:
                self.filled[use.cells] = True
            else:
                self._check_filled(use, itemsize, site)
        for other, where in shadow.suspects(kind, use):
            if self.log is None:
                self._raise(shadow.conflict(other, where, use), kind, use, itemsize, site)
            conflict = watch.ordering.judge(self.log, kind, use, where)
            if conflict is not None:
                self._raise(conflict, kind, use, itemsize, site)
        twice = shadow.note(kind, use)
        if twice is not None:
            self._raise(twice, kind, use, itemsize, site)
        if self.log is not None:
            watch.ordering.keep(self.log, kind, use)
            if kind == ATOMIC:
                watch.ordering.atomic(self, use.cells[:: use.parts] * self.grain, use.some)

    def begin_copy(self, byte, active, site):
        """Record that active lanes begin to copy asynchronously to where these bytes begin."""
        if self.flying is None:
            self.flying = Flying(self.region.data.size)
        self.flying.begin(byte, np.flatnonzero(active), self.watch.number(site))

    def _check_landed(self, kind, use, itemsize, site):
        hit = self.flying.first(use.cells * self.grain)
        if hit is not None:
            at, lane, number = hit
            thread = int(use.keys.number[lane])
            self._raise(Conflict(at, thread, number, COPY), kind, use, itemsize, site)

    def forget(self):
        """Forget earlier accesses: all blocks of the wave have passed a barrier."""
        if self.shadow is not None:
            self.shadow.forget()
            self.full = self.full or bool(self.filled.all())
        if self.log is not None:
            self.log.forget()

    def _set_grain(self, itemsize):
        """Make cells small enough that an element of this size is a whole number of cells."""
        size = self.region.data.size
        if self.grain == 0:
            self.grain = itemsize
            self.shadow = Shadow(-(-size // itemsize), grid=self.used is None)
            if self.used is not None:
                self.filled = np.zeros(self.shadow.cells, bool)
                rows = self.filled.reshape(self.watch.lanes.blocks, -1)
                rows[:, -(-self.used // itemsize) :] = True  # padding, which is never read
            return
        finer = int(np.gcd(self.grain, itemsize))
        parts, self.grain = self.grain // finer, finer
        self.shadow.split(parts)
        if self.filled is not None:
            self.filled = np.repeat(self.filled, parts)
        if self.log is not None:
            self.log.split(parts)

    def _check_filled(self, use, itemsize, site):
        there = self.filled[use.cells]
        if there.all():
            return
        at = int(there.argmin())
        raise fault(
            UninitializedReadError,
            f"{site.text} reads shared memory that no thread of the block has written",
            site,
            self.watch.lanes,
            int(use.lanes[at]),
            got=self._cell(use.cells[at], itemsize, site),
            fix="shared memory begins with what the last block left there: let the threads of the "
            "block write every element, zeros beyond the end of the data too, then "
            "cuda.syncthreads()",
        )

    def _cell(self, cell, itemsize, site):
        """Return `element 5 of tile`, counted from the block's first element."""
        byte = int(cell) * self.grain
        if self.region.stride:
            byte %= self.region.stride
        return self.region.element(byte, itemsize, site)

    def _raise(self, conflict, kind, use, itemsize, site):
        lane = int(use.lanes[conflict.at])
        watch, threads = self.watch, self.watch.lanes.threads
        me = int(use.keys.number[lane])
        their = watch.sites[conflict.site] if conflict.site < OTHER_SITES else None
        line = "a place beyond the first 4,095" if their is None else their.where
        error = fault(
            DataRaceError,
            f"{site.text}: {_IN_FLIGHT if conflict.kind == COPY else _UNORDERED}",
            site,
            watch.lanes,
            lane,
            got=self._cell(use.cells[conflict.at], itemsize, site),
            fix=_cure(kind, conflict, me // threads, conflict.thread // threads, site, their),
            details=(
                ("does", _DOES[kind]),
                ("other", f"{watch.name(conflict.thread)} {_DID[conflict.kind]}"),
                ("at", line),
            ),
        )
        error.other_block, error.other_thread = watch.places(conflict.thread)
        error.other_line = 0 if their is None else their.line
        try:
            raise error
        finally:
            del error  # it holds this frame: a cycle


COPY = "copy"  # the kind of an asynchronous copy that is on its way
_IN_FLIGHT = "an asynchronous copy into this element has begun, and nothing has waited for it"
_UNORDERED = "two threads use one element, and nothing says who comes first"
_DOES = {READ: "reads it", WRITE: "writes it", ATOMIC: "changes it by an atomic operation"}
_DID = {
    READ: "has read it",
    WRITE: "has written it",
    ATOMIC: "has changed it atomically",
    COPY: "has begun the copy",
}


def _cure(kind, conflict, block, other_block, site, their):
    if conflict.kind == COPY:
        return (
            "cuda.cp_async_commit() after the copies, and before the data is used "
            "cuda.cp_async_wait(0) by the threads that copy, then cuda.syncthreads()"
        )
    if block == other_block and their is not None and "cp_async(" in their.text:
        return (
            "cuda.cp_async_wait waits for the thread's own copies: put cuda.syncthreads() between "
            "it and the use by other threads, and between the use and the next copy"
        )
    if kind == conflict.kind == WRITE and their is site:
        return (
            "give every thread an element of its own, or let one thread write; to add up, "
            "cuda.atomic.add"
        )
    if block != other_block:
        return (
            "no barrier reaches the threads of another block: use atomic operations, or let each "
            "block write elements of its own and use them in a second kernel"
        )
    if ATOMIC in (kind, conflict.kind):
        return "use the element by atomic operations only, or put cuda.syncthreads() between"
    if their is not None and (their.file, their.line) == (site.file, site.line):
        if their.text == site.text:
            return (
                "several threads read it, change it and write it, each without the changes of the "
                "others: an atomic operation, cuda.atomic.add for one, does all three at once; or "
                "give every thread an element of its own"
            )
        return (
            "both are this line: read into a variable, cuda.syncthreads(), then write; where the "
            "line runs round after round, cuda.syncthreads() between two rounds; each where all "
            "threads of the block come by"
        )
    return (
        "put cuda.syncthreads() between the two lines, where all threads of the block come by; "
        "threads of one warp are not in step either: cuda.syncwarp() for those"
    )


def read_only(site, name):
    """Return the error for a write to a read-only array."""
    return fault(
        SimulationError,
        f"{site.text} writes to {name}, which is read-only",
        site,
        fix="pass an array that may be written to",
    )
