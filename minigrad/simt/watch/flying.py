"""Shared memory into which asynchronous copies are on their way: no thread may use it until then.

A barrier does not help: only `cp_async_wait`, by the thread that began the copy, makes it stand.
"""

import numpy as np

GRANULE = 16  # bytes that one thread copies at once


class Flying:
    """Who copies what into one region; nothing is on its way at first.

    Args:
        size: of the region, in bytes.
    """

    def __init__(self, size):
        self.lane = np.full(-(-size // GRANULE), -1, np.int64)  # -1: no copy is on its way there
        self.site = np.zeros(self.lane.size, np.int64)

    def begin(self, byte, lanes, site):
        """Record copies by lanes into the granules that begin at some bytes; site: its number."""
        self.lane[byte // GRANULE] = lanes
        self.site[byte // GRANULE] = site

    def land(self, byte):
        """Record that the copies into some granules stand."""
        self.lane[byte // GRANULE] = -1

    def first(self, byte):
        """Return (position in `byte`, lane, site) of the first use of such bytes, or None."""
        lanes = self.lane[byte // GRANULE]
        hits = np.flatnonzero(lanes >= 0)
        if not hits.size:
            return None
        at = int(hits[0])
        return at, int(lanes[at]), int(self.site[byte[at] // GRANULE])
