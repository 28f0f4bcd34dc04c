"""The pool that allocates buffers: size classes, split and merge, a bounded cache.

There are two levels. *Bins* hold ready buffers of one exact size: in a fixed-shape training loop an
allocation is one list pop. Below them, *free blocks* are sorted by size; a block is split to serve
a smaller request and merged with free neighbours (best fit with coalescing: Knuth, The Art of
Computer Programming, vol. 1, 2.5). Blocks are parts of *segments*, which the system allocates.
"""

import bisect
import ctypes
import threading
import weakref

from minigrad.arguments import number
from minigrad.errors import OutOfMemoryError
from minigrad.memory.buffer import ALIGNMENT, Bin, Buffer, OutsideBin, Segment, blocks, round_up
from minigrad.memory.forks import Held, LocksOf, hold
from minigrad.memory.interrupts import ready, uninterrupted
from minigrad.seams import seams

SMALL = 1 << 20  # bytes; requests up to this size share segments, larger ones do not
SMALL_SEGMENT = 2 << 20
LONGEST_WAIT = 1.0  # seconds that a fork waits for threads inside a pool
MOST_BINS = 4096  # request sizes to remember; fixed-shape programs use fewer

_pools = weakref.WeakSet()
hold(Held(LocksOf(_pools), LONGEST_WAIT))  # a fork must not see half-changed lists of a pool


class Pool:
    """The allocator of one device.

    allocate(nbytes) -> (owner, address) gets memory from the system, aligned to 64 bytes, or raises
    MemoryError. Dropping the owner frees it. memset(address, byte, nbytes) fills it, for `poison`.
    """

    def __init__(self, device, allocate, memset=ctypes.memset):
        self.device, self.allocate, self.memset = device, allocate, memset
        self.bins, self.homes = {}, {}  # by rounded size; by requested size
        self.free = {True: [], False: []}  # is_small -> sorted (nbytes, address, Buffer)
        self.segments = []
        self.limit = None
        self.bin_type, self.watchers = Bin, []  # for `monitor.watch`
        self.current_bytes = self.peak_bytes = self.reserved_bytes = 0
        self.allocated_bytes = self.takes = 0  # since the start
        self.system_allocations = self.retries = self.ooms = 0
        self.name_holders = lambda buffers: []  # set by `monitor.register_pool`
        # the fast path needs no lock: pop from a bin and append to it are atomic
        self.lock = threading.RLock()
        _pools.add(self)

    @uninterrupted
    def take(self, requested):
        """Returns a buffer of at least `requested` bytes, with one owner."""
        home = self.homes.get(requested)
        if home is None:
            home = self.home_of(requested)
        buffer = home.pop() if home else self.grow(home, requested)
        buffer.owners, buffer.requested = 1, requested
        self.takes += 1
        self.allocated_bytes += buffer.nbytes
        self.current_bytes += buffer.nbytes
        if self.current_bytes > self.peak_bytes:
            self.peak_bytes = self.current_bytes
        return buffer

    @uninterrupted
    def adopt(self, owner, address, nbytes):
        """Makes a Buffer over foreign memory. The statistics do not count it."""
        segment = Segment(owner, address, nbytes, is_small=False)
        buffer = segment.first = Buffer(self, segment, address, 0)
        buffer.owners, buffer.requested, buffer.is_foreign = 1, nbytes, True
        buffer.home = OutsideBin(self, 0)
        return buffer

    @uninterrupted
    def release(self, buffer):
        """Takes back a buffer that has no owners."""
        self.current_bytes -= buffer.nbytes
        buffer.home.append(buffer)

    @uninterrupted
    def home_of(self, requested):
        """Returns the bin for requests of one size, always the same one."""
        ready()
        nbytes = round_up(requested)
        with self.lock:
            home = self.bins.get(nbytes)
            if home is None:
                home = self.bins[nbytes] = self.bin_type(self, nbytes)
            if len(self.homes) >= MOST_BINS:
                self.homes.clear()
            self.homes[requested] = home
        return home

    @uninterrupted
    def grow(self, home, requested):
        """Makes a buffer for an empty bin, from a free block, split if needed, or new memory."""
        ready()
        if seams.pool is not None:
            buffer = seams.pool.grow(self, home, requested)
            if buffer is not None:
                home.grown(buffer)
                return buffer
        with self.lock:
            return self._grow(home, requested)

    def _grow(self, home, requested):
        nbytes = home.nbytes
        buffer = self._best_fit(nbytes)
        if buffer is None and sum(b.nbytes * len(b) for b in self.bins.values()) >= nbytes:
            self.flush()
            buffer = self._best_fit(nbytes)
        if buffer is None:
            buffer = self._from_system(nbytes, requested)
        buffer.home, buffer.state, buffer.requested = home, "bin", requested
        home.grown(buffer)
        return buffer

    def _best_fit(self, nbytes):
        """Returns the smallest free block that fits; the rest of the block stays free."""
        is_small = nbytes <= SMALL
        free = self.free[is_small]
        k = bisect.bisect_left(free, (nbytes,))
        if k == len(free):
            return None
        _, _, block = free.pop(k)
        rest = block.nbytes - nbytes
        if rest >= ALIGNMENT:
            right = Buffer(self, block.segment, block.address + nbytes, rest)
            right.left, right.right = block, block.right
            if block.right is not None:
                block.right.left = right
            block.right, block.nbytes = right, nbytes
            bisect.insort(free, (rest, right.address, right))
        return block

    @uninterrupted
    def flush(self):
        """Moves every ready buffer from its bin to the free blocks, and merges neighbours."""
        with self.lock:
            for home in list(self.bins.values()):
                while home:
                    self._merge(list.pop(home))

    def _merge(self, block):
        free = self.free[block.segment.is_small]
        block.state, block.home = "free", None
        for neighbour in (block.left, block.right):
            if neighbour is not None and neighbour.state == "free":
                key = (neighbour.nbytes, neighbour.address)
                del free[bisect.bisect_left(free, key)]
                left, right = sorted((neighbour, block), key=lambda b: b.address)
                left.nbytes += right.nbytes
                left.right = right.right
                if right.right is not None:
                    right.right.left = left
                block = left
        bisect.insort(free, (block.nbytes, block.address, block))

    def _from_system(self, nbytes, requested):
        """Allocates a segment within the limit and the bound on the cache; returns a block."""
        is_small = nbytes <= SMALL
        size = SMALL_SEGMENT if is_small else nbytes
        if self.limit is not None:
            if self.reserved_bytes + size > self.limit:
                self.trim()
            size = max(nbytes, min(size, (self.limit - self.reserved_bytes) & -ALIGNMENT))
            if self.reserved_bytes + size > self.limit:
                self.ooms += 1
                raise self._out_of_memory(requested, f"the limit of {self.limit:,} bytes")
        elif self.reserved_bytes + size > 1.75 * max(self.peak_bytes, self.current_bytes + nbytes):
            self._release_segments(self.reserved_bytes + size - int(1.75 * self.peak_bytes))
        try:
            owner, address = self.allocate(size)
        except MemoryError:
            self.retries += 1
            self.trim()
            try:
                owner, address = self.allocate(size)
            except MemoryError:
                self.ooms += 1
                raise self._out_of_memory(requested, "what the system gives") from None
        self.system_allocations += 1
        self.reserved_bytes += size
        segment = Segment(owner, address, size, is_small)
        self.segments.append(segment)
        segment.first = Buffer(self, segment, address, size)
        free = self.free[is_small]
        bisect.insort(free, (size, address, segment.first))
        block = self._best_fit(nbytes)
        assert block is not None, "a new segment holds the block it was made for"
        return block

    def _out_of_memory(self, requested, bound):
        holders = sorted(self.in_use(), key=lambda b: -b.nbytes)[:5]
        names = self.name_holders(holders)
        return OutOfMemoryError(
            f"out of memory on {self.device}: {requested:,} bytes do not fit into {bound}",
            f"{self.current_bytes:,} bytes in use, {self.reserved_bytes:,} reserved",
            "drop what is not needed, use a smaller batch, or raise memory.set_limit",
            details=[("held by", name) for name in names],
        )

    @uninterrupted
    def in_use(self):
        """Returns the buffers that have owners."""
        with self.lock:
            return [block for segment in self.segments for block in blocks(segment) if block.owners]

    @uninterrupted
    def trim(self):
        """Returns unused segments to the system; the result is the number of bytes released."""
        with self.lock:
            return self._release_segments(self.reserved_bytes)

    def _release_segments(self, wanted):
        self.flush()
        released = 0
        for segment in sorted(self.segments, key=lambda s: s.nbytes):
            whole = segment.first
            if released >= wanted:
                break
            if whole.state == "free" and whole.nbytes == segment.nbytes:
                free = self.free[segment.is_small]
                del free[bisect.bisect_left(free, (whole.nbytes, whole.address))]
                self.segments.remove(segment)
                segment.owner = None  # frees the memory now; segment and block form a cycle
                self.reserved_bytes -= segment.nbytes
                released += segment.nbytes
        return released

    @uninterrupted
    def set_limit(self, nbytes):
        """Limits the bytes reserved from the system from now on; None: no limit."""
        if nbytes is not None:
            nbytes = number("set_limit", "nbytes", nbytes, 0.0)
        self.trim()
        self.limit = None if nbytes is None else int(nbytes)
