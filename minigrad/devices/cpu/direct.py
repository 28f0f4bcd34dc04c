"""Convolves on the CPU without unfolding windows: when that pays off, and its scratch memory."""

import functools

from minigrad.formulas.sums import BLOCK

PIXELS, TILE = 1024, 16  # as in source/direct.py
PRODUCTS = 16  # products that take about as long as one element of other kernels
CHUNK = 1 << 15  # elements of images that correlate copies at once: they stay in cache


def up(count, to):
    """Round count up to a multiple of `to`."""
    return -(-count // to) * to


def correlation_scratch(shape, kernels, counts, dilation, images):
    """Return (scratch elements, vectors per plane, images at a time) of `correlate`."""
    (_, c, _, _), (o, _, kh, kw), (oh, ow), (dh, dw) = shape, kernels, counts, dilation
    hp, wp = oh + (kh - 1) * dh, ow + (kw - 1) * dw
    vectors = up(oh * wp, 8) // 8
    image = c * hp * wp + up(o, 4) * 8 * vectors
    step = max(1, min(images, CHUNK // max(1, image)))
    used = up(2 * c * kh * kw + step * image + 16 + wp + 16, 16)
    totals = 2 * o * c * kh * kw if images > BLOCK * step else 0
    return up(used + totals, 16), vectors, step


def convolution_scratch(kernels, counts, dilation):
    """Return the scratch elements of `convolve`."""
    (_, c, kh, kw), (oh, ow), (dh, dw) = kernels, counts, dilation
    hp, wp = oh + (kh - 1) * dh, ow + (kw - 1) * dw
    sums = 4 * (max(1, PIXELS // wp) * wp + TILE)
    return up(2 * c * kh * kw + c * hp * wp + TILE + wp + sums, 16)


def border(window):
    """Return the window for computing the image gradient by `convolve` with turned kernels."""
    sizes = zip(window.kernel, window.padding, window.dilation, strict=True)
    return window._replace(padding=tuple(d * (k - 1) - p for k, p, d in sizes))


def turned(shape, strides, offset):
    """Return the layout of kernels (o, c, kh, kw) as (c, o, kh, kw), flipped on both axes."""
    (o, c, kh, kw), (a, b, s, t) = shape, strides
    return (c, o, kh, kw), (b, a, -s, -t), offset + (kh - 1) * s + (kw - 1) * t


@functools.lru_cache(maxsize=1024)
def pays(what, dtype, shape, kernels, window):
    """Return whether this is no slower than products of unfolded windows, as measured.

    It computes more than needed: lines are kw - 1 longer, channels come in fours, kernel places in
    threes. With few channels o, unfolding is slow compared to the products. Measured on one
    processor.
    """
    (n, c, h, width), (o, of_w, kh, kw) = shape, kernels
    (ph, pw), (dh, dw) = window.padding, window.dilation
    fits = ph <= dh * (kh - 1) and pw <= dw * (kw - 1)
    if not fits or c != of_w or window.stride != (1, 1) or dtype.name != "float32":
        return False
    if not min(n, c, o):
        return False
    oh, ow = window.counts(shape[2:])
    if what == "input":
        products = up(c, 4) / c * h * (width + (kw - 1) * dw) / (oh * ow)
    else:
        products = up(o, 4) / o * (ow + (kw - 1) * dw) / ow
    if what == "kernels":
        _, vectors, step = correlation_scratch(shape, kernels, (oh, ow), (dh, dw), n)
        to_add = 10 / (vectors * step)  # to add the lanes at the end
        products *= up(c * kh * kw, 3) / (c * kh * kw) * (1 + to_add)
    return products < 1.25 + 9 / o
