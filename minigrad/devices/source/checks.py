"""Checks of values that would make other kernels read out of bounds."""


@jit("i8(i8,i8,i8,i8)")
def first_outside_i8(at, n, low, high):
    """Return the index of the first of n int64 values that is not in [low, high], or -1."""
    values = i8_at(at)
    bad = 0
    for i in range(n):
        bad += 1 if values[i] < low or values[i] > high else 0
    if bad == 0:
        return -1
    for i in range(n):
        if values[i] < low or values[i] > high:
            return i
    return -1
