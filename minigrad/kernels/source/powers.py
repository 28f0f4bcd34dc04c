"""Powers: of integers by squaring."""
# ruff: noqa: F821 -- this text follows header.py in one file
# pyright: reportUndefinedVariable=false


@exact_jit
def ipow_i8(base, exponent):
    """base^exponent modulo 2^64. A negative exponent gives the quotient 1 / base^|exponent|, cut to 0.

    That is 1 for a base of 1, 1 or -1 for a base of -1, and 0 for every other base, 0 included.
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
