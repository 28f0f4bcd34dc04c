"""`cuda.local.array`: memory of one thread, held like registers, as no other thread sees it."""

from typing import Any

import numpy as np

from minigrad.errors import SimulationError, UninitializedReadError
from minigrad.simt.machine.arrays import checked
from minigrad.simt.machine.faults import fault, offender
from minigrad.simt.machine.masks import DEAD, merge, outside, union


class LocalArray:
    """One array per lane: a list of values as long as all lanes use the same indices.

    The first index that differs from lane to lane turns the list into a matrix (elements, lanes).
    """

    kind = "a local array"

    def __init__(self, shape, dtype, count):
        self.shape = tuple(np.int64(n) for n in shape)
        self.dtype, self.count = dtype, count
        size = int(np.prod(shape, dtype=np.int64))
        self.cells: Any = [None] * size
        self.known: Any = [DEAD] * size  # per element, the mask of the lanes that wrote it
        self.matrix: Any = None
        self.filled: Any = None

    @property
    def ndim(self):
        return np.int64(len(self.shape))

    @property
    def size(self):
        return np.int64(len(self.cells))

    def forget(self, mask):
        """Make the elements uninitialised in lanes that declare the array again."""
        if self.matrix is not None:
            self.filled[:, slice(None) if mask is None else mask] = False
            return
        self.known = [k if k is DEAD else outside(k, mask) for k in self.known]

    def _locate(self, index, lanes, mask, site):
        if len(index) != len(self.shape) or any(type(i) is slice for i in index):
            raise fault(
                SimulationError,
                f"{site.text}: a local array of {len(self.shape)} axes takes as many indices",
                site,
            )
        flat: Any = np.int64(0)
        for axis, i in enumerate(index):
            flat = flat * self.shape[axis] + checked(i, self.shape[axis], axis, lanes, mask, site)
        return flat

    def _spread(self):
        if self.matrix is None:
            self.matrix = np.zeros((len(self.cells), self.count), self.dtype)
            self.filled = np.zeros(self.matrix.shape, bool)
            for k, (cell, known) in enumerate(zip(self.cells, self.known, strict=True)):
                if cell is not None:
                    self.matrix[k], self.filled[k] = cell, True if known is None else known
        return self.matrix, self.filled

    def load(self, index, lanes, mask, site):
        """Return one element per lane."""
        flat = self._locate(index, lanes, mask, site)
        if self.matrix is None and flat.ndim == 0:
            missing = outside(mask, self.known[flat])
            if missing is not DEAD:
                raise self._unset(lanes, offender(lanes, missing, True), site)
            return self.cells[flat]
        matrix, filled = self._spread()
        rows = (flat, np.arange(self.count)) if flat.ndim else flat
        if not filled[rows].all():
            lane = offender(lanes, mask, ~filled[rows])
            if lane is not None:
                raise self._unset(lanes, lane, site)
        return matrix[rows].copy()

    def store(self, index, value, lanes, mask, site):
        """Write one element per lane, cast to the array's dtype."""
        flat = self._locate(index, lanes, mask, site)
        if value.dtype != self.dtype:
            value = value.astype(self.dtype)
        if self.matrix is None and flat.ndim == 0:
            old = self.cells[flat]
            self.cells[flat] = value if old is None else merge(mask, value, old)
            self.known[flat] = union(self.known[flat], mask)
            return
        matrix, filled = self._spread()
        at = np.arange(self.count) if mask is None else np.flatnonzero(mask)
        rows = flat[at] if flat.ndim else flat
        matrix[rows, at] = value[at] if value.ndim else value
        filled[rows, at] = True

    def _unset(self, lanes, lane, site):
        return fault(
            UninitializedReadError,
            f"{site.text} is read before this thread has written it",
            site,
            lanes,
            lane,
            fix="a local array begins with whatever the registers held: fill it first",
        )
