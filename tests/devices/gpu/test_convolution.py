"""Convolutions on the simulated GPU, with windows read from the images, equal NumPy's sums."""

import itertools

import numpy as np
import pytest

from minigrad.array.dtypes import as_dtype
from minigrad.devices.gpu.product import matmul_plan
from minigrad.devices.window import Window
from tests.devices.gpu.machine import Machine, random

RNG = np.random.default_rng(5)
WINDOWS = {
    "one": Window((1, 1), (1, 1), (0, 0), (1, 1)),
    "same size": Window((3, 3), (1, 1), (1, 1), (1, 1)),
    "strides": Window((3, 2), (2, 3), (1, 0), (1, 1)),
    "dilated": Window((2, 3), (1, 1), (1, 2), (3, 2)),
    "border": Window((2, 2), (1, 1), (3, 2), (1, 1)),
}
SIZES = [(2, 3, 7, 6, 4), (1, 1, 5, 9, 1), (3, 5, 4, 4, 70)]  # images, c, h, w, o
cases = pytest.mark.parametrize(("size", "name"), list(itertools.product(SIZES, WINDOWS)), ids=str)


@pytest.fixture
def machine():
    return Machine()


def windows_of(x, window):
    """(n, c, kh, kw, oh, ow): the elements of x's windows, 0 where they overhang."""
    (n, c), (oh, ow), (kh, kw) = x.shape[:2], window.counts(x.shape[2:]), window.kernel
    (sh, sw), (ph, pw), (dh, dw) = window.stride, window.padding, window.dilation
    wide = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    out = np.zeros((n, c, kh, kw, oh, ow), x.dtype)
    for i, j in np.ndindex(kh, kw):
        part = wide[:, :, i * dh :, j * dw :][:, :, ::sh, ::sw]
        out[:, :, i, j] = part[:, :, :oh, :ow]
    return out


def case(size, name):
    n, c, h, w, o = size
    window = WINDOWS[name]
    x, k = random(RNG, (n, c, h, w), "f4"), random(RNG, (o, c, *window.kernel), "f4")
    return window, x, k, random(RNG, (n, o, *window.counts((h, w))), "f4")


@cases
@pytest.mark.parametrize("has_bias", [False, True])
def test_convolve(machine, size, name, has_bias):
    window, x, k, y = case(size, name)
    bias = random(RNG, (size[-1],), "f4")
    assert machine.convolves("output", as_dtype("float32"), x.shape, k.shape, window)
    out = machine.empty(y.shape, as_dtype("float32"))
    machine.convolve(
        machine.of(x), machine.of(k), machine.of(bias) if has_bias else None, out, window
    )
    want = np.einsum("ncijpq,ocij->nopq", windows_of(x, window), k)
    want += bias[:, None, None] * has_bias
    np.testing.assert_allclose(machine.to_numpy(out), want, 1e-4, 1e-4)


@cases
def test_gradient_of_images(machine, size, name):
    window, x, k, g = case(size, name)
    is_there = machine.convolves("input", as_dtype("float32"), x.shape, k.shape, window)
    assert is_there == (name != "strides")
    if not is_there:
        return
    out = machine.empty(x.shape, as_dtype("float32"))
    machine.convolve_back(machine.of(g), machine.of(k), out, window)
    # <y(x), g> is linear in x: its gradient times any d is <y(d), g>
    d = random(RNG, x.shape, "f4")
    moved = np.einsum("ncijpq,ocij,nopq->n", windows_of(d, window), k, g, optimize=True)
    np.testing.assert_allclose((machine.to_numpy(out) * d).sum((1, 2, 3)), moved, 1e-3, 1e-3)


@cases
@pytest.mark.parametrize("pieces", [1, 3])
def test_gradient_of_kernels(machine, monkeypatch, size, name, pieces):
    window, x, k, g = case(size, name)
    monkeypatch.setattr(matmul_plan, "LEAST", 10**9 if pieces == 1 else 1)
    monkeypatch.setattr(matmul_plan, "BUSY", 10 * pieces)
    out = machine.empty(k.shape, as_dtype("float32"))
    machine.correlate(machine.of(g), machine.of(x), out, window)
    want = np.einsum("ncijpq,nopq->ocij", windows_of(x, window), g, optimize=True)
    np.testing.assert_allclose(machine.to_numpy(out), want, 1e-4, 1e-4)


def test_results_that_begin_between_vectors(machine):
    window, x, k, g = case((2, 3, 4, 4, 4), "same size")
    whole = machine.zeros((g.size + 1,), "f4")
    out = whole.view(g.shape, machine.of(g).strides, 1)
    machine.convolve(machine.of(x), machine.of(k), None, out, window)
    want = np.einsum("ncijpq,ocij->nopq", windows_of(x, window), k)
    np.testing.assert_allclose(machine.to_numpy(out), want, 1e-4, 1e-4)
    k = random(RNG, (4, 4, 3, 3), "f4")  # 36 columns
    x = random(RNG, (2, 4, 4, 4), "f4")
    out = machine.zeros((k.size + 1,), "f4").view(k.shape, machine.of(k).strides, 1)
    machine.correlate(machine.of(g), machine.of(x), out, window)
    want = np.einsum("ncijpq,nopq->ocij", windows_of(x, window), g)
    np.testing.assert_allclose(machine.to_numpy(out), want, 1e-4, 1e-4)


def test_what_it_does_not_convolve(machine):
    window, shape, kernels = WINDOWS["same size"], (2, 4, 5, 5), (6, 4, 3, 3)
    f4 = as_dtype("float32")
    assert machine.convolves("output", f4, shape, kernels, window)
    assert not machine.convolves("output", f4, shape, (6, 2, 3, 3), window), "two groups"
    assert not machine.convolves("output", as_dtype("float64"), shape, kernels, window)
    assert not machine.convolves("output", f4, (0, *shape[1:]), kernels, window)


def test_infinities_beside_a_window_do_not_reach_it(machine):
    window, x, k, y = case((1, 1, 5, 9, 1), "same size")
    x[0, 0, 0, 8] = np.inf  # the end of a line: what follows in memory is the next line's window
    out = machine.empty(y.shape, as_dtype("float32"))
    machine.convolve(machine.of(x), machine.of(k), None, out, window)
    with np.errstate(invalid="ignore"):
        want = np.einsum("ncijpq,ocij->nopq", windows_of(x, window), k)
    np.testing.assert_allclose(machine.to_numpy(out), want, 1e-4, 1e-4)


def test_infinities_below_the_last_pixel_do_not_reach_gradients_of_kernels(machine):
    window, x, _, _ = case((2, 1, 5, 7, 1), "one")
    window = window._replace(kernel=(3, 3))  # 3 x 5 pixels, which one step exceeds
    x[:, :, -1] = np.inf
    g = random(RNG, (2, 1, 3, 5), "f4")
    out = machine.empty((1, 1, 3, 3), as_dtype("float32"))
    machine.correlate(machine.of(g), machine.of(x), out, window)
    with np.errstate(invalid="ignore"):
        want = np.einsum("ncijpq,nopq->ocij", windows_of(x, window), g)
    assert np.isfinite(want[:, :, :2]).all()
    np.testing.assert_allclose(machine.to_numpy(out), want, 1e-4, 1e-4)


def test_many_images_are_several_launches(machine, monkeypatch):
    from minigrad.devices.gpu.product import convolution

    monkeypatch.setattr(convolution, "MOST_IMAGES", 2)
    window, x, k, y = case((5, 2, 4, 4, 3), "same size")
    out = machine.empty(y.shape, as_dtype("float32"))
    machine.convolve(machine.of(x), machine.of(k), None, out, window)
    assert len(machine.launched) == 3
    want = np.einsum("ncijpq,ocij->nopq", windows_of(x, window), k)
    np.testing.assert_allclose(machine.to_numpy(out), want, 1e-4, 1e-4)
