"""Random numbers on the simulated GPU are those of the CPU."""

import numpy as np
import pytest

from minigrad.array.array import ndarray
from minigrad.array.dtypes import as_dtype
from minigrad.devices.cpu.device import cpu
from tests.devices.gpu.machine import Machine

KINDS = [
    ("uniform", "float32"), ("uniform", "float64"), ("normal", "float32"), ("normal", "float64"),
    ("integers", "int64"),
]  # fmt: skip


def draw(device, kind, dtype, n, seed, counter, low, high):
    array = device.empty((n,), as_dtype(dtype))
    device.random(array, kind, seed, counter, low, high)
    return array


@pytest.mark.parametrize(("kind", "dtype"), KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 1025])
def test_numbers_are_those_of_the_cpu(kind, dtype, n):
    machine = Machine()
    for seed, counter in ((7, 0), (-(2**63), 2**40 + 3)):
        bounds = (-(2**63), 2**63 - 1) if seed < 0 else (-5, 12)
        got = machine.to_numpy(draw(machine, kind, dtype, n, seed, counter, *bounds))
        want = ndarray(draw(cpu, kind, dtype, n, seed, counter, *bounds))
        if kind == "normal":  # the processor fuses products and sums; the simulator rounds each
            np.testing.assert_allclose(got, want, rtol=3e-6 if dtype == "float32" else 1e-14)
        else:
            np.testing.assert_array_equal(got, want)


def test_numbers_fill_a_view_that_begins_between_vectors():
    machine = Machine()
    whole = machine.zeros((12,), "float32")
    machine.random(whole.view((9,), (1,), 1), "uniform", 3, 5)
    got, want = machine.to_numpy(whole), ndarray(draw(cpu, "uniform", "float32", 9, 3, 5, 0, 0))
    np.testing.assert_array_equal(got, [0, *want, 0, 0])
