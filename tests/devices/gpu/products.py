"""Matrix products on the simulated GPU, for tests."""

import numpy as np

from minigrad.array.dtypes import as_dtype

RNG = np.random.default_rng(7)
TOLERANCE = {"float32": 3e-5, "float64": 1e-12}


def close(got, want):
    assert got.shape == want.shape
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(got, want)
        return
    bound = TOLERANCE[want.dtype.name]
    np.testing.assert_allclose(got, want, rtol=bound, atol=bound * 10)


def product(machine, a, b, bias=None):
    """a @ b + bias by the machine; operands are ndarrays of any strides."""
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    out = machine.from_numpy(np.full(shape, 7, a.dtype), as_dtype(a.dtype))
    bias = None if bias is None else machine.of(bias)
    machine.matmul(machine.of(a), machine.of(b), out, bias)
    return machine.to_numpy(out)


def lying(x, is_transposed):
    """x, or the same matrix stored by columns."""
    return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2) if is_transposed else x
