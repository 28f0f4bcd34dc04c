"""Buffers, the bins that keep them ready, and the segments of which they are blocks."""

from typing import Any

from minigrad.memory.interrupts import uninterrupted

PAGE = 4096  # bytes
ALIGNMENT = 64  # bytes: one cache line, and the widest vector register


class Buffer:
    """Memory on one device: a block of a segment, recycled when `owners` (Storages) drops to 0.

    `pins` counts outside users of the address (NumPy views, DLPack); clones copy a pinned buffer.
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
        self.is_foreign = False  # other libraries may write it unnoticed
        self.home: Any = None
        self.left: Any = None
        self.right: Any = None
        self.state = "free"  # or "bin" (ready, or in use when owners > 0)

    def __repr__(self):
        state = "in use" if self.owners else "free"
        return f"Buffer({self.nbytes} bytes at {self.address:#x}, {state})"


@uninterrupted
def unpin(buffer):
    """Removes an outside user; after the last one no unnoticed writes to our memory can happen."""
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
        """The pool calls this with a buffer that it made because the bin was empty."""


class OutsideBin(Bin):
    """The bin of buffers over foreign memory: it drops them when they are released."""

    __slots__ = ()
    is_outside = True

    def append(self, buffer):
        buffer.segment = None  # drops the owner


class Segment:
    """One allocation from the system, kept alive by `owner`; `first` is its leftmost block."""

    __slots__ = ("address", "first", "is_small", "nbytes", "owner")

    def __init__(self, owner, address, nbytes, is_small):
        self.owner, self.address, self.nbytes, self.is_small = owner, address, nbytes, is_small
        self.first: Any = None


def round_up(nbytes):
    """The size class of a request: eight between powers of two, pages from 32 KiB on.

    It exceeds the request by at most an eighth, and at most a page.
    """
    step = min(PAGE, max(ALIGNMENT, 1 << max(0, (nbytes - 1).bit_length() - 4)))
    return max(ALIGNMENT, -(-nbytes // step) * step)


def blocks(segment):
    """The blocks of a segment from left to right."""
    block = segment.first
    while block is not None:
        yield block
        block = block.right
