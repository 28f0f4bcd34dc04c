"""The kernels of windows and of convolution against plain loops: widths that fill no vector."""

import gc
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad.array.array import ndarray
from minigrad.array.dtypes import float32, float64, int64
from minigrad.devices.backend import device_named
from minigrad.devices.cpu import structural
from minigrad.devices.threads import threads
from minigrad.devices.window import Window

CPU: Any = device_named("cpu")
DTYPES = {"float32": float32, "float64": float64}


def first_largest(x, window):
    """Where in the flattened x each window's first largest element lies."""
    (kh, kw), (sh, sw), _, _ = window
    n, c, h, w = x.shape
    oh, ow = window.counts((h, w))
    out = np.empty((n, c, oh, ow), np.int64)
    for index in np.ndindex(*out.shape):
        a, b, i, j = index
        inside = x[a, b, i * sh : i * sh + kh, j * sw : j * sw + kw]
        ki, kj = divmod(int(inside.argmax()), kw)  # NaN counts as largest, also for NumPy
        out[index] = ((a * c + b) * h + i * sh + ki) * w + j * sw + kj
    return out


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("width", [2, 3, 8, 9, 18, 35])
@pytest.mark.parametrize("stride", [(2, 2), (1, 1), (3, 2), (2, 3)])
def test_largest_of_pairs_is_the_first_of_equals_and_nan(name, width, stride):
    rng = np.random.default_rng(width)
    x = rng.integers(-2, 3, (2, 3, 6, width)).astype(name)  # many ties
    x[rng.random(x.shape) < 0.1] = np.nan
    x[rng.random(x.shape) < 0.1] = -np.inf
    x[0, 0, :2, :2] = [[-0.0, 0.0], [0.0, -0.0]]
    window = Window((2, 2), stride, (0, 0), (1, 1))
    out = CPU.empty((2, 3, *window.counts(x.shape[2:])), int64)
    CPU.largest(CPU.from_numpy(x, DTYPES[name]), out, window)
    np.testing.assert_array_equal(ndarray(out), first_largest(x, window))


# -- convolution without unfolding -----------------------------------------------------------------

SHAPES = [  # images (n, c, h, w), kernels (o, kh, kw), padding, dilation
    ((2, 1, 5, 7), (1, 3, 3), (1, 1), (1, 1)),
    ((3, 5, 9, 8), (7, 3, 3), (0, 1), (1, 1)),
    ((2, 3, 6, 6), (4, 1, 1), (0, 0), (1, 1)),
    ((1, 2, 9, 11), (5, 2, 3), (1, 0), (2, 3)),
    ((5, 4, 4, 3), (9, 4, 3), (3, 2), (1, 1)),
    ((2, 3, 40, 70), (6, 5, 5), (2, 2), (1, 1)),  # more than one band of lines
    ((2, 2, 3, 1500), (3, 2, 2), (1, 1), (1, 1)),  # a line longer than a band
    ((1, 40, 1, 1), (3, 1, 1), (0, 0), (1, 1)),
]


def plain(x, w, bias, window):
    """Cross-correlation in float64, one place of the kernels after the other."""
    (ph, pw), (dh, dw) = window.padding, window.dilation
    wide = np.pad(x.astype("f8"), ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    oh, ow = window.counts(x.shape[2:])
    out = np.zeros((x.shape[0], w.shape[0], oh, ow)) + bias[:, None, None]
    for i, j in np.ndindex(*w.shape[2:]):
        seen = wide[:, :, i * dh : i * dh + oh, j * dw : j * dw + ow]
        out += np.einsum("oc,nchw->nohw", w[:, :, i, j].astype("f8"), seen)
    return out


def drawn(case, seed=0):
    (n, c, h, width), (o, kh, kw), padding, dilation = case
    rng = np.random.default_rng(seed)
    window = Window((kh, kw), (1, 1), padding, dilation)
    x, w = rng.normal(size=(n, c, h, width)), rng.normal(size=(o, c, kh, kw))
    g = rng.normal(size=(n, o, *window.counts((h, width))))
    return window, *(a.astype("f4") for a in (x, w, rng.normal(size=o), g))


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * max(1.0, abs(want).max()))


@pytest.fixture(params=[1, 3])
def cut(request, monkeypatch):
    """Whole, or in three ranges of images."""
    count = request.param
    monkeypatch.setattr(threads, "count", count)
    if count > 1:
        monkeypatch.setattr(structural, "SPLIT", 1)


@pytest.mark.parametrize("case", SHAPES)
def test_direct_convolution_equals_plain_loops(case, cut):
    window, x, w, bias, g = drawn(case)
    arrays = [CPU.from_numpy(a, float32) for a in (x, w, bias, g)]
    with mg.memory.poison():  # what it reads beyond its data must not reach a result
        out = CPU.empty(g.shape, float32)
        CPU.convolve(arrays[0], arrays[1], arrays[2], out, window)
    close(ndarray(out), plain(x, w, bias, window))


@pytest.mark.parametrize("case", SHAPES)
def test_gradients_of_direct_convolution_are_its_adjoints(case, cut):
    window, x, w, bias, g = drawn(case, 1)
    data, kernels, _, rising = (CPU.from_numpy(a, float32) for a in (x, w, bias, g))
    with mg.memory.poison():
        back, of_kernels = CPU.empty(x.shape, float32), CPU.empty(w.shape, float32)
        CPU.convolve_back(rising, kernels, back, window)
        CPU.correlate(rising, data, of_kernels, window)
    zero, wide = np.zeros(len(bias)), g.astype("f8")
    for k, place in enumerate(np.ndindex(*x.shape)):
        if k % max(1, x.size // 60) == 0:
            one = np.zeros(x.shape)
            one[place] = 1.0
            want = (plain(one, w, zero, window) * wide).sum()
            assert abs(ndarray(back)[place] - want) < 1e-4 * max(1.0, abs(want))
    for k, place in enumerate(np.ndindex(*w.shape)):
        if k % max(1, w.size // 60) == 0:
            one = np.zeros(w.shape)
            one[place] = 1.0
            want = (plain(x, one, zero, window) * wide).sum()
            assert abs(ndarray(of_kernels)[place] - want) < 2e-5 * np.abs(wide).sum()


@pytest.mark.parametrize(
    ("shape", "kernels", "window", "name"),
    [
        ((2, 4, 8, 8), (4, 4, 3, 3), Window((3, 3), (2, 2), (1, 1), (1, 1)), "float32"),
        ((2, 4, 8, 8), (4, 2, 3, 3), Window((3, 3), (1, 1), (1, 1), (1, 1)), "float32"),
        ((2, 4, 8, 8), (4, 4, 3, 3), Window((3, 3), (1, 1), (3, 0), (1, 1)), "float32"),
        ((2, 4, 8, 8), (4, 4, 3, 3), Window((3, 3), (1, 1), (1, 1), (1, 1)), "float64"),
        ((0, 4, 8, 8), (4, 4, 3, 3), Window((3, 3), (1, 1), (1, 1), (1, 1)), "float32"),
        ((8, 256, 7, 7), (256, 256, 3, 3), Window((3, 3), (1, 1), (1, 1), (1, 1)), "float32"),
    ],
)
def test_convolution_that_is_unfolded(shape, kernels, window, name):
    for what in ("output", "input", "kernels"):
        assert not CPU.convolves(what, DTYPES[name], shape, kernels, window)


def test_convolution_with_few_channels_is_direct():
    window = Window((3, 3), (1, 1), (1, 1), (1, 1))
    for shape, kernels in (((32, 8, 14, 14), (16, 8, 3, 3)), ((32, 16, 28, 28), (32, 16, 3, 3))):
        for what in ("output", "input", "kernels"):
            assert CPU.convolves(what, float32, shape, kernels, window)


def test_step_of_a_convolution_holds_little_beside_its_results():
    gc.collect()  # what earlier tests left must not go away in between
    x = mg.variable(np.ones((8, 8, 28, 28), "f4"), requires_grad=True)
    w = mg.variable(np.ones((16, 8, 3, 3), "f4"), requires_grad=True)
    mg.memory.reset_peak()
    before = mg.memory.stats()["current_bytes"]
    y = mg.conv2d(x, w, padding=1)
    y.backward(mg.ones(y.shape))
    extra = mg.memory.stats()["peak_bytes"] - before - 2 * y.array.nbytes - x.array.nbytes
    assert extra < x.array.nbytes * 3  # unfolded windows would be nine times x
