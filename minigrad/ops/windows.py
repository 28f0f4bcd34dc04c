"""Unfolds windows to columns, and pools over them."""

import math

from minigrad.array.dtypes import int64
from minigrad.devices.backend import device_of
from minigrad.devices.window import Window, window_of
from minigrad.errors import ArgumentError, ShapeError
from minigrad.formulas.expression import call
from minigrad.ops.base import Structural
from minigrad.ops.indexing import Take
from minigrad.ops.operands import as_variable, check_floats

THREE = Window((3, 2), (2, 1), (1, 0), (1, 2))
TWO = Window((2, 2), (2, 2), (0, 0), (1, 1))


class Unfold(Structural):
    """Makes a column of each window, with 0 outside the image.

    (b, c, h, w), window -> (b, c * kh * kw, oh * ow).
    """

    samples = [((2, 2, 5, 4), THREE), ((1, 1, 4, 4), TWO)]

    def forward(x, window):
        return unfolded(x, window)

    gradients = (lambda dy, x_shape, window: Fold.apply(dy, x_shape, window),)


class Fold(Structural):
    """Adds columns at the positions that Unfold reads: the adjoint of Unfold.

    (b, c * kh * kw, oh * ow), shape, window -> shape.
    """

    samples = [((2, 12, 6), (2, 2, 5, 4), THREE), ((1, 4, 4), (1, 1, 4, 4), TWO)]

    def forward(x, shape, window):
        device = device_of(x)
        out = device.empty(shape, x.dtype)
        device.fold(device.contiguous(x), out, window)
        return out

    gradients = (lambda dy, window: Unfold.apply(dy, window),)


def unfolded(x, window):
    """Returns the windows of an Array as columns, one image after another."""
    device = device_of(x)
    n, c, h, w = x.shape
    shape = (n, c * math.prod(window.kernel), math.prod(window.counts((h, w))))
    out = device.empty(shape, x.dtype)
    if out.size:
        device.unfold(device.contiguous(x), out, window)
    return out


class Largest(Structural):
    """The index into flattened x of the first largest element of each window; NaN is largest.

    (b, c, h, w), window -> (b, c, oh, ow) int64.
    """

    samples = [((2, 2, 5, 4), THREE), ((1, 1, 4, 4), TWO)]
    gradients = None

    def forward(x, window):
        device = device_of(x)
        out = device.empty((*x.shape[:2], *window.counts(x.shape[2:])), int64)
        if out.size:
            device.largest(device.contiguous(x), out, window)
        return out


def _pooled(name, x, kernel, stride, padding):
    """Checks the arguments of a pooling; returns (x, window)."""
    x = as_variable(x, name)
    if x.ndim != 4:
        raise ShapeError(f"{name}: wanted images (b, c, h, w)", f"{x.shape}")
    check_floats(name, x)
    window = window_of(name, x.shape[2:], kernel, kernel if stride is None else stride, padding, 1)
    if any(2 * p > k for p, k in zip(window.padding, window.kernel, strict=True)):
        raise ArgumentError(
            f"{name}: wanted a padding of at most half the kernel, {window.kernel}",
            f"{window.padding}",
        )
    return x, window


def max_pool2d(x, kernel, stride=None, padding=0):
    """Takes the largest element of each window, ignoring the padding.

    (b, c, h, w) -> (b, c, oh, ow).

    The gradient goes to the first largest element. NaN counts as the largest. stride defaults to
    the kernel's size. kernel, stride and padding are each an int or (h, w);
    oh = (h + 2 padding - kernel) // stride + 1.

    >>> import minigrad as mg
    >>> mg.max_pool2d(mg.arange(16).to("float32").reshape(1, 1, 4, 4), 2).tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """
    x, window = _pooled("max_pool2d", x, kernel, stride, padding)
    places = Largest.apply(x.detach(), window)
    return Take.apply(x, places, None)


def avg_pool2d(x, kernel, stride=None, padding=0):
    """Takes the mean of each window, zeros of the padding included.

    (b, c, h, w) -> (b, c, oh, ow). The arguments are those of max_pool2d.
    """
    x, window = _pooled("avg_pool2d", x, kernel, stride, padding)
    b, c, h, w = x.shape
    columns = Unfold.apply(call("reshape", x, (b * c, 1, h, w)), window)
    return call("reshape", call("mean", columns, 1, False), (b, c, *window.counts((h, w))))


functions = (max_pool2d, avg_pool2d)
