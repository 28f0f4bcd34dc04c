"""Every operation on devices other than the CPU: values, and gradients of both orders."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices.backend import device_named
from tests.ops.cells import RANDOM, arranged, device_cells, draw, public_ops, samples
from tests.ops.test_gradients import DIFFERENTIABLE, problem
from tests.ops.test_values import check

DEVICES = ["numpy", "simt"]
OPS = public_ops()
RUN = [cell for cell, reason in device_cells() if reason is None]


@pytest.fixture(autouse=True)
def watched(monkeypatch):
    """The simulator looks for data races and the like in all that runs."""
    monkeypatch.setattr(device_named("simt"), "watch", True)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("cell", RUN, ids="-".join)
def test_operation_equals_numpy(cell, device):
    op = OPS[cell.op]
    shapes, attributes = samples(op)[0]
    arrays = draw(op, shapes, attributes, cell.dtype)
    check(op, arranged(arrays, cell.layout, device), attributes)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", sorted({cell.op for cell in RUN}))
def test_operation_on_every_sample_equals_numpy(name, device):
    op = OPS[name]
    for shapes, attributes in samples(op)[1:]:
        arrays = draw(op, shapes, attributes, "float32")
        check(op, arranged(arrays, "contiguous", device), attributes)


def leaf(values, dtype, device, needs):
    """A leaf with values in a dtype, if they are floats."""
    values = values.astype(dtype) if values.dtype.kind == "f" else values
    return mg.variable(values, device=device, requires_grad=needs)


def gradients(function, arrays, needs, dy, weights, dtype, device):
    """(first, second): gradients of <function, dy>, and of <those, weights>, on the host."""

    def host(g, place=device):
        if g is None:
            return None
        assert g.device == place
        return g.detach().to("cpu").numpy().astype(np.float64)

    inputs = [leaf(a, dtype, device, n) for a, n in zip(arrays, needs, strict=True)]
    y = function(*inputs)
    y.backward(leaf(dy, y.dtype.name, y.device, False))
    first = [host(x.grad) for x in inputs]
    inputs = [leaf(a, dtype, device, n) for a, n in zip(arrays, needs, strict=True)]
    upstream = leaf(dy, y.dtype.name, y.device, True)
    function(*inputs).backward(upstream, create_graph=True)
    terms = [
        mg.sum(x.grad * leaf(w, dtype, device, False))
        for x, w in zip(inputs, weights, strict=True)
        if w is not None and x.grad.requires_grad
    ]
    again = [host(x.grad) for x in inputs]
    for x in inputs:
        x.grad = None
    if terms:
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        total.backward()
    return first, again, [*(host(x.grad) for x in inputs), host(upstream.grad, y.device)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_equal_those_of_the_cpu_in_float64(name, device):
    function, arrays, needs, rng = problem(name)
    arrays = [a.astype(np.float32) if a.dtype.kind == "f" else a for a in arrays]
    with mg.no_grad():
        shape = function(*map(mg.variable, arrays)).shape
    dy = rng.standard_normal(shape)
    weights = [
        rng.standard_normal(a.shape) if n else None for a, n in zip(arrays, needs, strict=True)
    ]
    given = (function, arrays, needs, dy.astype(np.float32), weights)
    want = gradients(*given, "float32" if name in RANDOM else "float64", "cpu")
    got = gradients(*given, "float32", device)
    for w, g in zip(want, got, strict=True):
        for a, b in zip(w, g, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                scale = max(1.0, float(np.abs(a).max(initial=0.0)))
                np.testing.assert_allclose(b, a, rtol=1e-4, atol=2e-5 * scale)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["rand", "randn", "randint", "randperm", "dropout"])
def test_random_numbers_are_those_of_the_cpu(kind, device):
    def drawn(place):
        mg.manual_seed(5)
        if kind == "randint":
            return mg.randint(-3, 40, (70,), device=place)
        if kind == "randperm":
            return mg.randperm(20, device=place)
        if kind == "dropout":
            return mg.dropout(mg.ones((9, 9), device=place), 0.3)
        return getattr(mg, kind)((7, 11), device=place)

    here, there = drawn("cpu"), drawn(device)
    assert there.device == device
    rounding = {"rtol": 2e-6, "atol": 1e-7} if kind == "randn" else {"rtol": 0, "atol": 0}
    np.testing.assert_allclose(there.to("cpu").numpy(), here.numpy(), **rounding)
