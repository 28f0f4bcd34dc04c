"""Functions of float32 that are computed in float64, whose bits they need.

Powers: LLVM can vectorize e^(y ln x), which is exact to some 50 bits more than the result has, so
that 3.0 ** 2 is 9. Powers of float64 would need ln x in twice the precision, and are left to
math.pow. Division: float64 holds the product of a float32 and 28 bits of a quotient.
"""

# pyright: reportUndefinedVariable=false


@exact_jit
def pow_in_f8(base, exponent):
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


@exact_jit
def divide_in_f8(a, b):
    """Return floor(|a| / |b|) as a float64, and the exact remainder with the sign of a (C's fmod).

    Long division. A quotient from 2^53 on is rounded.
    """
    if not abs(a) < F4(math.inf) or not abs(b) > F4(0.0):
        return F8(math.nan), F4(math.nan)
    q, r, d = F8(0.0), F8(abs(a)), min(F8(abs(b)), F8(1e39))  # not infinite
    while r >= d * F8(2**28):
        n = (F8(r).view(I8) >> I8(52)) - (F8(d).view(I8) >> I8(52))
        unit = I8((n + I8(1023 - 27)) << I8(52)).view(F8)
        times = F8(I8(r / (d * unit)))
        q, r = q + times * unit, r - times * (d * unit)
    times = F8(I8(r / d))
    return q + times, signed_as_f4(F4(r - times * d), a)


@exact_jit
def remainder_in_f8(a, b):
    """Return a - b floor(a / b) without rounding."""
    _, r = divide_in_f8(a, b)
    return moved_f4(r, b)


@exact_jit
def floor_divide_in_f8(a, b):
    """Return floor(a / b) of the exact quotient, or a / b for b = 0."""
    q, r = divide_in_f8(a, b)
    return rounded_down_f4(a, b, q, r)
