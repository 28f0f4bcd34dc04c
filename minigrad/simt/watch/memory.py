"""The memory of a launch, which makes every load, store and atomic operation of a kernel.

The machine (`launch`) makes one `Memory` per launch, calls `begin` with the lanes of every wave,
and asks it for regions: `buffer` for global memory, which lives for the whole launch, `shared` for
the shared memory of a wave's blocks. (Local arrays are registers of the machine, not memory.)

A region is bytes. An access names its element type and an index in units of that type:

- dtype: np.dtype of the element.
- index: int64, element 0 being the region's first byte: a vector with one element per lane, or a
  scalar, which means that all active lanes use that element. The indices of inactive lanes are
  arbitrary. In shared memory the index counts from the first block's first byte: block b of the
  wave begins at byte `b * region.stride`. Arrays have checked each index against their shape
  already; a region checks that it stays inside (of a pointer nothing else is known).
- active: bool (count,), or None: all lanes of the wave.
- site: the `Site` in the source.
- width: `load4` and `store4` use 4 elements from the index on in one access, of width * itemsize
  bytes; values are then lists of 4.

Values are scalars (the same in all lanes) or vectors of one element per lane; vectors are never
written to once made. What inactive lanes get from a load is arbitrary.

The machine tells the memory what orders accesses: `barrier(blocks)` when blocks have passed a
barrier, `warp_barrier(active)` when lanes have passed a `syncwarp` together with the other active
lanes of their warp, and `fence(active)` for a `threadfence`.
"""

import dataclasses
import re
from typing import Any

import numpy as np

from minigrad.errors import OutOfBoundsError, SimulationError, describe_line
from minigrad.simt.machine.faults import fault
from minigrad.simt.machine.lanes import first_active
from minigrad.simt.watch import atomics
from minigrad.simt.watch.uses import ATOMIC, READ, WRITE
from minigrad.simt.watch.watch import Guard, Watch, read_only

_NAMES = {READ: "load", WRITE: "store", ATOMIC: "atomic"}  # kinds of access in counts
MOST_STATIC = 48 * 1024  # bytes of static shared memory per block
GARBAGE = 0xFF  # value of uninitialised bytes: floats are NaN, integers -1


@dataclasses.dataclass(frozen=True, eq=False)
class Site:
    """A place in a kernel's source, which errors and reports name.

    Attributes:
        file, line, column: where; lines from 1, columns from 0.
        text: the source of the expression, `tile[y, k]`.
        function: the name of the kernel or device function that contains it.
    """

    file: str
    line: int
    column: int
    text: str
    function: str

    @property
    def where(self):
        """Return `file:line  source text`, as error messages show it."""
        return describe_line(self.file, self.line)


class Region:
    """Bytes of one memory space; see above for the arguments of load, store and atomic.

    Attributes:
        space: "global", "shared" or "constant".
        name: what the kernel calls it, for messages.
        stride: bytes from one block's memory to the next; 0 in global memory.
        shape: of the array that begins at the first byte, if known, for messages.
    """

    def __init__(self, memory, data, space, name, stride=0, writable=True, used=None, shape=None):
        self.memory, self.data, self.space, self.name = memory, data, space, name
        self.stride, self.writable, self.shape = stride, writable, shape
        self._typed = {}
        watches = memory.watch is not None and space != "constant"
        self._guard = Guard(memory.watch, self, used) if watches else None

    def typed(self, dtype):
        """Return the bytes as elements of a dtype."""
        elements = self._typed.get(dtype)
        if elements is None:
            whole = self.data.size // dtype.itemsize * dtype.itemsize
            elements = self._typed[dtype] = self.data[:whole].view(dtype)
        return elements

    def load(self, dtype, index, active, site, width=1):
        """Return the elements at `index`: a scalar if index is one; a list if width > 1."""
        cells = self.typed(dtype)
        index = self._inside(cells, index, active, site, width)
        self._note(READ, dtype, index, active, site, width)
        if width == 1:
            return cells[index]
        return [cells[index + k] for k in range(width)]

    def store(self, dtype, index, value, active, site, width=1):
        """Write elements; if several lanes write the same one, the highest lane's value stays."""
        cells = self.typed(dtype)
        index = self._inside(cells, index, active, site, width)
        if not self.writable:
            raise read_only(site, self.name)
        self._note(WRITE, dtype, index, active, site, width)
        for k, part in enumerate(value if width > 1 else [value]):
            if index.ndim == 0:
                cells[index + k] = last(part, active)
            elif active is None:
                cells[index + k] = part
            else:
                cells[index[active] + k] = part if part.ndim == 0 else part[active]

    def atomic(self, dtype, operation, index, value, active, site, old=True):
        """Read, compute and write, lane after lane; return the old elements if wanted.

        operation: a name in `atomics.OPERATIONS`. value: for "cas" a pair (expected, new).
        """
        cells = self.typed(dtype)
        index = self._inside(cells, index, active, site, 1)
        if not self.writable:
            raise read_only(site, self.name)
        self._note(ATOMIC, dtype, index, active, site, 1)
        return atomics.apply(
            cells, operation, index, value, active, self.memory.lanes.count, want_old=old
        )

    def begin_copy(self, dtype, index, active, site, width):
        """Record that an asynchronous copy begins, into elements to be used after `land`."""
        self._note(WRITE, dtype, index, active, site, width)
        if self._guard is not None:
            self._guard.begin_copy(index[active] * dtype.itemsize, active, site)

    def land(self, dtype, index, value, active, site, width):
        """Write what an asynchronous copy has read."""
        if self._guard is not None:
            self._guard.flying.land(index[active] * dtype.itemsize)
        self.watch(WRITE, dtype, index, active, site, width)
        for k, part in enumerate(value):
            self.typed(dtype)[index[active] + k] = part[active]

    def watch(self, kind, dtype, index, active, site, width):
        """Check an access for races, without counting it."""
        if self._guard is not None:
            self._guard.access(kind, dtype.itemsize, index, active, site, width)

    def _note(self, kind, dtype, index, active, site, width):
        size = dtype.itemsize
        self.watch(kind, dtype, index, active, site, width)
        counts = self.memory.counts
        if counts is not None:
            counts.access(_NAMES[kind], self, site, index * size, size * width, active)

    def called(self, site):
        """Return the kernel's name for this memory: for a shared array, the site's variable."""
        if self.space != "shared":
            return self.name
        match = re.match(r"(\w+)\s*\[|[\w.]+\((\w+)", site.text)  # tile[i], atomic.add(tile, i, x)
        return self.name if match is None else match[1] or match[2]

    def element(self, byte, itemsize, site):
        """Return `element (1, 2) of tile`, which names the element at a byte, for messages."""
        index = byte // itemsize
        name = self.called(site)
        if self.shape is not None and len(self.shape) > 1 and index < np.prod(self.shape):
            index = tuple(int(i) for i in np.unravel_index(index, self.shape))
        return f"element {index} of {name}"

    def _inside(self, cells, index, active, site, width):
        """Return the index, with 0 for inactive lanes whose index would be outside."""
        limit = cells.size - width + 1
        if index.ndim == 0:
            if 0 <= index < limit:
                return index
            outside = np.ones((), bool)
        else:
            if index.size and limit > 0 and index.view(np.uint64).max() < limit:
                return index
            outside = index.view(np.uint64) >= max(limit, 0)
        lane = first_active(active, np.broadcast_to(outside, (self.memory.lanes.count,)))
        if lane is not None:
            raise self._out_of_bounds(cells, index, lane, site)
        return np.where(outside, 0, index)

    def _out_of_bounds(self, cells, index, lane, site):
        where = index if index.ndim == 0 else index[lane]
        return fault(
            OutOfBoundsError,
            f"{site.text} is outside of its memory",
            site,
            self.memory.lanes,
            lane,
            got=f"element {where} of {self.name}, which has {cells.size} of {cells.dtype}",
            fix="guard the access: if i < n: ...",
        )


def last(value, active):
    """Return the value of an element that all active lanes store to: the highest lane's."""
    if value.ndim == 0:
        return value
    return value[-1] if active is None else value[np.flatnonzero(active)[-1]]


class Memory:
    """All memory of one launch.

    Args:
        kernel: the kernel's name, for messages.
        watch: look for data races and for reads of uninitialised shared memory.
        counts: what counts accesses for a report, or None.
        exact: the kernel (or a device function it calls) has a `syncwarp` or a `threadfence`, so
            that more than the barriers of whole blocks orders its accesses.
    """

    def __init__(self, kernel, watch=True, counts=None, exact=False):
        self.kernel, self.counts = kernel, counts
        self.watch = Watch(exact) if watch else None
        self.lanes: Any = None
        self.static = 0

    def begin(self, lanes):
        """Begin a new wave: other blocks run from here on."""
        self.lanes, self.static = lanes, 0
        if self.watch is not None:
            self.watch.begin(lanes)
        if self.counts is not None:
            self.counts.wave(lanes)

    def barrier(self, blocks=None):
        """Record that blocks passed a barrier; blocks: bool (lanes.blocks,), or None for all."""
        if blocks is None:
            self.lanes.block_epoch += 1
        else:
            self.lanes.block_epoch[blocks] += 1
        if self.watch is not None:
            self.watch.barrier(blocks)

    def warp_barrier(self, active=None):
        """Record that lanes passed a `syncwarp`, each with the other active lanes of its warp."""
        if self.watch is not None and self.watch.ordering is not None:
            self.watch.ordering.warp_barrier(active)

    def fence(self, active=None):
        """Record that lanes passed a `threadfence` (of any scope)."""
        if self.watch is not None and self.watch.ordering is not None:
            self.watch.ordering.fence(active)

    def buffer(self, data, name, writable=True, space="global", shape=None):
        """Return the region of a buffer; data: uint8 (n,), used in place.

        Arguments that show the same bytes must share a region, or their races go unseen.
        """
        return Region(self, data, space, name, writable=writable, shape=shape)

    def shared(self, nbytes, name, shape=None):
        """Return uninitialised shared memory for this wave's blocks, `nbytes` each.

        shape: of a static array; static arrays have 48 KiB per block in all, on every GPU.
        """
        if shape is not None:
            self.static += nbytes
            if self.static > MOST_STATIC:
                raise SimulationError(
                    f"a block has {MOST_STATIC:,} bytes of static shared memory",
                    f"{self.static:,} bytes with {name} in {self.kernel}",
                    "smaller tiles, or dynamic shared memory: shape 0, and "
                    "kernel[blocks, threads, 0, bytes]",
                )
        stride = -(-nbytes // 16) * 16
        data = np.full(stride * self.lanes.blocks, GARBAGE, np.uint8)
        return Region(self, data, "shared", name, stride, used=nbytes, shape=shape)
