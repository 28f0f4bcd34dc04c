"""Shape arithmetic: strides (counted in elements), broadcasting, collapsing of axes."""

import math

from minigrad.arguments import whole
from minigrad.errors import OutOfMemoryError, ShapeError
from minigrad.hints import NO_AXIS

MAX_RANK = 8
MAX_SIZE = 2**60  # elements: every address in bytes fits into int64


size_of = math.prod  # the number of elements of a shape


_strides = {}


def contiguous_strides(shape):
    """Returns C-order strides.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    result = _strides.get(shape)
    if result is None:
        check_size(shape)
        strides, step = [], 1
        for n in reversed(shape):
            strides.append(step)
            step *= n
        result = tuple(reversed(strides))
        if len(_strides) < 4096:
            _strides[shape] = result
    return result


def is_contiguous(shape, strides):
    """Returns whether elements are contiguous in C order, ignoring axes of size 1."""
    step = 1
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1:
            if s != step:
                return size_of(shape) == 0
            step *= n
    return True


def broadcast_shapes(name, *shapes):
    """Returns the common shape of operands, by NumPy's rule.

    Raises:
        ShapeError: the shapes do not broadcast; the error names the operation.
    """
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
    """Returns the strides of an array of `shape` broadcast to `target`: 0 along broadcast axes."""
    pad = len(target) - len(shape)
    return (0,) * pad + tuple(
        0 if n == 1 and t != 1 else s for n, s, t in zip(shape, strides, target[pad:], strict=True)
    )


def check_size(shape):
    """Raises OutOfMemoryError from MAX_SIZE elements on, where a size of 0 counts as 1."""
    if size_of(n or 1 for n in shape) >= MAX_SIZE:
        raise OutOfMemoryError(
            "wanted a shape of fewer than 2**60 elements, where a size of 0 counts as 1",
            "sizes of " + ", ".join(f"{n}" if n < 2**70 else "far more" for n in shape),
        )


def check_rank(name, rank):
    """Raises ShapeError if a result would have more axes than kernels support."""
    if rank > MAX_RANK:
        raise ShapeError(f"{name}: wanted at most {MAX_RANK} axes", f"{rank}")


def normalize_axis(name, axis, rank):
    """Returns the axis as a non-negative int; raises ShapeError if it does not exist."""
    if type(axis) is int:
        index = axis
    else:
        is_text = isinstance(axis, str)
        fix = "the number of the axis: axis=0" if is_text else NO_AXIS.get(name)
        index = whole(name, "axis", axis, fix=fix)
    if not -rank <= index < rank:
        raise ShapeError(
            f"{name}: wanted an axis from {-rank} to {rank - 1}",
            f"{axis}",
            f"the array has {rank} {'axis' if rank == 1 else 'axes'}",
        )
    return index % rank


def normalize_axes(name, axis, rank):
    """Returns a sorted tuple of distinct non-negative axes; None means all axes."""
    if axis is None:
        return tuple(range(rank))
    if not isinstance(axis, (tuple, list)):
        return (normalize_axis(name, axis, rank),)
    axes = tuple(sorted(normalize_axis(name, a, rank) for a in axis))
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{name}: wanted different axes", f"{axis}")
    return axes


def collapse(shape, stride_lists):
    """Merges neighbouring dimensions that are contiguous in every operand; drops those of size 1.

    Args:
        shape: the sizes to loop over.
        stride_lists: the strides of each operand over `shape`.

    Returns:
        (dims, strides): the remaining sizes, and for each size a tuple of one stride per operand.
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
    """Returns the strides of a view with the shape `target`, or None if that needs a copy."""
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
