"""Round to integers on a GPU, for which NumPy's functions do not compile. T: a float.

Adding and subtracting 2^23 (2^52 for float64) rounds to an integer, ties to even; larger numbers
are integers already.
"""

# pyright: reportUndefinedVariable=false

WHOLE = T(2.0**23 if SIZE == 4 else 2.0**52)


@exact_jit
def round_T(x):
    """Return the nearest integer; on a tie the even one."""
    a = abs(x)
    y = (a + WHOLE) - WHOLE
    y = -y if x < T(0.0) else y
    return y if a < WHOLE and a > T(0.0) else x  # NaN, infinities and -0 stay


@exact_jit
def floor_T(x):
    """Return the largest integer that is not above x."""
    y = round_T(x)
    return y - T(1.0) if y > x else y


@exact_jit
def ceil_T(x):
    """Return the smallest integer that is not below x; -0 between -1 and 0."""
    return -floor_T(-x)
