"""Products of operands with gaps between their matrices, or that begin between vectors of four."""

import numpy as np
import pytest

from minigrad.array.dtypes import as_dtype
from minigrad.devices.gpu.product import matmul_plan
from minigrad.devices.gpu.product.matmul_plan import ProductPlan
from minigrad.devices.gpu.product.matmul_text import ProductTile
from tests.devices.gpu.machine import Machine, random
from tests.devices.gpu.products import RNG, close

TINY = ProductTile(16, 32, 8, 4, 4)


@pytest.fixture
def machine():
    matmul_plan.calls.cache_clear()
    yield Machine()
    matmul_plan.calls.cache_clear()  # what a test has changed must not stay


def gapped(machine, x, gaps):
    """An Array of x's elements, matrices in C order; gaps: elements after each of a batch axis."""
    step, strides = x.shape[-2] * x.shape[-1], [x.shape[-1], 1]
    for n, gap in zip(reversed(x.shape[:-2]), reversed(gaps), strict=True):
        strides.insert(0, step + gap)
        step = n * strides[0]
    flat = np.full(step, np.nan, x.dtype)
    np.lib.stride_tricks.as_strided(flat, x.shape, [s * x.itemsize for s in strides])[...] = x
    return machine.from_numpy(flat, as_dtype(x.dtype)).view(x.shape, tuple(strides))


@pytest.mark.parametrize("where", ["a", "b", "out"])
@pytest.mark.parametrize("gaps", [(1, 0, 0), (0, 1, 0), (1, 8, 4), (4, 8, 4)], ids=str)
def test_three_axes_of_batches_with_gaps(machine, where, gaps):
    """Some are several launches, which begin anywhere; vectors are read where all allow it."""
    shape = (2, 3, 2)
    a, b = random(RNG, (*shape, 4, 8), "f4"), random(RNG, (*shape, 8, 12), "f4")
    want = a @ b
    given = {"a": a, "b": b, "out": np.zeros_like(want)}
    arrays = {n: gapped(machine, x, gaps if n == where else (0,) * 3) for n, x in given.items()}
    machine.matmul(arrays["a"], arrays["b"], arrays["out"])
    close(machine.to_numpy(arrays["out"]), want)


@pytest.mark.parametrize("where", ["a", "b"])
@pytest.mark.parametrize("gap", [1, 4])
def test_sums_over_a_batch_with_gaps(machine, where, gap):
    a, b = random(RNG, (3, 4, 8), "f4"), random(RNG, (3, 8, 12), "f4")
    x, y = (gapped(machine, v, (gap if where == n else 0,)) for n, v in (("a", a), ("b", b)))
    out = machine.zeros((4, 12), "f4")
    machine.matmul(x, y, out.view((3, 4, 12), (0, 12, 1)), None, True)
    close(machine.to_numpy(out), (a @ b).sum(0))


@pytest.mark.parametrize("gaps", [(5, 0), (4, 8)])
def test_pieces_of_k_are_added_where_matrices_have_gaps(machine, monkeypatch, gaps):
    monkeypatch.setattr(matmul_plan, "plan", lambda *_: ProductPlan(TINY, False, 3, 2))
    a, b = random(RNG, (2, 3, 4, 44), "f4"), random(RNG, (2, 3, 44, 12), "f4")
    out = gapped(machine, np.zeros((2, 3, 4, 12), "f4"), gaps)
    machine.matmul(machine.of(a), machine.of(b), out)
    assert len(machine.launched) == 2
    close(machine.to_numpy(out), a @ b)


def test_one_matrix_for_a_batch_with_gaps(machine):
    a, b = random(RNG, (3, 4, 8), "f4"), random(RNG, (8, 5), "f4")
    out = gapped(machine, np.zeros((3, 4, 5), "f4"), (10,))
    machine.matmul(machine.of(a), machine.of(b), out)
    close(machine.to_numpy(out), a @ b)


def test_a_bias_that_begins_between_vectors(machine):
    a, b, bias = random(RNG, (4, 8), "f4"), random(RNG, (8, 12), "f4"), random(RNG, (13,), "f4")
    out = machine.empty((4, 12), as_dtype("float32"))
    machine.matmul(machine.of(a), machine.of(b), out, machine.of(bias).view((12,), (1,), 1))
    close(machine.to_numpy(out), a @ b + bias[1:])
