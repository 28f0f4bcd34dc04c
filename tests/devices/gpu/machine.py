"""The simulated GPU for tests of single kernels: watched for races, and it says what ran."""

import numpy as np

from minigrad.array.dtypes import as_dtype
from minigrad.devices.gpu.simt import Simt, device


class Machine(Simt):
    """The device `simt` with the race detector on; `launched` lists the kernels that ran."""

    def __init__(self):
        self.pool, self.watch, self.launched = device.pool, True, []

    def launch(self, kernel, blocks, threads, operands, shared=0):
        """Runs a GpuKernel."""
        self.launched.append(kernel)
        super().launch(kernel, blocks, threads, operands, shared)

    def of(self, data):
        """An Array with a copy of an ndarray, and its strides (those of 0 too)."""
        seen = np.lib.stride_tricks.as_strided(
            data,
            [1 if s == 0 else n for n, s in zip(data.shape, data.strides, strict=True)],
            data.strides,
        )
        order = sorted(range(data.ndim), key=lambda d: -abs(data.strides[d]))
        array = self.from_numpy(seen.transpose(order), as_dtype(data.dtype))
        strides = dict(zip(order, array.strides, strict=True))
        steps = [0 if s == 0 else strides[d] for d, s in enumerate(data.strides)]
        return array.view(data.shape, tuple(steps))

    def zeros(self, shape, dtype):
        """A contiguous Array of zeros."""
        return self.from_numpy(np.zeros(shape, dtype), as_dtype(dtype))


def random(rng, shape, dtype, high=9):
    """Random elements: normal floats, ints from -high to high - 1, or from 0 where unsigned."""
    if np.dtype(dtype).kind == "f":
        return rng.normal(size=shape).astype(dtype)
    low = 0 if np.dtype(dtype).kind in "ub" else -high
    return rng.integers(low, high, shape).astype(dtype)
