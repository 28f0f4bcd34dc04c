"""Buffers, the bins that keep them ready, and the segments they are cut from."""

from typing import Any

from minigrad.memory.interrupts import uninterrupted

PAGE = 4096  # bytes
ALIGNMENT = 64  # bytes: one cache line, and the widest vector register


class Buffer:
    """Bytes on one device, counted by `owners` (Storages). A block of a segment; it is recycled.

    `pins` counts outside users of its address (NumPy views, DLPack): cloning a pinned buffer
    copies.
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
        self.is_foreign = False  # others may write it unseen
        self.home: Any = None
        self.left: Any = None
        self.right: Any = None
        self.state = "free"  # or "bin" (ready, or in use when owners > 0)

    def __repr__(self):
        state = "in use" if self.owners else "free"
        return f"Buffer({self.nbytes} bytes at {self.address:#x}, {state})"


@uninterrupted
def unpin(buffer):
    """One outside user less: after the last one, nobody writes bytes of ours unseen."""
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
        """Called with a buffer that the pool made because the bin was empty."""


class OutsideBin(Bin):
    """Where buffers over memory of others go when they are released: nowhere."""

    __slots__ = ()
    is_outside = True

    def append(self, buffer):
        buffer.segment = None  # lets go of the owner


class Segment:
    """One allocation from the system, kept alive by `owner`; `first` is its leftmost block."""

    __slots__ = ("address", "first", "is_small", "nbytes", "owner")

    def __init__(self, owner, address, nbytes, is_small):
        self.owner, self.address, self.nbytes, self.is_small = owner, address, nbytes, is_small
        self.first: Any = None


def round_up(nbytes):
    """The size class of a request: eight between powers of two, pages from 32 KiB on.

    At most an eighth above the request, and at most a page.
    """
    step = min(PAGE, max(ALIGNMENT, 1 << max(0, (nbytes - 1).bit_length() - 4)))
    return max(ALIGNMENT, -(-nbytes // step) * step)


def blocks(segment):
    """The blocks of a segment from left to right."""
    block = segment.first
    while block is not None:
        yield block
        block = block.right
