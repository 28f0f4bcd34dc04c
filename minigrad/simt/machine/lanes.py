"""The threads that run together: a wave of whole blocks, with one lane per thread."""

import functools

import numpy as np

WARP = 32


def unfold(index, extents):
    """Convert a linear index to (x, y, z); x varies fastest."""
    x, y, z = extents
    return int(index % x), int(index // x % y), int(index // (x * y) % z)


@functools.lru_cache(maxsize=16)
def _geometry(extents, blocks):
    """Return (block, thread, warp, position in warp) of each lane; int64, read-only."""
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
        count: the number of lanes: blocks * threads. No lane is padding.
        blocks, threads, warps: blocks in this wave, threads in a block, warps in this wave.
        grid, extents: gridDim and blockDim, (x, y, z).
        first: the linear number in the grid of the wave's first block.
        block, thread, warp, position: int64 (count,): the block and the warp within the wave, the
            linear thread within its block, the position within its warp.
        block_epoch: int64 (blocks,): the number of barriers of the whole block so far.
        warp_epoch: int64 (warps,): the number of `syncwarp`s so far.
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
        """Return threadIdx of a lane, (x, y, z)."""
        return unfold(self.thread[lane], self.extents)

    def block_of(self, lane):
        """Return blockIdx of a lane, (x, y, z)."""
        return unfold(self.first + self.block[lane], self.grid)

    def name(self, lane):
        """Return a lane's name in messages: `block (0, 0, 0), thread (3, 0, 0)`."""
        return f"block {self.block_of(lane)}, thread {self.thread_of(lane)}"

    @functools.cached_property
    def thread_index(self):
        """Return threadIdx.x, .y, .z: int32, a scalar where the block has extent 1."""
        x, y, z = self.extents
        return _coordinates(self.thread, x, y, z)

    @functools.cached_property
    def block_index(self):
        """Return blockIdx.x, .y, .z: int32, a scalar where all blocks of the wave share it."""
        if self.blocks == 1:
            return tuple(np.int32(k) for k in self.block_of(0))
        x, y, z = self.grid
        return _coordinates(self.first + self.block, x, y, z)

    @functools.cached_property
    def grid_index(self):
        """Return the result of grid(3): blockIdx * blockDim + threadIdx, int64."""
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
    """Return the lowest active lane where `where` holds, or None. active: None for all lanes."""
    if where is None:
        if active is None:
            return 0
        where = active
    lanes = np.flatnonzero(where if active is None else active & where)
    return int(lanes[0]) if lanes.size else None
