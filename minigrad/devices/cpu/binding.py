"""What every device needs to find the kernel of a program again: kinds, stride classes, memory."""

from minigrad.array.array import Array

MOST_LAYOUTS = 1024  # remembered per program


def kind_of(x):
    """What an operand is: a DType, or 'f' or 'i' for a number."""
    return x.dtype if isinstance(x, Array) else "f" if isinstance(x, float) else "i"


def stride_class(stride):
    """0, 1, or 2 for any other stride: what the innermost loop of a kernel is written for."""
    return stride if stride in (0, 1) else 2


def by_stride(dims, strides, first):
    """Loop order: the axis along which operand `first` moves least in memory innermost."""
    order = sorted(range(len(dims)), key=lambda d: -abs(strides[d][first]))
    return [dims[d] for d in order], [strides[d] for d in order]


def remember(program, key, bound):
    """Keeps what a program's call with these layouts came to, and returns it."""
    if len(program.layouts) >= MOST_LAYOUTS:
        program.layouts.clear()
    program.layouts[key] = bound
    return bound
