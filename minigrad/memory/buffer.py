"""Buffers, the bins that keep them ready, and the segments that contain them."""

from typing import Any

from minigrad.memory.interrupts import uninterrupted

PAGE = 4096  # bytes
ALIGNMENT = 64  # bytes: the size of a cache line and of the widest vector register


class Buffer:
    """Memory on one device: a block of a segment.

    owners: the number of Storages that use it; at 0 it is recycled. pins: the number of outside
    users of the address (NumPy views, DLPack). A clone of a pinned buffer copies it.
    """

    __slots__ = (
        "address",
        "home",
        "is_foreign",
        "left",
        "nbytes",
        "owners",
        "pins",
        "pool",
        "requested",
        "right",
        "segment",
        "state",
    )

    def __init__(self, pool, segment, address, nbytes):
        self.pool, self.segment, self.address, self.nbytes = pool, segment, address, nbytes
        self.owners = self.requested = self.pins = 0
        self.is_foreign = False  # whether other libraries may write it unnoticed
        self.home: Any = None
        self.left: Any = None
        self.right: Any = None
        self.state = "free"  # or "bin" (ready, or in use when owners > 0)

    def __repr__(self):
        state = "in use" if self.owners else "free"
        return f"Buffer({self.nbytes} bytes at {self.address:#x}, {state})"


@uninterrupted
def unpin(buffer):
    """Removes an outside user. After the last one, nobody can write our memory unnoticed."""
    buffer.pins -= 1
    if not buffer.pins:
        buffer.is_foreign = buffer.home is not None and buffer.home.is_outside


class Bin(list):
    """Ready buffers of one size."""

    __slots__ = ("nbytes", "pool")
    is_outside = False

    def __init__(self, pool, nbytes):
        super().__init__()
        self.pool, self.nbytes = pool, nbytes

    def grown(self, buffer):
        """Called by the pool with a buffer that it made because the bin was empty."""


class OutsideBin(Bin):
    """The bin for buffers over foreign memory: it drops a released buffer."""

    __slots__ = ()
    is_outside = True

    def append(self, buffer):
        buffer.segment = None  # drops the reference to the owner


class Segment:
    """One allocation from the system. owner: keeps it alive. first: its leftmost block."""

    __slots__ = ("address", "first", "is_small", "nbytes", "owner")

    def __init__(self, owner, address, nbytes, is_small):
        self.owner, self.address, self.nbytes, self.is_small = owner, address, nbytes, is_small
        self.first: Any = None


def round_up(nbytes):
    """Rounds a request up to its size class, in bytes.

    There are eight classes between powers of two; from 32 KiB on, classes are multiples of a page.
    A class exceeds the request by at most an eighth, and by at most a page.
    """
    step = min(PAGE, max(ALIGNMENT, 1 << max(0, (nbytes - 1).bit_length() - 4)))
    return max(ALIGNMENT, -(-nbytes // step) * step)


def blocks(segment):
    """Yields the blocks of a segment from left to right."""
    block = segment.first
    while block is not None:
        yield block
        block = block.right
