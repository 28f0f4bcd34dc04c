"""Tells which elements of a Value a Ref covers: intervals, maps from these to facts, copies.

For whether two Refs share an element, see `Ref.overlaps`.
"""

from bisect import bisect_left, bisect_right

from minigrad.array.layout import collapse, is_contiguous
from minigrad.array.overlap import span


def interval(ref):
    """Return (low, high, dense): a Ref covers elements of [low, high); dense: all of them."""
    low, high, dense = span(ref.shape, ref.strides)
    return low + ref.offset, high + ref.offset, dense


def shows_same(a, b):
    """Return whether two Refs show the same elements in the same layout."""
    return a.value is b.value and a[1:] == b[1:]


class Intervals:
    """A map from elements to facts: sorted disjoint intervals; neighbours with equal facts merge.

    >>> known = Intervals()
    >>> known.put(0, 10, "a"); known.put(4, 6, "b"); known.cut(8, 20)
    >>> list(known), known.find(1, 4), known.find(1, 5), known.meets(8, 9)
    ([(0, 4, 'a'), (4, 6, 'b'), (6, 8, 'a')], 'a', None, False)
    """

    __slots__ = ("facts", "highs", "lows")

    def __init__(self):
        self.lows, self.highs, self.facts = [], [], []

    def __iter__(self):
        return zip(self.lows, self.highs, self.facts, strict=True)

    def meets(self, low, high):
        """Return whether something is known about any element of [low, high)."""
        k = bisect_right(self.highs, low)
        return k < len(self.lows) and self.lows[k] < high

    def within(self, low, high):
        """Return the known intervals within [low, high), clipped to it."""
        a, b = bisect_right(self.highs, low), bisect_left(self.lows, high)
        return [(max(low, self.lows[k]), min(high, self.highs[k])) for k in range(a, b)]

    def find(self, low, high):
        """Return the one fact about all elements of [low, high), or None."""
        k = bisect_right(self.highs, low)
        if k < len(self.lows) and self.lows[k] <= low and high <= self.highs[k]:
            return self.facts[k]
        return None

    def cut(self, low, high):
        """Forget [low, high)."""
        a, b = bisect_right(self.highs, low), bisect_left(self.lows, high)
        if a >= b or low >= high:
            return
        lows, highs, facts = [], [], []
        if self.lows[a] < low:
            lows, highs, facts = [self.lows[a]], [low], [self.facts[a]]
        if self.highs[b - 1] > high:
            lows, highs = [*lows, high], [*highs, self.highs[b - 1]]
            facts = [*facts, self.facts[b - 1]]
        self.lows[a:b], self.highs[a:b], self.facts[a:b] = lows, highs, facts

    def put(self, low, high, fact=True):
        """Store a fact about [low, high), replacing what was known."""
        if low >= high:
            return
        self.cut(low, high)
        k = bisect_left(self.lows, low)
        if k < len(self.lows) and self.lows[k] == high and self.facts[k] == fact:
            high = self.highs[k]
            del self.lows[k], self.highs[k], self.facts[k]
        if k and self.highs[k - 1] == low and self.facts[k - 1] == fact:
            self.highs[k - 1] = high
            return
        self.lows.insert(k, low)
        self.highs.insert(k, high)
        self.facts.insert(k, fact)


def through(ref, base, other):
    """Translate `ref`, a Ref into `base`, to the same places of `other`; or return None.

    base: contiguous, all of its Value; other: a Ref of the same shape.

    >>> from minigrad.compiler.program.program import Ref
    >>> base, other = Ref("t", (3, 4), (4, 1)), Ref("x", (3, 4), (1, 3), 100)
    >>> through(Ref("t", (4, 2), (1, 4), 4), base, other)[1:]
    ((4, 2), (3, 1), 101)
    >>> print(through(Ref("t", (12,), (1,)), base, other))
    None
    """
    if ref[1:] == base[1:]:
        return other
    if is_contiguous(other.shape, other.strides):
        return ref._replace(value=other.value, offset=ref.offset + other.offset)
    dims, steps = collapse(base.shape, [base.strides, other.strides])
    start, low, high, rest = other.offset, [], [], ref.offset
    for here, there in steps:
        digit, rest = divmod(rest, here)
        start += digit * there
        low.append(digit)
        high.append(digit)
    strides = []
    for n, s in zip(ref.shape, ref.strides, strict=True):
        if n == 1 or not s:
            strides.append(0)
            continue
        a = next((a for a, (here, _) in enumerate(steps) if here <= abs(s)), None)
        if a is None or s % steps[a][0]:
            return None
        count = s // steps[a][0]
        low[a] += min(0, (n - 1) * count)
        high[a] += max(0, (n - 1) * count)
        strides.append(count * steps[a][1])
    if any(a < 0 or b >= n for a, b, n in zip(low, high, dims, strict=True)):
        return None
    return other._replace(shape=ref.shape, strides=tuple(strides), offset=start)
