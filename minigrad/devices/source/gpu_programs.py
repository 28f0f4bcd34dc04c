"""What generated GPU kernels call: division of indices, rounding to integers.

NumPy's rounding functions do not compile for a GPU. Adding and subtracting 2^23 (2^52 for float64)
rounds to an integer, ties to even; larger numbers are integers already.
"""

# pyright: reportUndefinedVariable=false


@exact_jit
def quotient(i, multiplier, shift):
    """i // n for 0 <= i < 2^31, by the numbers that `division` makes of n: no division."""
    i = U4(i)
    high = U4(U8(U8(i) * U8(multiplier)) >> U8(32))
    return I4(U4(high + i) >> shift)


@exact_jit
def round_f4(x):
    """The nearest integer, the even one of two."""
    a = abs(x)
    y = (a + F4(8388608.0)) - F4(8388608.0)
    y = -y if x < F4(0.0) else y
    return y if a < F4(8388608.0) and a > F4(0.0) else x  # NaN, infinities and -0 stay


@exact_jit
def floor_f4(x):
    """The largest integer that is not above x."""
    y = round_f4(x)
    return y - F4(1.0) if y > x else y


@exact_jit
def ceil_f4(x):
    """The smallest integer that is not below x; -0 between -1 and 0."""
    return -floor_f4(-x)


@exact_jit
def round_f8(x):
    """The nearest integer, the even one of two."""
    a = abs(x)
    y = (a + F8(4503599627370496.0)) - F8(4503599627370496.0)
    y = -y if x < F8(0.0) else y
    return y if a < F8(4503599627370496.0) and a > F8(0.0) else x


@exact_jit
def floor_f8(x):
    """The largest integer that is not above x."""
    y = round_f8(x)
    return y - F8(1.0) if y > x else y


@exact_jit
def ceil_f8(x):
    """The smallest integer that is not below x; -0 between -1 and 0."""
    return -floor_f8(-x)
