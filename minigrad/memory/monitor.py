"""Observes the memory: statistics, a timeline of events, growth, poison.

This layer knows only pools and buffers. The graph registers a `probe`, which reports the running
operation and the live nodes.
"""

import itertools
from typing import NamedTuple

from minigrad.arguments import short, whole
from minigrad.errors import ArgumentError, ArgumentTypeError, MinigradError
from minigrad.memory.blocks import Block
from minigrad.memory.buffer import Bin, blocks
from minigrad.memory.interrupts import uninterrupted

POISON = 0xFF  # every byte set: NaN as a float, -1 as a signed integer, 255 as uint8 or bool


class Probe:
    """Reports on the graph to the memory layer. Importing `minigrad.tape` replaces this stub."""

    watching = saving_copies = 0  # the numbers of open blocks in this thread

    def running_op(self):
        """Returns (name of the running op, user's line), or ("", "")."""
        return "", ""

    def live_nodes(self):
        """Returns the live nodes, oldest first."""
        return []

    def saved_bytes(self, nodes):
        """Returns the bytes of the values that nodes saved; each Storage counts once."""
        return 0

    def describe_nodes(self, nodes):
        """Returns one line of text per node."""
        return []

    def name_holders(self, buffers):
        """Returns one line of text per buffer, with its holders."""
        return [f"{b.nbytes:,} bytes" for b in buffers]

    def start_device(self, device):
        """Makes the pool of a device that has not been used yet, if the device exists."""

    def watch(self, delta):
        """Adds to the number of observers for which `running_op` must know every op."""
        self.watching += delta

    def save_copies(self, delta):
        """Adds to the number of blocks in which saved values survive in-place writes."""
        self.saving_copies += delta


probe = Probe()
pools = {}


def register_pool(pool):
    """Makes a device's pool known to `stats` and `timeline`."""
    pools[pool.device] = pool
    pool.name_holders = lambda buffers: probe.name_holders(buffers)


def register_probe(new):
    """Sets the probe of the graph, and copies the counts of open blocks to it."""
    global probe
    new.watch(probe.watching)
    new.save_copies(probe.saving_copies)
    probe = new


def pool_of(device):
    """Returns the pool of a device, and starts the device at its first use."""
    if not isinstance(device, str):
        raise ArgumentTypeError("wanted the name of a device, such as 'cpu'", short(device))
    if device not in pools:
        probe.start_device(device)
    if device not in pools:
        raise ArgumentError("wanted a device in use", short(device), f"known: {', '.join(pools)}")
    return pools[device]


def stats(device="cpu"):
    """Returns counters of a device's allocator and of the graph, as a dict {name: int}.

    current_bytes: in use now, rounded up to size classes. requested_bytes: the same before
    rounding. peak_bytes: the largest current_bytes so far. reserved_bytes: obtained from the
    system. allocated_bytes, freed_bytes: since the start. system_allocations: segments obtained
    from the system. hits: requests served without a new segment. inactive_split: free bytes in
    segments that are partly in use. retries: system allocations that failed. ooms: those whose
    retry failed as well. live_nodes, saved_bytes: of the autograd graph.
    """
    pool = pool_of(device)
    used = pool.in_use()
    nodes = probe.live_nodes()
    return {
        "current_bytes": pool.current_bytes,
        "peak_bytes": pool.peak_bytes,
        "allocated_bytes": pool.allocated_bytes,
        "freed_bytes": pool.allocated_bytes - pool.current_bytes,
        "requested_bytes": sum(b.requested for b in used),
        "reserved_bytes": pool.reserved_bytes,
        "system_allocations": pool.system_allocations,
        "hits": pool.takes - pool.system_allocations,
        "retries": pool.retries,
        "inactive_split": sum(
            b.nbytes
            for s in pool.segments
            if any(b.owners for b in blocks(s))
            for b in blocks(s)
            if not b.owners
        ),
        "ooms": pool.ooms,
        "live_nodes": len(nodes),
        "saved_bytes": probe.saved_bytes(nodes),
    }


def snapshot(device="cpu"):
    """Returns every segment with its blocks, as plain data for `json.dumps`."""
    pool = pool_of(device)
    return {
        "device": device,
        "reserved_bytes": pool.reserved_bytes,
        "current_bytes": pool.current_bytes,
        "segments": [
            {
                "address": segment.address,
                "bytes": segment.nbytes,
                "blocks": [
                    {
                        "offset": block.address - segment.address,
                        "bytes": block.nbytes,
                        "requested": block.requested if block.owners else 0,
                        "state": "used" if block.owners else "free",
                        "storages": block.owners,
                    }
                    for block in blocks(segment)
                ],
            }
            for segment in pool.segments
        ],
    }


class WatchedBin(Bin):
    """A bin that reports every take and release to watchers.

    Bins get this class while they are watched, so other bins have no overhead.
    """

    __slots__ = ()

    def report(self, kind, buffer):
        """Calls the watchers."""
        for watcher in tuple(self.pool.watchers):
            watcher(kind, buffer)

    def grown(self, buffer):
        """Reports a buffer that was made for a take."""
        self.report("alloc", buffer)

    @uninterrupted
    def pop(self, index=-1):
        try:
            buffer = super().pop(index)
        except IndexError:  # another thread took the buffer
            return self.pool.grow(self, self.nbytes)
        self.report("alloc", buffer)
        return buffer

    @uninterrupted
    def append(self, buffer):
        self.report("free", buffer)
        super().append(buffer)


@uninterrupted
def watch(pool, watcher):
    """Calls watcher(kind, buffer) for every alloc and free of a pool until `unwatch`."""
    with pool.lock:
        pool.watchers.append(watcher)
        _change_bins(pool, WatchedBin)


@uninterrupted
def unwatch(pool, watcher):
    """Ends `watch`."""
    with pool.lock:
        pool.watchers.remove(watcher)
        if not pool.watchers:
            _change_bins(pool, Bin)


def _change_bins(pool, kind):
    pool.bin_type = kind
    for home in pool.bins.values():
        home.__class__ = kind


class Event(NamedTuple):
    """One alloc or free. bytes: positive. current_bytes: the device's total after the event."""

    index: int
    kind: str
    bytes: int
    current_bytes: int
    buffer: int
    op: str
    line: str
    device: str


class timeline(Block):
    """Records every alloc and free inside the block, in order, with the responsible op.

    >>> import minigrad as mg
    >>> with mg.memory.timeline() as t:
    ...     x = mg.ones((16,))
    >>> [(e.kind, e.bytes) for e in t.events]
    [('alloc', 64)]
    """

    def __init__(self, device="cpu"):
        self.device, self.events = pool_of(device).device, []
        self._entered = 0
        self._names, self._numbers = {}, itertools.count()

    def _begin(self):
        self._count(+1, watch, 1)
        probe.watch(+1)
        return {}

    def _end(self, before, is_error):
        probe.watch(-1)
        self._count(-1, unwatch, 0)

    def _count(self, delta, change, at):
        """Adds to the number of open uses; watches while it is not 0, so no event counts twice."""
        pool = pool_of(self.device)
        with pool.lock:
            self._entered += delta
            if self._entered == at:
                change(pool, self._record)

    def _record(self, kind, buffer):
        pool = buffer.pool
        current = pool.current_bytes + (buffer.nbytes if kind == "alloc" else 0)
        if kind == "alloc":
            self._names[buffer.address] = next(self._numbers)
            op, line = probe.running_op()
        else:
            op, line = "", ""
        number = self._names.get(buffer.address, -1)
        self.events.append(
            Event(len(self.events), kind, buffer.nbytes, current, number, op, line, self.device)
        )

    def __len__(self):
        return len(self.events)

    def __iter__(self):
        return iter(self.events)

    def to_csv(self):
        """Returns the events as CSV text with a header line."""
        rows = [",".join(Event._fields)]
        rows += [
            f'{e.index},{e.kind},{e.bytes},{e.current_bytes},{e.buffer},{e.op},"{e.line}",{e.device}'
            for e in self.events
        ]
        return "\n".join(rows) + "\n"


class MemoryGrowthError(MinigradError, AssertionError):
    """More graph nodes or bytes exist after a block than before it."""


class assert_no_growth(Block):
    """Raises MemoryGrowthError if new graph nodes or more bytes remain after the block.

    The error names op, line and bytes of the oldest surviving nodes. The garbage collector does not
    run first: objects in reference cycles count as growth.

    Args:
        nodes: how many new nodes may remain.
        nbytes: how many more bytes may be in use.
    """

    _is_in_parts = False

    def __init__(self, nodes=0, nbytes=0, device="cpu"):
        self.nodes = whole("assert_no_growth", "nodes", nodes, 0)
        self.nbytes = whole("assert_no_growth", "nbytes", nbytes, 0)
        self.device = pool_of(device).device

    def _begin(self):
        nodes = probe.live_nodes()  # kept alive, so that no new node gets one of their ids
        return {"nodes": nodes, "bytes": pool_of(self.device).current_bytes}

    def _end(self, before, is_error):
        if is_error:
            return
        known = {id(n) for n in before["nodes"]}
        new = [n for n in probe.live_nodes() if id(n) not in known]
        grown = pool_of(self.device).current_bytes - before["bytes"]
        if len(new) > self.nodes or grown > self.nbytes:
            oldest = [("survivor", text) for text in probe.describe_nodes(new[:5])]
            raise MemoryGrowthError(
                f"memory grew: wanted at most {self.nodes} new nodes, {self.nbytes:,} more bytes",
                f"{len(new)} nodes holding {probe.saved_bytes(new):,} saved bytes, "
                f"{grown:+,} bytes in use",
                "detach() values carried from step to step, keep float(loss) instead of loss, "
                "call backward(), or use no_grad()",
                details=oldest,
            )


class copy_on_saved_write(Block):
    """Values saved inside the block survive in-place writes, because the writer gets a copy.

    A write to a saved value does not raise, and gradients use the value as it was saved. Nodes save
    copy-on-write clones, so only actual writes take memory. Affects this thread only.

    >>> import minigrad as mg
    >>> x = mg.variable([3.0], requires_grad=True)
    >>> with mg.memory.copy_on_saved_write():
    ...     y = x * x
    >>> with mg.no_grad():
    ...     x.fill_(100.0).tolist()
    [100.0]
    >>> y.backward()
    >>> x.grad.tolist()
    [6.0]
    """

    def _begin(self):
        probe.save_copies(+1)
        return {}

    def _end(self, before, is_error):
        probe.save_copies(-1)


class poison(Block):
    """Fills freed buffers with 0xFF inside the block, to reveal reads of freed memory.

    A float read from freed memory is then NaN, a signed integer -1.
    """

    def __init__(self, device="cpu"):
        self.device = pool_of(device).device

    def _begin(self):
        watch(pool_of(self.device), _fill)
        return {}

    def _end(self, before, is_error):
        unwatch(pool_of(self.device), _fill)


def _fill(kind, buffer):
    if kind == "free":
        buffer.pool.memset(buffer.address, POISON, buffer.nbytes)
