"""One access of many lanes, and the keys that it leaves in the records of `races`.

A *key* packs three numbers into an int64, from the high bits down: how many barriers the thread's
block has passed, the thread's number in the grid, the site's number.
"""

import dataclasses
import functools

import numpy as np

READ, WRITE, ATOMIC = "read", "write", "atomic"
SITE_BITS = 12


class Keys:
    """The keys of a wave's lanes between two barriers."""

    def __init__(self, lanes, id_bits):
        self.lanes, self.id_bits = lanes, id_bits
        self.ids = ((1 << id_bits) - 1) << SITE_BITS  # the bits of the thread
        epoch = lanes.block_epoch
        self.later = bool(epoch.any())  # whether some block has passed a barrier
        same = lanes.blocks == 1 or bool((epoch == epoch[0]).all())
        # keys below `start` come from accesses before the last barrier of the lane's block
        shift = id_bits + SITE_BITS
        self.start = int(epoch[0]) << shift if same else epoch[lanes.block] << shift

    @functools.cached_property
    def all(self):
        """Return the numbers of all lanes."""
        return np.arange(self.lanes.count)

    @functools.cached_property
    def number(self):
        """Return each lane's thread number in the grid."""
        return self.lanes.first * self.lanes.threads + self.all

    @functools.cached_property
    def key(self):
        """Return each lane's key, for site 0."""
        return (self.number << SITE_BITS) + self.start

    @functools.cached_property
    def mirror(self):
        """Return each lane's key with inverted thread bits."""
        return self.key ^ self.ids

    @functools.cached_property
    def block_first(self):
        """Return the number of the first thread of each lane's block."""
        return self.number - self.lanes.thread

    def thread(self, key):
        """Return the thread's number in a key."""
        return (key & self.ids) >> SITE_BITS


class Use:
    """One access of some lanes; attributes are computed when needed.

    Args:
        index: the first cell of each lane, in units of `scale` cells: int64, a scalar or one per
            lane of the wave. parts: cells per lane.
        active: the lanes, a bool vector, or None for all.
        keys: the present keys of the wave. site: its number.
    """

    def __init__(self, index, scale, parts, active, keys, site):
        self.index, self.scale, self.parts, self.active = index, scale, parts, active
        self.keys, self.site = keys, site

    @functools.cached_property
    def some(self):
        """Return the lanes that take part, each once, in ascending order."""
        return self.keys.all if self.active is None else np.flatnonzero(self.active)

    @functools.cached_property
    def lanes(self):
        """Return the lane of each cell in `cells`, in ascending order."""
        return self.some if self.parts == 1 else np.repeat(self.some, self.parts)

    @functools.cached_property
    def cells(self):
        """Return the cells used, lane by lane."""
        first = self.index if self.index.ndim == 0 or self.active is None else self.index[self.some]
        first = first if self.scale == 1 else first * self.scale
        if first.ndim == 0:
            first = np.full(self.some.size, first)
        return first if self.parts == 1 else (first[:, None] + np.arange(self.parts)).ravel()

    def ends(self):
        """Reduce to the lowest and highest lane, which stand for all, if all use one cell."""
        if self.index.ndim or self.some.size < 3:
            return self
        new = Use(self.index, self.scale, self.parts, self.active, self.keys, self.site)
        new.some = self.some[[0, -1]]
        return new

    def of(self, vector):
        """Return a vector's values for these lanes; return scalars as they are."""
        return vector[self.lanes] if isinstance(vector, np.ndarray) else vector

    def finer(self, parts):
        """Return the use of the same bytes as cells of 1 / parts of the size."""
        return Use(
            self.index, self.scale * parts, self.parts * parts, self.active, self.keys, self.site
        )


@dataclasses.dataclass(frozen=True)
class Conflict:
    """A race: the position in the Use; thread, site number and kind of the earlier access."""

    at: int
    thread: int
    site: int
    kind: str
