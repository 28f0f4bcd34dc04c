"""Running sums, places of extremes and of what is not 0, on the simulated GPU."""

import numpy as np
import pytest

from minigrad import simt
from minigrad.array.dtypes import as_dtype, int64
from minigrad.devices.gpu import structural
from minigrad.simt.counts.counts import Counts
from tests.devices.gpu.machine import Machine, random

RNG = np.random.default_rng(1)
TOLERANCE = {"float32": 1e-5, "float64": 1e-13, "int64": 0}


@pytest.fixture
def machine():
    return Machine()


@pytest.fixture
def way(request, monkeypatch):
    """Whether threads or blocks go along the sequences."""
    monkeypatch.setattr(structural, "by_columns", lambda *_: request.param == "threads")
    return request.param


SHAPES = [((1,), 0), ((7,), 0), ((3, 5), 0), ((3, 5), 1), ((2, 300, 3), 1), ((2100,), 0),
          ((2, 4100), 1), ((2048,), 0), ((2049, 2), 0), ((2, 1, 4), 1)]  # fmt: skip
ALONG = [  # a thread along a long sequence takes the simulator long, and shows no more
    (way, shape, axis)
    for way in ("threads", "blocks")
    for shape, axis in SHAPES
    if way == "blocks" or shape[axis] <= 300
]
along = pytest.mark.parametrize(("way", "shape", "axis"), ALONG, indirect=["way"])
both_ways = pytest.mark.parametrize("way", ["threads", "blocks"], indirect=True)


@along
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_cumsum_equals_numpy(machine, way, shape, axis, dtype):
    x = random(RNG, shape, dtype)
    out = machine.empty(shape, as_dtype(dtype))
    machine.cumsum(machine.of(x), out, axis)
    bound = TOLERANCE[dtype]
    want = np.cumsum(x.astype("f8" if dtype != "int64" else "i8"), axis).astype(dtype)
    np.testing.assert_allclose(machine.to_numpy(out), want, bound, bound * 200)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
def test_cumsum_of_ints_is_int64(machine, dtype):
    x = random(RNG, (4, 5), dtype)
    out = machine.empty((4, 5), int64)
    machine.cumsum(machine.of(x).view((5, 4), (1, 5)), out.view((5, 4), (4, 1)), 1)
    np.testing.assert_array_equal(machine.to_numpy(out.view((5, 4), (4, 1))), np.cumsum(x.T, 1))


def test_cumsum_of_many_pieces_sums_them_in_a_scan_of_their_own(machine, monkeypatch):
    monkeypatch.setattr(structural, "by_columns", lambda outer, n, inner: n == 1)
    x = random(RNG, (3 * structural.PIECE + 5,), "int64")
    out = machine.empty(x.shape, int64)
    machine.cumsum(machine.of(x), out, 0)
    assert len(machine.launched) == 3
    np.testing.assert_array_equal(machine.to_numpy(out), np.cumsum(x))


def test_cumsum_carries_infinities_and_nan_to_what_follows_alone(machine):
    x = np.ones(2 * structural.PIECE + 40, "f4")
    x[700], x[structural.PIECE + 9] = np.inf, np.nan
    out = machine.empty(x.shape, as_dtype("float32"))
    machine.cumsum(machine.of(x), out, 0)
    np.testing.assert_array_equal(machine.to_numpy(out), np.cumsum(x))


@pytest.mark.parametrize("is_max", [True, False])
@along
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_place_of_the_extreme_is_the_first_of_equals(machine, way, shape, axis, dtype, is_max):
    x = random(RNG, shape, dtype, 3)
    if x.dtype.kind == "f":
        x = np.round(x)  # so that equals are frequent
    out = machine.empty(tuple(np.delete(shape, axis).tolist()), int64)
    machine.arg_reduce(machine.of(x), out, axis, is_max)
    want = (np.argmax if is_max else np.argmin)(x, axis)
    np.testing.assert_array_equal(machine.to_numpy(out), want)


@both_ways
@pytest.mark.parametrize("is_max", [True, False])
@pytest.mark.parametrize("places", [(0,), (-1,), (3, -20), (-20, -19), (0, 1, -1), (1, 256)])
def test_place_of_the_extreme_is_the_first_nan(machine, way, places, is_max):
    x = random(RNG, (300 if way == "threads" else 5000,), "f4")  # a thread has each 256th
    x[list(places)] = np.nan
    x[[10, -40]] = np.inf, -np.inf
    out = machine.empty((), int64)
    machine.arg_reduce(machine.of(x), out, 0, is_max)
    assert machine.item(out) == places[0] % x.size


@pytest.mark.parametrize("n", [1, 255, 2048, 2049, 6000])
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool"])
def test_nonzero_finds_all_places_in_order(machine, n, dtype):
    for share in (0.0, 0.02, 0.5, 1.0):
        x = (RNG.random(n) < share).astype(dtype)
        if dtype == "float32" and n > 10:
            x[7] = np.nan
        found = machine.nonzero(machine.of(x))
        assert found.dtype is int64
        np.testing.assert_array_equal(machine.to_numpy(found), np.flatnonzero(x))


def test_blocks_read_and_write_neighbours(machine, monkeypatch):
    counts, run = Counts(), simt.launch
    monkeypatch.setattr(simt, "launch", lambda *given: run(*given[:5], False, counts))
    x = machine.of(random(RNG, (2 * structural.PIECE,), "f4"))
    machine.cumsum(x, machine.empty(x.shape, x.dtype), 0)
    machine.arg_reduce(x, machine.empty((), int64), 0, True)
    assert len(counts.accesses) > 10
    assert [x.site.text for x in counts.accesses if x.efficiency < 1] == []


def test_nonzero_of_a_transposed_array_counts_in_its_own_order(machine):
    x = random(RNG, (6, 7), "int64", 2)
    found = machine.nonzero(machine.of(x).view((7, 6), (1, 7)))
    np.testing.assert_array_equal(machine.to_numpy(found), np.flatnonzero(x.T))
