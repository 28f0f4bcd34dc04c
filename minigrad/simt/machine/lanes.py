"""The threads that run together: a wave of whole blocks, one lane per thread."""

import functools

import numpy as np

WARP = 32


def unfold(index, extents):
    """Linear index -> (x, y, z), x running fastest."""
    x, y, z = extents
    return int(index % x), int(index // x % y), int(index // (x * y) % z)


@functools.lru_cache(maxsize=16)
def _geometry(extents, blocks):
    """(block, thread, warp, position in warp) of each lane; int64, read-only."""
    threads = extents[0] * extents[1] * extents[2]
    warps = -(-threads // WARP)
    block, thread = np.divmod(np.arange(blocks * threads), threads)
    parts = block, thread, block * warps + thread // WARP, thread % WARP
    for part in parts:
        part.flags.writeable = False
    return parts


class Lanes:
    """The lanes of one wave; lane l runs thread `thread[l]` of the wave's block `block[l]`.

    Attributes:
        count: how many lanes: blocks * threads. No lane is padding.
        blocks, threads, warps: blocks in this wave, threads in a block, warps in this wave.
        grid, extents: gridDim and blockDim, (x, y, z).
        first: linear number in the grid of the wave's first block.
        block, thread, warp, position: int64 (count,): the block and the warp within the wave, the
            linear thread within its block, the position within its warp.
        block_epoch: int64 (blocks,): barriers of the whole block so far.
        warp_epoch: int64 (warps,): `syncwarp`s so far.
    """

    def __init__(self, grid, extents, first, blocks):
        self.grid, self.extents, self.first, self.blocks = grid, extents, first, blocks
        self.threads = extents[0] * extents[1] * extents[2]
        self.count = blocks * self.threads
        self.warps = blocks * -(-self.threads // WARP)
        self.block, self.thread, self.warp, self.position = _geometry(extents, blocks)
        self.block_epoch = np.zeros(blocks, np.int64)
        self.warp_epoch = np.zeros(self.warps, np.int64)

    def thread_of(self, lane):
        """threadIdx of a lane, (x, y, z)."""
        return unfold(self.thread[lane], self.extents)

    def block_of(self, lane):
        """blockIdx of a lane, (x, y, z)."""
        return unfold(self.first + self.block[lane], self.grid)

    def name(self, lane):
        """`block (0, 0, 0), thread (3, 0, 0)`."""
        return f"block {self.block_of(lane)}, thread {self.thread_of(lane)}"

    @functools.cached_property
    def thread_index(self):
        """threadIdx.x, .y, .z: int32, a scalar where the block has extent 1."""
        x, y, z = self.extents
        return _coordinates(self.thread, x, y, z)

    @functools.cached_property
    def block_index(self):
        """blockIdx.x, .y, .z: int32, a scalar where all blocks of the wave share it."""
        if self.blocks == 1:
            return tuple(np.int32(k) for k in self.block_of(0))
        x, y, z = self.grid
        return _coordinates(self.first + self.block, x, y, z)

    @functools.cached_property
    def grid_index(self):
        """What grid(3) returns: blockIdx * blockDim + threadIdx, int64."""
        return tuple(
            np.asarray(b, np.int64)[()] * np.int64(n) + t
            for b, n, t in zip(self.block_index, self.extents, self.thread_index, strict=True)
        )


def _coordinates(linear, x, y, z):
    zero = np.int32(0)
    return (
        (linear % x if y * z > 1 else linear).astype(np.int32) if x > 1 else zero,
        (linear // x % y if z > 1 else linear // x).astype(np.int32) if y > 1 else zero,
        (linear // (x * y)).astype(np.int32) if z > 1 else zero,
    )


def first_active(active, where=None):
    """The lowest lane that is active (None: all are) and for which `where` holds; None: no lane."""
    if where is None:
        if active is None:
            return 0
        where = active
    found = np.flatnonzero(where if active is None else active & where)
    return int(found[0]) if found.size else None
