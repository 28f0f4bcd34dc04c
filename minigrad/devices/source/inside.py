"""Which windows of a row, or elements of a window, lie within an image: see windows.py."""

# pyright: reportUndefinedVariable=false


@exact_jit
def first_inside(offset, step):
    """The first o with o * step + offset >= 0."""
    return I8(0) if offset >= 0 else (-offset + step - 1) // step


@exact_jit
def past_inside(offset, step, size, count):
    """One past the last o < count with o * step + offset < size; 0 if there is none."""
    left = size - offset
    return I8(0) if left <= 0 else min(count, (left + step - 1) // step)
