"""Rows by index on the simulated GPU."""

import numpy as np
import pytest

from minigrad.array.dtypes import as_dtype, int64
from minigrad.devices.gpu import structural
from tests.devices.gpu.machine import Machine, random

RNG = np.random.default_rng(2)
SHAPES = [(1, 5, 1, 7), (1, 6, 8, 5), (3, 4, 3, 6), (2, 1, 12, 3), (1, 3, 300, 2), (4, 9, 1, 40)]
DTYPES = ["float32", "float64", "int32", "int64", "uint8", "bool"]


@pytest.fixture
def machine():
    return Machine()


def case(shape, dtype):
    """x (outer, n, r), index (m,) with equal ones, source (outer, m, r)."""
    outer, n, r, m = shape
    index = RNG.integers(0, n, m)
    return random(RNG, (outer, n, r), dtype), index, random(RNG, (outer, m, r), dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_gather_picks_rows(machine, shape, dtype):
    x, index, source = case(shape, dtype)
    out = machine.empty(source.shape, as_dtype(dtype))
    machine.gather(machine.of(x), machine.of(index), out)
    np.testing.assert_array_equal(machine.to_numpy(out), x[:, index])


def test_gather_from_an_odd_place_reads_no_vectors(machine):
    x, index = random(RNG, (1, 6, 4), "f4"), np.array([5, 0])
    whole = machine.of(np.concatenate([[0], x.ravel()]).astype("f4"))
    out = machine.empty((1, 2, 4), as_dtype("float32"))
    machine.gather(whole.view((1, 6, 4), (24, 4, 1), 1), machine.of(index), out)
    np.testing.assert_array_equal(machine.to_numpy(out), x[:, index])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES[:5])
def test_scatter_adds_rows_that_meet(machine, shape, dtype):
    x, index, source = case(shape, dtype)
    out = machine.of(x)
    machine.scatter_add(machine.of(source), machine.of(index), out)
    with np.errstate(over="ignore"):
        np.add.at(x.swapaxes(0, 1), index, source.swapaxes(0, 1))
    np.testing.assert_allclose(machine.to_numpy(out), x, 1e-5, 1e-5)


def test_bytes_are_added_as_words(machine):
    """A GPU adds no bytes in one step that nobody divides, whatever the simulator does."""
    out = machine.of(np.full((1, 2, 1), 250, "u1"))
    source, index = machine.of(np.full((1, 3, 1), 9, "u1")), machine.of(np.array([1, 1, 0]))
    machine.scatter_add(source, index, out)
    np.testing.assert_array_equal(machine.to_numpy(out).ravel(), [3, 12])
    (kernel,) = [k for k in machine.launched if "atomic_add(out" in k.text and "wrap" in k.text]
    assert kernel.signature.split()[:3] == ["i4*", "i8*", "i4*"]


@pytest.mark.parametrize("few", [0, 10**6])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_put_keeps_the_last_of_equals(machine, monkeypatch, few, shape, dtype):
    monkeypatch.setattr(structural, "FEW", few)
    x, index, source = case(shape, dtype)
    out = machine.of(x)
    machine.put(machine.of(source), machine.of(index), out)
    for i, k in enumerate(index):
        x[:, k] = source[:, i]
    np.testing.assert_array_equal(machine.to_numpy(out), x)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_indices_count_from_the_end_where_negative(machine, dtype):
    index = random(RNG, (6, 50), dtype, 9)
    out = machine.empty((6, 50), int64)
    assert machine.wrap_index(machine.of(index), 9, out) == -1
    np.testing.assert_array_equal(machine.to_numpy(out), index.astype("i8") % 9)


@pytest.mark.parametrize("bad", [9, -10, 127])
def test_first_index_outside_is_found(machine, bad):
    index = np.zeros(700, np.int32)
    index[[650, 333, 400]] = bad
    out = machine.empty((700,), int64)
    assert machine.wrap_index(machine.of(index), 9, out) == 333
    assert not machine.to_numpy(out).any()  # 0 stands there: nothing is read out of bounds by it


def test_long_rows_are_shared_by_blocks():
    assert structural.rows_of(1, 10**6) == ((1, 1024), (256, 1))
    assert structural.rows_of(10**6, 3) == ((2048, 1), (4, 64))
