"""Windows on the simulated GPU equal those of the CPU."""

import itertools

import numpy as np
import pytest

from minigrad.array.array import ndarray
from minigrad.array.dtypes import as_dtype, int64
from minigrad.devices.cpu.device import cpu
from minigrad.devices.window import Window
from tests.devices.gpu.machine import Machine, random

RNG = np.random.default_rng(3)
WINDOWS = {
    "one": Window((1, 1), (1, 1), (0, 0), (1, 1)),
    "same size": Window((3, 3), (1, 1), (1, 1), (1, 1)),
    "strides": Window((3, 2), (2, 3), (1, 0), (1, 1)),
    "dilated": Window((2, 3), (1, 2), (2, 3), (3, 2)),
    "pool": Window((2, 2), (2, 2), (0, 0), (1, 1)),
}
SHAPES = [(2, 3, 7, 6), (1, 1, 5, 19)]


@pytest.fixture
def machine():
    return Machine()


def on(device, x):
    return device.from_numpy(x, as_dtype(x.dtype))


cases = pytest.mark.parametrize(
    ("shape", "name"), list(itertools.product(SHAPES, WINDOWS)), ids=str
)


@cases
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_unfold_and_fold_equal_the_cpu(machine, shape, name, dtype):
    window, x = WINDOWS[name], random(RNG, shape, dtype)
    (n, c), (oh, ow), (kh, kw) = shape[:2], window.counts(shape[2:]), window.kernel
    size = (n, c * kh * kw, oh * ow)
    columns = []
    for device in (machine, cpu):
        out = device.empty(size, as_dtype(dtype))
        device.unfold(on(device, x), out, window)
        back = device.empty(shape, as_dtype(dtype))
        device.fold(out, back, window)
        columns.append((out, back))
    (out, back), (want, want_back) = columns
    np.testing.assert_array_equal(machine.to_numpy(out), ndarray(want))
    np.testing.assert_allclose(machine.to_numpy(back), ndarray(want_back), 1e-6, 1e-6)
    wide = machine.zeros((size[0] + 1, size[1] + 2, size[2]), dtype)  # columns within larger ones
    part = wide.view(size, wide.strides, 2 * size[2])
    machine.unfold(on(machine, x), part, window)
    np.testing.assert_array_equal(machine.to_numpy(part), ndarray(want))
    machine.fold(part, back, window)
    np.testing.assert_allclose(machine.to_numpy(back), ndarray(want_back), 1e-6, 1e-6)


@cases
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_largest_equals_the_cpu(machine, shape, name, dtype):
    window, x = WINDOWS[name], np.round(random(RNG, shape, dtype))
    x[0, 0, 2, 3], x[0, 0, 3, 3], x[0, 0, 0, 0] = np.nan, np.nan, -np.inf
    if any(2 * p > k for p, k in zip(window.padding, window.kernel, strict=True)):
        window = window._replace(padding=(0, 0))
    places = []
    for device in (machine, cpu):
        out = device.empty((*shape[:2], *window.counts(shape[2:])), int64)
        device.largest(on(device, x), out, window)
        places.append(out)
    np.testing.assert_array_equal(machine.to_numpy(places[0]), ndarray(places[1]))
