"""Shape arithmetic: strides (in elements), broadcasting, collapsing, overlap."""

from minigrad.errors import ArgumentTypeError, ShapeError

MAX_RANK = 8
ADVICE = {  # for those who give something else in the place of an axis
    "max": "mg.maximum(a, b) for the larger of two",
    "min": "mg.minimum(a, b) for the smaller of two",
    "gather": "the axis comes last: gather(x, index, axis)",
    "scatter_add": "the axis comes last: scatter_add(x, index, source, axis)",
}


def size_of(shape):
    """The number of elements of a shape."""
    size = 1
    for n in shape:
        size *= n
    return size


_strides = {}


def contiguous_strides(shape):
    """C-order strides.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    found = _strides.get(shape)
    if found is None:
        strides, step = [], 1
        for n in reversed(shape):
            strides.append(step)
            step *= n
        found = tuple(reversed(strides))
        if len(_strides) < 4096:
            _strides[shape] = found
    return found


def is_contiguous(shape, strides):
    """Whether elements lie one after the other in C order; axes of size 1 do not matter."""
    step = 1
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1:
            if s != step:
                return size_of(shape) == 0
            step *= n
    return True


def broadcast_shapes(name, *shapes):
    """The common shape of operands, by NumPy's rule; ShapeError names the operation."""
    out = shapes[0]
    for shape in shapes[1:]:
        if shape == out:
            continue
        rank = max(len(out), len(shape))
        a, b = (1,) * (rank - len(out)) + out, (1,) * (rank - len(shape)) + shape
        for m, n in zip(a, b, strict=True):
            if m != n and m != 1 and n != 1:
                raise ShapeError(
                    f"{name}: wanted shapes that broadcast",
                    " and ".join(map(str, shapes)),
                    f"sizes {m} and {n} differ and neither is 1: reshape, or unsqueeze an axis",
                )
        out = tuple(n if m == 1 else m for m, n in zip(a, b, strict=True))
    return out


def expand_strides(shape, strides, target):
    """The strides of an array of `shape` seen as `target`: 0 along broadcast axes."""
    pad = len(target) - len(shape)
    return (0,) * pad + tuple(
        0 if n == 1 and t != 1 else s for n, s, t in zip(shape, strides, target[pad:], strict=True)
    )


def check_rank(name, rank):
    """Raises if a result would have more axes than the kernels loop over."""
    if rank > MAX_RANK:
        raise ShapeError(f"{name}: wanted at most {MAX_RANK} axes", f"{rank}")


def normalize_axis(name, axis, rank):
    """A non-negative axis; ShapeError if there is none."""
    try:
        index = axis.__index__()
    except (AttributeError, TypeError):
        raise ArgumentTypeError(
            f"{name}: wanted an int for axis",
            f"{axis!r:.60} of type {type(axis).__name__}",
            ADVICE.get(name),
        ) from None
    if not -rank <= index < rank:
        raise ShapeError(
            f"{name}: wanted an axis from {-rank} to {rank - 1}",
            f"{axis}",
            f"the array has {rank} {'axis' if rank == 1 else 'axes'}",
        )
    return index % rank


def normalize_axes(name, axis, rank):
    """A sorted tuple of different non-negative axes; None means all."""
    if axis is None:
        return tuple(range(rank))
    if not isinstance(axis, (tuple, list)):
        return (normalize_axis(name, axis, rank),)
    axes = tuple(sorted(normalize_axis(name, a, rank) for a in axis))
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{name}: wanted different axes", f"{axis}")
    return axes


def collapse(shape, stride_lists):
    """Merges neighbouring dimensions that are contiguous in every operand, drops those of size 1.

    Args:
        shape: the sizes to loop over.
        stride_lists: per operand its strides over `shape`.

    Returns:
        (dims, strides): the remaining sizes, and per dimension a tuple with one stride an operand.
    """
    dims, strides = [], []
    for n, *step in zip(shape, *stride_lists, strict=True):
        if n == 1:
            continue
        if dims and all(a == b * n for a, b in zip(strides[-1], step, strict=True)):
            dims[-1] *= n
            strides[-1] = step
        else:
            dims.append(n)
            strides.append(step)
    return dims, strides


def reshape_strides(shape, strides, target):
    """Strides that show the same elements as `target` without a copy, or None."""
    if is_contiguous(shape, strides):
        return contiguous_strides(target)
    if 0 in shape:
        return contiguous_strides(target)
    dims, steps = collapse(shape, [strides])
    steps = [s[0] for s in steps]
    out, k, left = [], len(dims) - 1, dims[-1] if dims else 1
    step = steps[-1] if dims else 1
    for n in reversed(target):
        if n == 1:
            out.append(step)
            continue
        if left == 1:
            k -= 1
            left, step = dims[k], steps[k]
        if left % n:
            return None
        out.append(step)
        step, left = step * n, left // n
    return tuple(reversed(out))


def byte_extent(shape, strides, offset, itemsize):
    """[first, last) byte that a layout touches, relative to its buffer; empty for size 0."""
    if 0 in shape:
        return 0, 0
    low = high = offset
    for n, s in zip(shape, strides, strict=True):
        if s < 0:
            low += (n - 1) * s
        else:
            high += (n - 1) * s
    return low * itemsize, (high + 1) * itemsize


def overlaps(a, b):
    """Whether two layouts (shape, strides, offset) over one buffer share an element of equal size.

    Exact to two dimensions by comparing element offsets; beyond that, extents decide.
    """
    (first_a, last_a), (first_b, last_b) = (byte_extent(x[0], x[1], x[2], 1) for x in (a, b))
    if first_a >= last_b or first_b >= last_a:
        return False
    (dims_a, steps_a), (dims_b, steps_b) = (collapse(x[0], [x[1]]) for x in (a, b))
    if len(dims_a) > 2 or len(dims_b) > 2:
        return True
    return _offsets_meet(
        (dims_a, [s[0] for s in steps_a], a[2]), (dims_b, [s[0] for s in steps_b], b[2])
    )


def _offsets_meet(a, b):
    """Whether two sets of offsets, at most two dimensions each, have a member in common."""
    rows_a, rows_b = list(_rows(*a)), list(_rows(*b))
    return any(_progressions_meet(p, q) for p in rows_a for q in rows_b)


def _rows(dims, steps, offset):
    """The arithmetic progressions (start, step, count) that make up a layout."""
    if not dims:
        yield offset, 1, 1
    elif len(dims) == 1:
        yield offset, steps[0], dims[0]
    else:
        few, many = (0, 1) if dims[0] <= dims[1] else (1, 0)
        for i in range(dims[few]):
            yield offset + i * steps[few], steps[many], dims[many]


def _progressions_meet(p, q):
    """Whether a + i*s (i < m) and b + j*t (j < n) meet, by the Chinese remainder theorem."""
    (a, s, m), (b, t, n) = (_upward(x) for x in (p, q))
    if s == 0 or t == 0:
        m, n = (1 if s == 0 else m), (1 if t == 0 else n)
        s, t = s or 1, t or 1
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


def _upward(progression):
    start, step, count = progression
    return (start + (count - 1) * step, -step, count) if step < 0 else progression


def _solve(s, t, difference):
    """(gcd, i) with a + i*s == b modulo t, or (gcd, None)."""
    g, u, remainder, v = s, 1, t, 0
    while remainder:
        quotient = g // remainder
        g, remainder = remainder, g - quotient * remainder
        u, v = v, u - quotient * v
    if difference % g:
        return g, None
    return g, u * (difference // g) % (t // g)
