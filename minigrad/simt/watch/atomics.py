"""Atomic operations of many lanes on few elements, with the result of lane after lane.

Lanes with different elements act together. Lanes that share an element take turns: first one lane
of each element, then a second one of each, and so on. If many lanes share few elements, a running
total over each group of lanes gives the same result at once.
"""

import numpy as np


def _inc(old, limit):
    return np.where(old >= limit, 0, old + 1).astype(old.dtype)


def _dec(old, limit):
    return np.where((old == 0) | (old > limit), limit, old - 1).astype(old.dtype)


OPERATIONS = {
    "add": np.add,
    "sub": np.subtract,
    "max": np.maximum,
    "min": np.minimum,
    "nanmax": np.fmax,
    "nanmin": np.fmin,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, new: new,
    "cas": None,  # the pair (expected, new) is compared below
    "inc": _inc,
    "dec": _dec,
}

FOR_NAN = {"max": -np.inf, "min": np.inf}  # in Numba, a NaN operand changes nothing


def apply(cells, operation, index, value, active, count, want_old=True):
    """Update `cells`; return the old elements (arbitrary in inactive lanes) if wanted, else None.

    cells: 1-D. index: scalar or (count,). value: scalar or (count,), for "cas" a pair of them.
    active: bool (count,) or None.
    """
    lanes = None if active is None else np.flatnonzero(active)
    number = count if lanes is None else lanes.size
    index = _of(index, lanes, number)
    pair = value if operation == "cas" else (value,)
    values = [_of(np.asarray(v).astype(cells.dtype), lanes, number) for v in pair]
    function = OPERATIONS[operation]
    if operation in FOR_NAN and cells.dtype.kind == "f":
        values = [np.where(np.isnan(values[0]), FOR_NAN[operation], values[0])]
    if not want_old and isinstance(function, np.ufunc):
        function.at(cells, index, values[0])
        return None
    before = np.empty(number, cells.dtype)
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if number else order
    lengths = np.diff(np.r_[first, number])
    most = int(lengths.max()) if number else 0
    if isinstance(function, np.ufunc) and most > len(first):
        _by_element(cells, function, ordered, values[0][order], first, lengths, before, order)
    else:
        for turn in range(most):
            now = order[first[lengths > turn] + turn]
            at = index[now]
            old = before[now] = cells[at]
            if function is None:
                cells[at] = np.where(old == values[0][now], values[1][now], old)
            else:
                cells[at] = function(old, values[0][now])
    if not want_old:
        return None
    if lanes is None:
        return before
    out = np.zeros(count, cells.dtype)
    out[lanes] = before
    return out


def _of(value, lanes, number):
    if value.ndim == 0:
        return np.full(number, value)
    return value if lanes is None else value[lanes]


def _by_element(cells, function, ordered, values, first, lengths, before, order):
    """Compute a running total per element: `accumulate` goes left to right in the cells' dtype."""
    for begin, length in zip(first, lengths, strict=True):
        part = slice(begin, begin + length)
        start = cells[ordered[begin]]
        running = function.accumulate(np.concatenate([[start], values[part]]), dtype=cells.dtype)
        before[order[part]] = running[:-1]
        cells[ordered[begin]] = running[-1]
