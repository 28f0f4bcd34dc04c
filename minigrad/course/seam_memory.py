"""A learner's memory under the engine: a pool for Arrays, and the plan of a compiled step's arena.

The engine's memory passes through its own pool still: that one asks here when it has no ready
buffer of a size, and a buffer that came from here goes back to here.
"""

import bisect
import threading
from collections import deque

from minigrad.course.seam_parts import Part
from minigrad.devices.backend import active
from minigrad.memory.buffer import ALIGNMENT, Bin, Buffer, Segment
from minigrad.memory.interrupts import block, uninterrupted
from minigrad.memory.monitor import pool_of


class System:
    """What a learner's pool gets its segments from: `take(nbytes)` and `give_back(address)`."""

    def __init__(self, part, pool):
        self.part, self.pool = part, pool
        self.segments = {}  # address -> Segment
        self.in_use = []  # sorted (address, nbytes) of the Buffers that the engine holds

    def take(self, nbytes):
        """Return the address of a new segment."""
        if type(nbytes) is not int or nbytes < 1:
            self.part.refuse("a number of bytes for system.take", f"{nbytes!r:.60}")
        pool = self.pool
        with pool.lock:
            if pool.limit is not None and pool.reserved_bytes + nbytes > pool.limit:
                raise pool._out_of_memory(nbytes, f"the limit of {pool.limit:,} bytes")
            try:
                owner, address = pool.allocate(nbytes)
            except MemoryError:
                raise pool._out_of_memory(nbytes, "what the system gives") from None
            self.segments[address] = Segment(owner, address, nbytes, is_small=False)
            pool.system_allocations += 1
            pool.reserved_bytes += nbytes
        return address

    def give_back(self, address):
        """Return a segment in which nothing is in use."""
        if address not in self.segments:
            self.part.refuse("the address of a segment for system.give_back", f"{address!r:.60}")
        segment = self.segments[address]
        k = bisect.bisect_left(self.in_use, (address, 0))
        if k < len(self.in_use) and self.in_use[k][0] < address + segment.nbytes:
            self.part.refuse("a segment in which nothing is in use", f"{self.in_use[k][0]} is")
        del self.segments[address]
        with self.pool.lock:
            self.pool.reserved_bytes -= segment.nbytes

    def home_of(self, address, nbytes):
        """Return the segment of a new block; refuse one that is not the pool's to give."""
        if type(address) is not int or address % ALIGNMENT:
            self.part.refuse(f"a multiple of {ALIGNMENT} from alloc()", f"{address!r:.60}")
        end = address + nbytes
        homes = [s for s in self.segments.values() if s.address <= address < s.address + s.nbytes]
        if not homes or end > homes[0].address + homes[0].nbytes:
            self.part.refuse("a block inside a segment from alloc()", f"{address} to {end}")
        k = bisect.bisect_left(self.in_use, (end, 0))
        if k and sum(self.in_use[k - 1]) > address:
            self.part.refuse(
                "a block that nobody uses from alloc()",
                f"{address} to {end}, where {self.in_use[k - 1][0]} is in use",
            )
        return homes[0]

    def __del__(self):
        if self.segments:
            self.pool.reserved_bytes -= sum(s.nbytes for s in self.segments.values())


class LearnersPool:
    """pool=Pool: Pool(system) with alloc(nbytes) -> address, and free(address).

    Only the CPU's memory comes from it. A release may happen at any moment, also while the
    learner's code runs (Python's garbage collector calls it then): it waits until that has ended.
    """

    def __init__(self, part):
        self.system = System(part, pool_of("cpu"))
        pool = part(self.system)
        self.alloc, self.free = (
            Part(f"pool ({part.name}.{method})", getattr(pool, method))
            for method in ("alloc", "free")
        )
        self.lock, self.runs_in = threading.Lock(), None
        self.waiting, self.error = deque(), None

    def begin(self):
        """Let the engine's pool keep no ready buffers, which it would use first."""
        self.system.pool.flush()

    def grow(self, pool, home, requested):
        """Return a Buffer in the learner's memory; None where the engine's own is to serve."""
        if pool is not self.system.pool or self.runs_in == threading.get_ident():
            return None
        with self.lock, self._running():
            self._free_waiting()
            if self.error is not None:
                error, self.error = self.error, None
                raise error
            address = self.alloc(home.nbytes)
            segment = self.system.home_of(address, home.nbytes)
            bisect.insort(self.system.in_use, (address, home.nbytes))
        buffer = Buffer(pool, segment, address, home.nbytes)
        buffer.home, buffer.state, buffer.requested = LearnersBin(pool, self), "bin", requested
        self.free_waiting()
        return buffer

    def free_waiting(self):
        """Free what waits, unless the learner's code runs: who called it frees it then."""
        while self.waiting and self.lock.acquire(blocking=False):
            try:
                with self._running():
                    self._free_waiting()
            finally:
                self.lock.release()

    @block
    def _running(self):
        """Lets the learner's code run, in the engine's memory and apart from what it serves.

        The call that asks for memory may be recording itself: what the learner's code computes is
        no part of it.
        """
        self.runs_in = threading.get_ident()
        try:
            with active(None):
                yield
        finally:
            self.runs_in = None

    def _free_waiting(self):
        while self.waiting:
            address, nbytes = self.waiting.popleft()
            del self.system.in_use[bisect.bisect_left(self.system.in_use, (address, nbytes))]
            if self.error is None:
                try:
                    self.free(address)
                except Exception as error:  # a release has no caller who could handle it
                    self.error = error


class LearnersBin(Bin):
    """Where a Buffer of a learner's pool goes back to; it is always empty."""

    __slots__ = ("learners",)

    def __init__(self, pool, learners):
        super().__init__(pool, 0)
        self.learners = learners

    @uninterrupted
    def append(self, buffer):
        for watcher in tuple(self.pool.watchers):
            watcher("free", buffer)
        self.learners.waiting.append((buffer.address, buffer.nbytes))
        self.learners.free_waiting()


class PlanReuse:
    """plan_reuse=f: f(lifetimes) -> offsets in the arena of a step that is compiled."""

    def __init__(self, part):
        self.part = part

    def __call__(self, lifetimes):
        """Return the learner's offsets; refuse a plan that would mix up values."""
        offsets = self.part(list(lifetimes))
        if not isinstance(offsets, list) or len(offsets) != len(lifetimes):
            self.part.refuse(f"a list of {len(lifetimes)} offsets", f"{offsets!r:.60}")
        rooms = [-(-nbytes // ALIGNMENT) * ALIGNMENT for nbytes, _, _ in lifetimes]
        for offset, room in zip(offsets, rooms, strict=True):
            if type(offset) is not int or offset < 0 or offset % ALIGNMENT:
                self.part.refuse(f"offsets that are multiples of {ALIGNMENT}", f"{offset!r:.60}")
            if offset + room > sum(rooms):
                self.part.refuse(f"offsets within {sum(rooms):,} bytes", f"{offset:,}")
        rows = sorted(zip(offsets, rooms, lifetimes, strict=True))
        for k, (begin, room, (_, first, last)) in enumerate(rows):
            for other, _, (_, since, until) in rows[k + 1 :]:
                if other >= begin + room:
                    break
                if since <= last and first <= until:
                    self.part.refuse(
                        "values that are needed at the same moment apart",
                        f"two of them at {begin} and {other}",
                    )
        return offsets
