"""Powers: of integers by squaring, of float32 through logarithms in float64.

Powers of float64 are left to math.pow: e^(y ln x) would need ln x in more than double precision.
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


@exact_jit
def pow_f4(x, y):
    """x^y with the special values of C's pow; the one function here that computes in float64.

    y ln x reaches 100, so its error must stay below 2^-31 of its size: more than float32 has.
    """
    power = F4(exp_f8(F8(y) * log_f8(F8(abs(x)))))
    c = F4(16777216.0) if y > F4(16777216.0) else y  # from there on every float is even
    c = F4(-16777216.0) if c < F4(-16777216.0) else c
    i = I4(c if c == c else F4(0.0))
    whole = F4(i) == c
    odd = whole & ((i & I4(1)) == I4(1))
    power = -power if odd & (F4(x).view(I4) < I4(0)) else power  # -0 is negative here
    power = F4(math.nan) if (x < F4(0.0)) & (x > F4(-math.inf)) & (not whole) else power
    one = (y == F4(0.0)) | (x == F4(1.0)) | ((x == F4(-1.0)) & (abs(y) == F4(math.inf)))
    return F4(1.0) if one else power
