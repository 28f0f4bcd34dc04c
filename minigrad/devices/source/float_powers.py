"""Powers of float32, computed in float64 by functions that LLVM can vectorize.

e^(y ln x) is there exact to some 50 bits more than the result has, so that 3.0 ** 2 is 9. Powers of
float64 would need ln x in twice the precision, and are left to math.pow.
"""

# pyright: reportUndefinedVariable=false


@exact_jit
def pow_f4(base, exponent):
    """Return base^exponent in float32, with the special values of C's pow."""
    x, y = F8(base), F8(exponent)
    size = abs(x)
    power = exp_f8(y * log_f8(size))
    power = F8(1) if (size == F8(1)) | (y == F8(0)) else power
    half = y * F8(0.5)
    is_whole = np.floor(y) == y
    is_odd = is_whole & (np.floor(half) != half)
    power = -power if (x.view(I8) < I8(0)) & is_odd else power  # also of -0
    is_real = is_whole | (x >= F8(0)) | (size == F8(math.inf)) | (x != x)
    power = power if is_real else F8(math.nan)
    # NaN: of an operand, but not of base 1 or exponent 0
    power = x + y if (x != x) & (y != F8(0)) | (y != y) & (x != F8(1)) else power
    return F4(power)
