"""Kernels that are cut into ranges give what they give whole: every operation, forced to be cut."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices.cpu import programs, structural
from minigrad.devices.threads import threads
from tests.ops.cells import RANDOM, arranged, call, draw, public_ops, samples
from tests.ops.test_values import check

OPS = public_ops()


@pytest.fixture
def cut(monkeypatch):
    """Everything is cut into three ranges where there is enough to cut."""
    monkeypatch.setattr(programs, "SPLIT", 1)
    monkeypatch.setattr(structural, "SPLIT", 1)
    monkeypatch.setattr(threads, "count", 3)


@pytest.mark.parametrize("layout", ["contiguous", "transposed"])
@pytest.mark.parametrize("name", [n for n in OPS if n not in RANDOM])
def test_operation_cut_into_ranges_equals_numpy(name, layout, cut):
    op = OPS[name]
    every = samples(op)
    for shapes, attributes in every if layout == "contiguous" else every[:1]:
        arrays = draw(op, shapes, attributes, "float32")
        if arrays and arrays[0].ndim:
            check(op, arranged(arrays, layout), attributes)


@pytest.mark.parametrize("name", ["mul", "softmax_row", "layer_norm_row", "sum", "conv2d", "take"])
def test_gradients_cut_into_ranges_equal_whole_ones(name, request):
    op = OPS[name]
    shapes, attributes = samples(op)[0]
    arrays = draw(op, shapes, attributes, "float64")

    def run():
        inputs = [mg.variable(a, requires_grad=a.dtype.kind == "f") for a in arrays]
        y = call(op, inputs, attributes)
        y.backward(mg.variable(np.linspace(1.0, 2.0, y.size).reshape(y.shape)))
        return [x.grad.numpy() for x in inputs if x.requires_grad]

    whole = run()
    request.getfixturevalue("cut")
    for got, want in zip(run(), whole, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_big_operations_run_on_all_threads_and_equal_numpy():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 700, 600)).astype(np.float32)
    x, y = mg.variable(a), mg.variable(b)
    np.testing.assert_array_equal((x * y + x).numpy(), a * b + a)
    np.testing.assert_array_equal((x.T * y.T).numpy(), (a * b).T)
    np.testing.assert_array_equal(x[::2].argmax(1).numpy(), a[::2].argmax(1))
    index = rng.integers(0, 700, 1000)
    np.testing.assert_array_equal(x[index].numpy(), a[index])
    np.testing.assert_allclose(mg.sum(x, 0).numpy(), a.sum(0, dtype=float), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(mg.cumsum(x, 1).numpy(), a.cumsum(1, dtype=float), atol=1e-3)
    np.testing.assert_allclose(mg.softmax(x).numpy().sum(1), np.ones(700), rtol=1e-5)
