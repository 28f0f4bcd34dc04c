"""The kernels of windows against plain loops: widths that fill no vector, NaN, ties."""

import numpy as np
import pytest

from minigrad.array.array import ndarray
from minigrad.array.dtypes import float32, float64, int64
from minigrad.kernels.backend import device_named
from minigrad.kernels.window import Window

CPU = device_named("cpu")
DTYPES = {"float32": float32, "float64": float64}


def first_largest(x, window):
    """Where in the flattened x each window's first largest element lies."""
    (kh, kw), (sh, sw), _, _ = window
    n, c, h, w = x.shape
    oh, ow = window.counts((h, w))
    out = np.empty((n, c, oh, ow), np.int64)
    for index in np.ndindex(*out.shape):
        a, b, i, j = index
        inside = x[a, b, i * sh : i * sh + kh, j * sw : j * sw + kw]
        ki, kj = divmod(int(inside.argmax()), kw)  # NaN counts as largest, also for NumPy
        out[index] = ((a * c + b) * h + i * sh + ki) * w + j * sw + kj
    return out


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("width", [2, 3, 8, 9, 18, 35])
@pytest.mark.parametrize("stride", [(2, 2), (1, 1), (3, 2), (2, 3)])
def test_largest_of_pairs_is_the_first_of_equals_and_nan(name, width, stride):
    rng = np.random.default_rng(width)
    x = rng.integers(-2, 3, (2, 3, 6, width)).astype(name)  # many ties
    x[rng.random(x.shape) < 0.1] = np.nan
    x[rng.random(x.shape) < 0.1] = -np.inf
    x[0, 0, :2, :2] = [[-0.0, 0.0], [0.0, -0.0]]
    window = Window((2, 2), stride, (0, 0), (1, 1))
    out = CPU.empty((2, 3, *window.counts(x.shape[2:])), int64)
    CPU.largest(CPU.from_numpy(x, DTYPES[name]), out, window)
    np.testing.assert_array_equal(ndarray(out), first_largest(x, window))
