"""Powers of integers, by squaring.

Powers of floats are left to math.pow: e^(y ln x) as accurate as that, so that 3.0 ** 2 is 9, needs
ln x in twice the precision, and was then hardly faster.
"""

# pyright: reportUndefinedVariable=false


@exact_jit
def ipow_i8(base, exponent):
    """The power modulo 2^64; with a negative exponent the quotient 1 / base^|exponent|, cut to 0.

    That quotient is 1 for a base of 1, 1 or -1 for a base of -1, and 0 for every other, 0 included.
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
