"""Describes a program's calls as every device sees them: kinds, stride classes, loop order."""

from minigrad.array.array import Array
from minigrad.array.layout import collapse, expand_strides

MOST_LAYOUTS = 1024  # remembered per program


def kind_of(x):
    """Return an operand's kind: a DType, or 'f' or 'i' for a number."""
    return x.dtype if isinstance(x, Array) else "f" if isinstance(x, float) else "i"


def stride_class(stride):
    """Return 0, 1, or 2 for any other stride: what a kernel's innermost loop is written for."""
    return stride if stride in (0, 1) else 2


def by_stride(dims, strides, first):
    """Order the loops; innermost is the axis along which operand `first` moves least in memory."""
    order = sorted(range(len(dims)), key=lambda d: -abs(strides[d][first]))
    return [dims[d] for d in order], [strides[d] for d in order]


def sides_of(operands, shape, axes, first):
    """Return [(size, strides of each array)] of a reduction's kept and of its reduced dimensions.

    operands: inputs, then the output. Adjacent dimensions are merged, then sorted by the strides of
    array number `first`.
    """
    *inputs, out = operands
    layouts = [expand_strides(x.shape, x.strides, shape) for x in inputs if isinstance(x, Array)]
    kept_strides = iter(out.strides)
    layouts.append(tuple(0 if d in axes else next(kept_strides) for d in range(len(shape))))
    sides = []
    for wanted in (False, True):
        chosen = [d for d in range(len(shape)) if (d in axes) == wanted]
        dims, strides = collapse(
            [shape[d] for d in chosen], [[x[d] for d in chosen] for x in layouts]
        )
        sides.append(list(zip(*by_stride(dims, strides, first), strict=True)))
    return sides


def remember(program, key, bound):
    """Remember what a program does for these layouts, and return it."""
    if len(program.layouts) >= MOST_LAYOUTS:
        program.layouts.clear()
    program.layouts[key] = bound
    return bound
