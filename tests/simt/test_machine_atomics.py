"""Atomic operations: old values in the order of the lanes, locks, histograms."""

import numpy as np
import pytest

from minigrad import simt
from tests.simt.programs import define

RNG = np.random.default_rng(2)


def launch(text, blocks, threads, *arguments, shared=0, **names):
    simt.launch(define(text, **names)["kernel"], blocks, threads, arguments, shared=shared)


OPERATIONS = {
    "add": lambda old, v: old + v,
    "sub": lambda old, v: old - v,
    "max": max,
    "min": min,
    "and_": lambda old, v: old & v,
    "or_": lambda old, v: old | v,
    "xor": lambda old, v: old ^ v,
    "exch": lambda old, v: v,
    "inc": lambda old, v: 0 if old >= v else old + 1,
    "dec": lambda old, v: v if old == 0 or old > v else old - 1,
}


CASES = [(name, dtype) for name in ("add", "sub", "max", "min") for dtype in ("int32", "float32")]
CASES += [("add", "float64"), ("sub", "uint32"), ("max", "int64"), ("min", "uint64")]
CASES += [(name, dtype) for name in ("and_", "or_", "xor", "exch") for dtype in ("int32", "uint64")]
CASES += [(name, dtype) for name in ("inc", "dec") for dtype in ("uint32", "uint64")]


@pytest.mark.parametrize(("name", "dtype"), CASES)
@pytest.mark.parametrize("cells", [1, 7, 60])
def test_atomics_give_old_values_in_order(name, dtype, cells):
    text = f"""
def kernel(where, v, cells, old):
    i = cuda.grid(1)
    if i % 5 != 2:
        old[i] = cuda.atomic.{name}(cells, where[i], v[i])
        cuda.atomic.{name}(cells, (where[i],), v[i])
"""
    n = 100
    where = RNG.integers(0, cells, n)
    v = (RNG.random(n) * 9).astype(dtype)
    mine, theirs = np.full(cells, 3, dtype), np.full(cells, 3, dtype)
    old, wanted = np.zeros(n, dtype), np.zeros(n, dtype)
    launch(text, 2, 50, where, v, mine, old)
    for twice in range(2):
        for i in range(n):
            if i % 5 != 2:
                found = theirs[where[i]]
                if not twice:
                    wanted[i] = found
                with np.errstate(over="ignore"):
                    theirs[where[i]] = OPERATIONS[name](found, v[i])
    assert (old == wanted).all()
    assert (mine == theirs).all()


def test_compare_and_swap():
    text = """
def kernel(slots, out):
    i = cuda.grid(1)
    k = i % 4
    while True:
        if cuda.atomic.cas(slots, k, -1, i) == -1:
            out[i] = k
            break
        k = (k + 1) % slots.size
"""
    slots, out = np.full(64, -1), np.zeros(64, np.int64)
    launch(text, 2, 32, slots, out)
    assert sorted(slots) == list(range(64))
    assert (slots[out] == np.arange(64)).all()


def test_a_lock_between_blocks():
    text = """
def kernel(lock, total):
    if cuda.threadIdx.x == 0:
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        total[0] = total[0] * 2 + 1
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)
"""
    total = np.zeros(1, np.int64)
    simt.launch(define(text)["kernel"], 5, 8, (np.zeros(1, np.int32), total))
    assert total[0] == 31


def test_locks_and_syncwarps_within_device_functions():
    """What orders accesses there orders those of the kernel: blocks run one by one, no alarm."""
    text = """
def take(lock):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass


def give(lock):
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


def meet():
    cuda.syncwarp()


def kernel(lock, total, out):
    part = cuda.shared.array(32, np.int64)
    t = cuda.threadIdx.x
    part[t] = cuda.grid(1)
    meet()
    out[cuda.grid(1)] = part[31 - t]
    if t == 0:
        take(lock)
        total[0] = total[0] * 2 + 1
        give(lock)
"""
    total, out = np.zeros(1, np.int64), np.zeros(160, np.int64)
    launch(text, 5, 32, np.zeros(1, np.int32), total, out)
    assert total[0] == 31
    assert (out.reshape(5, 32) == np.arange(160).reshape(5, 32)[:, ::-1]).all()


def test_shared_atomics_and_histogram():
    text = """
def kernel(x, out):
    bins = cuda.shared.array(8, np.int32)
    t = cuda.threadIdx.x
    if t < 8:
        bins[t] = 0
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, x[i], 1)
    cuda.syncthreads()
    if t < 8:
        cuda.atomic.add(out, t, bins[t])
"""
    x, out = RNG.integers(0, 8, 1000), np.zeros(8, np.int32)
    launch(text, 16, 64, x, out)
    assert (out == np.bincount(x, minlength=8)).all()


@pytest.mark.parametrize(
    ("name", "start", "wanted", "old"),
    [
        ("max", 0.0, 2.0, [0, 1, 1, 2]),  # a NaN that is given changes nothing
        ("min", 9.0, 0.5, [9, 1, 1, 1]),
        ("max", np.nan, np.nan, [np.nan] * 4),  # and one that is there stays
        ("min", np.nan, np.nan, [np.nan] * 4),
        ("nanmax", np.nan, 2.0, [np.nan, 1, 1, 2]),
        ("nanmin", np.nan, 0.5, [np.nan, 1, 1, 1]),
    ],
)
@pytest.mark.parametrize("copies", [1, 30])
def test_maxima_of_nan(name, start, wanted, old, copies):
    """As Numba's code for GPUs has it; `copies` of each value, for both ways to take turns."""
    text = f"""
def kernel(v, cells, old):
    i = cuda.grid(1)
    old[i] = cuda.atomic.{name}(cells, 0, v[i])
    cuda.atomic.{name}(cells, 1, v[i])
"""
    values = np.repeat(np.array([1, np.nan, 2, 0.5], np.float32), copies)
    cells, found = np.full(2, start, np.float32), np.zeros(4 * copies, np.float32)
    launch(text, 1, 4 * copies, values, cells, found)
    np.testing.assert_array_equal(cells, [wanted] * 2)
    np.testing.assert_array_equal(found[::copies], old)
