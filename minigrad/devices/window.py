"""Checks the sizes of windows that slide over the last two axes."""

import itertools
from typing import NamedTuple

from minigrad.arguments import short, shown, whole
from minigrad.errors import ArgumentError, ArgumentTypeError, ShapeError


class Window(NamedTuple):
    """Windows' size, stride, padding of the image, and dilation: (h, w) each."""

    kernel: tuple
    stride: tuple
    padding: tuple
    dilation: tuple

    def counts(self, size):
        """Return how many windows an image of a size has: (rows, columns)."""
        h, w = (
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(size, *self, strict=True)
        )
        return h, w

    def sizes(self, shape):
        """Return h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw for images of a shape."""
        return (*shape[2:], *self.counts(shape[2:]), *itertools.chain(*self))


def pair(name, what, value, least):
    """Return (h, w) from an int or two, each at least `least`."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(values) != 2:
        raise ArgumentTypeError(f"{name}: wanted an int or two for {what}", short(value))
    a, b = (whole(name, what, v, least) for v in values)
    if max(a, b) >= 2**62:  # kernels compute with int64
        raise ArgumentError(f"{name}: wanted {what} below 2^62", shown(max(a, b)))
    return a, b


def window_of(name, size, kernel, stride, padding, dilation):
    """Return a Window that fits into an image of a size at least once."""
    window = Window(
        pair(name, "kernel", kernel, 1),
        pair(name, "stride", stride, 1),
        pair(name, "padding", padding, 0),
        pair(name, "dilation", dilation, 1),
    )
    if min(window.counts(size)) < 1:
        raise ShapeError(
            f"{name}: wanted an image that holds a window of {window.kernel} at least once",
            f"{tuple(size)} with padding {window.padding} and dilation {window.dilation}",
        )
    return window
