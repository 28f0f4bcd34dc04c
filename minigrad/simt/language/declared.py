"""The arrays that a kernel declares: local ones of a lane, shared ones of a block."""

import numpy as np

from minigrad.simt.machine.arrays import ArrayView
from minigrad.simt.machine.local import LocalArray


def local_array(wave, sizes, dtype, site, mask):
    """The local array declared at a site; uninitialised for the lanes of a mask."""
    found = wave.arrays.get(site)
    if found is None:
        found = wave.arrays[site] = LocalArray(sizes, dtype, wave.lanes.count)
    else:
        found.forget(mask)
    return found


def shared_array(wave, sizes, dtype, site):
    """The shared array declared at a site: the same one each time."""
    found = wave.arrays.get(site)
    if found is None:
        nbytes = int(np.prod(sizes)) * dtype.itemsize
        region = wave.memory.shared(nbytes, site.text, shape=sizes)
        found = wave.arrays[site] = _view_of_shared(wave, region, sizes, dtype)
    return found


def dynamic_array(wave, dtype, site):
    """All dynamic shared arrays begin at the same bytes."""
    if wave.dynamic_region is None:
        wave.dynamic_region = wave.memory.shared(wave.dynamic, "dynamic shared memory")
    return _view_of_shared(wave, wave.dynamic_region, (wave.dynamic // dtype.itemsize,), dtype)


def _view_of_shared(wave, region, sizes, dtype):
    lanes = wave.lanes
    strides = [int(np.prod(sizes[axis + 1 :])) for axis in range(len(sizes))]
    step = np.int64(region.stride // dtype.itemsize)
    offset = np.int64(0) if lanes.blocks == 1 else lanes.block * step
    return ArrayView(region, dtype, sizes, strides, offset)
