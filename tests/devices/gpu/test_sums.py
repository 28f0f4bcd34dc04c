"""Sums of many numbers on the simulated GPU: every thread adds few, the rest is a tree.

The numbers are all 0.1, as in tests/ops/test_sums.py. Tests by index and by columns make the sums
of a thread long.
"""

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices.gpu import structural
from minigrad.devices.gpu.product.matmul_plan import pieces_of
from minigrad.formulas.sums import MET
from tests.devices.gpu.machine import Machine

TENTH = float(np.float32(0.1))
BOUND = (MET + 1) * 2.0**-24


@pytest.fixture
def machine():
    return Machine()


def tenths(*shape):
    return np.full(shape, 0.1, np.float32)


def near(found, wanted, bound=BOUND):
    found = np.asarray(found.to("cpu").numpy(), np.float64)
    np.testing.assert_allclose(found, wanted, rtol=bound)


@pytest.mark.parametrize("axis", [0, 1, None, (0, 1)])
def test_sum_along_axes(axis):
    with mg.device("simt"):
        x = mg.variable(tenths(100_000, 3))
        for view in (x, x[::-2], x.T):
            near(view.sum(axis), view.size // view.sum(axis).size * TENTH, 1e-6)


def test_variance_of_numbers_far_from_zero():
    x = np.random.default_rng(0).normal(10_000.0, 1.0, (100_000, 3)).astype(np.float32)
    with mg.device("simt"):
        near(mg.variable(x).var(0, ddof=0), x.astype(np.float64).var(0), 2e-6)


def test_gradients_over_many_rows():
    with mg.device("simt"):
        layer = mg.nn.LayerNorm(3)
        x = mg.variable(np.random.default_rng(0).normal(0, 1, (100_000, 3)).astype(np.float32))
        (layer(x) * 0.1).sum().backward()
        near(layer.bias.grad, 100_000 * TENTH, 1e-5)


def test_sum_along_a_row_too_long_for_registers():
    x = np.zeros((1, 1_000_000), np.float32)
    with mg.device("simt"):
        near(mg.softmax(mg.variable(x), 1), 1e-6, 1e-6)


@pytest.mark.parametrize("n", [MET, MET + 1, 2 * MET, 2_200_000])
def test_sums_by_index_share_what_meets_in_one_place(machine, n):
    r = 2 if n < 10_000 else 1
    index = np.zeros(n, np.int64)
    index[::4] = 2
    out = machine.of(np.full((1, 4, r), 7.0, np.float32))
    machine.scatter_add(machine.of(tenths(1, n, r)), machine.of(index), out)
    counts = np.bincount(index, minlength=4)
    found = machine.to_numpy(out)[0].astype(np.float64)
    np.testing.assert_allclose(found, (7.0 + counts * TENTH)[:, None] * np.ones(r), rtol=2 * BOUND)


def test_sums_by_index_along_an_inner_axis(machine):
    rng = np.random.default_rng(0)
    n, x = 3 * MET, np.zeros((3, 5, 2), np.float32)
    index, source = rng.integers(0, 2, n), rng.normal(size=(3, n, 2)).astype(np.float32)
    out = machine.of(x)
    machine.scatter_add(machine.of(source), machine.of(index), out)
    wanted = x.astype(np.float64)
    np.add.at(wanted.swapaxes(0, 1), index, source.swapaxes(0, 1))
    np.testing.assert_allclose(machine.to_numpy(out), wanted, atol=1e-3)


def test_a_thread_that_goes_along_a_column_sums_in_blocks(machine, monkeypatch):
    monkeypatch.setattr(structural, "MANY", 1)
    out = machine.empty((20_000, 32), mg.float32)
    machine.cumsum(machine.of(tenths(20_000, 32)), out, 0)
    (kernel,) = machine.launched
    assert "cumsum_columns(x" in kernel.text
    wanted = np.arange(1, 20_001)[:, None] * np.full(32, TENTH)
    np.testing.assert_allclose(machine.to_numpy(out), wanted, rtol=5e-6)


def test_long_sums_of_products_are_cut_though_the_gpu_is_busy():
    assert pieces_of(1_100, 8, 500)[0] == 2  # blocks enough, but 8,800 products
    assert pieces_of(100, 8, 500)[0] == 1
    assert pieces_of(10**6, 8, 2_000)[0] == 1  # the sums of pieces would be as large as operands
