"""Compute powers of integers by squaring, and their whole quotients."""

# pyright: reportUndefinedVariable=false


@exact_jit
def pow_i8(base, exponent):
    """Return the power modulo 2^64; for a negative exponent 1 / base^|exponent|, truncated.

    That quotient is 1 for base 1, 1 or -1 for base -1, and 0 for every other, including 0.
    """
    if exponent < I8(0):
        if base == I8(1):
            return I8(1)
        if base == I8(-1):
            return I8(1) - ((exponent & I8(1)) << I8(1))
        return I8(0)
    result = I8(1)
    while exponent > I8(0):
        if exponent & I8(1):
            result *= base
        base *= base
        exponent >>= I8(1)
    return result


@exact_jit
def floor_divide_i8(a, b):
    """Return floor(a / b); 0 for b = 0, which callers refuse; -a modulo 2^64 for b = -1."""
    if b == I8(0):
        return I8(0)
    if b == I8(-1):  # processors refuse -2^63 / -1
        return -a
    size, other = (U8(-a) if a < I8(0) else U8(a)), (U8(-b) if b < I8(0) else U8(b))
    whole = size // other
    if (a < I8(0)) == (b < I8(0)):
        return I8(whole)
    return -I8(whole) - (I8(1) if size != whole * other else I8(0))


@exact_jit
def remainder_i8(a, b):
    """Return a - b floor(a / b), between 0 and b; 0 for b = 0."""
    return a - b * floor_divide_i8(a, b) if b != I8(0) else I8(0)
