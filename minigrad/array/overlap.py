"""Decides whether two layouts over one memory share an element, and two Arrays a byte.

A layout is (shape, strides, offset), counted in elements. Nearly every layout is *dense*: it covers
an interval of memory without gaps, as whole arrays, slices of a flat buffer and transposes do. Two
dense layouts are compared as intervals. For other layouts, axes of equal stride are split off. If
at most two axes are left, their arithmetic progressions are compared in pairs.
"""

import math
from functools import lru_cache

from minigrad.array.layout import is_contiguous, size_of

MOST_PAIRS = 1 << 16  # pairs of progressions; comparing them takes a tenth of a second


def overlaps(a, b):
    """Returns whether two layouts over one memory share an element. False is certain.

    True is exact up to two axes, not counting axes of size 1 or stride 0. With more axes, or more
    than MOST_PAIRS pairs to compare, it may be True for disjoint layouts.

    >>> rows, columns = ((4, 2), (8, 1), 0), ((4, 2), (8, 1), 2)
    >>> overlaps(rows, columns), overlaps(rows, ((4, 3), (8, 1), 1))
    (False, True)
    """
    low, high, is_dense = span(a[0], a[1])
    start, stop, is_dense_too = span(b[0], b[1])
    shift = b[2] - a[2]
    if low >= stop + shift or start + shift >= high or low == high or start == stop:
        return False
    return (is_dense and is_dense_too) or _meet(a[0], a[1], b[0], b[1], shift)


def shares_bytes(a, b):
    """Returns whether two Arrays share a byte. False is certain, True is almost always exact.

    Copy-on-write clones share all bytes until the first write. Several Buffers may cover the same
    foreign memory.
    """
    mine, its = a.buffer, b.buffer
    if not a.size or not b.size:
        return False
    if mine is its:
        distance = 0
    elif mine.is_foreign and its.is_foreign and a.device == b.device:
        distance = its.address - mine.address
    else:
        return False
    step, shape, strides, offset = a.dtype.itemsize, *b.layout()
    if step == b.dtype.itemsize and distance % step == 0:
        return overlaps(a.layout(), (shape, strides, offset + distance // step))
    (low, high), (start, stop) = a.bytes_shown(), b.bytes_shown()
    return mine is its or (low < stop and start < high)


@lru_cache(maxsize=1 << 14)
def span(shape, strides):
    """Returns (low, high, dense) for a layout with offset 0: its elements lie in [low, high).

    dense: whether they fill the interval without gaps.

    >>> span((2, 3), (1, 2)), span((2, 3), (6, 2)), span((4,), (-1,))
    ((0, 6, True), (0, 11, False), (-3, 1, True))
    """
    size = size_of(shape)
    if not size:
        return 0, 0, True
    if is_contiguous(shape, strides):
        return 0, size, True
    axes, low = _upward(shape, strides, 0)
    step = 1
    for n, s in reversed(axes):
        if s > step:  # a gap
            return low, low + _reach(axes) + 1, False
        step = max(step, s * (n - 1) + step)
    return low, low + step, step == _reach(axes) + 1


@lru_cache(maxsize=1 << 14)
def _meet(shape_a, strides_a, shape_b, strides_b, shift):
    a, b = _upward(shape_a, strides_a, 0), _upward(shape_b, strides_b, shift)
    if _apart(*a, *b):
        return False
    (axes_a, first_a), (axes_b, first_b) = (_merged(*a), _merged(*b))
    step = math.gcd(*(s for _, s in (*axes_a, *axes_b)))
    if (first_a - first_b) % step:
        return False
    if len(axes_a) > 2 or len(axes_b) > 2 or _lines(axes_a) * _lines(axes_b) > MOST_PAIRS:
        return True
    return any(
        _progressions_meet(p, q)
        for p in _progressions(axes_a, first_a)
        for q in _progressions(axes_b, first_b, p)
    )


def _upward(shape, strides, offset):
    """Returns ([(size, positive stride)], first offset) without axes of one element.

    The axes are in descending order of strides.
    """
    axes = []
    for n, s in zip(shape, strides, strict=True):
        if n > 1 and s:
            offset += min(0, (n - 1) * s)
            axes.append((n, abs(s)))
    axes.sort(key=lambda axis: -axis[1])
    return axes, offset


def _reach(axes):
    """Returns the distance from the first element to the last."""
    return sum((n - 1) * s for n, s in axes)


def _apart(axes_a, a, axes_b, b):
    """Returns whether two layouts are certainly disjoint, by offsets modulo the widest strides."""
    if a + _reach(axes_a) < b or b + _reach(axes_b) < a:
        return True
    if not axes_a and not axes_b:
        return a != b
    widest = max(x[0][1] for x in (axes_a, axes_b) if x)
    rest_a, rest_b = ([x for x in axes if x[1] != widest] for axes in (axes_a, axes_b))
    low_a, low_b = a % widest, b % widest
    if low_a + _reach(rest_a) >= widest or low_b + _reach(rest_b) >= widest:
        return False  # a row extends into the next one: this test cannot decide
    return _apart(rest_a, low_a, rest_b, low_b)


def _merged(axes, first):
    """Merges axes where possible; returns (axes, first), with at least one axis."""
    merged = []
    for n, s in axes:
        if merged and merged[-1][1] == n * s:
            merged[-1] = merged[-1][0] * n, s
        else:
            merged.append((n, s))
    return merged or [(1, 1)], first


def _lines(axes):
    """Returns the largest number of progressions that `_progressions` can return."""
    return min(n for n, _ in axes) if len(axes) == 2 else 1


def _progressions(axes, first, within=None):
    """Yields the arithmetic progressions (start, step, count) of a layout of at most two axes.

    within: a progression; those that end before it or begin after it are left out.
    """
    (n, s), *more = sorted(axes, key=lambda axis: -axis[0])
    outer, step = more[0] if more else (1, 1)
    low, high = 0, outer - 1
    if within is not None:
        start, stride, count = within
        low = max(low, -((first + (n - 1) * s - start) // step))
        high = min(high, (start + (count - 1) * stride - first) // step)
    return ((first + i * step, s, n) for i in range(low, high + 1))


def _progressions_meet(p, q):
    """Returns whether a + i*s (i < m) and b + j*t (j < n) share a number.

    Uses the Chinese remainder theorem. p: (a, s, m). q: (b, t, n).
    """
    (a, s, m), (b, t, n) = p, q
    low, high = max(a, b), min(a + (m - 1) * s, b + (n - 1) * t)
    if low > high:
        return False
    gcd, x = _solve(s, t, b - a)
    if x is None:
        return False
    common = s // gcd * t
    first = a + x * s
    first += -(-(low - first) // common) * common
    return first <= high


def _solve(s, t, difference):
    """Returns (gcd, i) with i*s == difference modulo t, or (gcd, None) if there is no i."""
    g, u, remainder, v = s, 1, t, 0
    while remainder:
        quotient = g // remainder
        g, remainder = remainder, g - quotient * remainder
        u, v = v, u - quotient * v
    if difference % g:
        return g, None
    return g, u * (difference // g) % (t // g)
