"""Elementary functions of float32 that LLVM can turn into vector code.

No tables, no calls, no branches that survive: every `if` becomes a select. Each function reduces
its argument to a short interval, evaluates a polynomial there (tools/fit_polynomials.py fits them),
and undoes the reduction. Rounding to an integer adds and subtracts 1.5 * 2^23; the integer then
stands in the low bits of the sum. What the errors are: docs/numerics.md.

A caller that may reorder its sums (`reassoc`) would undo the very steps that make these functions
accurate. `exact_jit` gives them flags of their own.
"""

# pyright: reportUndefinedVariable=false

# ---- the exponential function and its relatives --------------------------------------------------


@exact_jit
def power_of_two_f4(n):
    """2^n for an integer n from -126 to 127."""
    return I4(I4(n + I4(127)) << I4(23)).view(F4)


@exact_jit
def signed_as_f4(y, x):
    """y >= 0 with the sign of x."""
    return I4(F4(y).view(I4) | I4(F4(x).view(I4) & I4(-0x80000000))).view(F4)


@exact_jit
def exp_parts_f4(x):
    """(n, m) with e^x = 2^n (1 + m) and |m| < 0.42, for |x| < 1000."""
    shifted = x * F4(1.4426950408889634) + F4(12582912.0)
    n = shifted - F4(12582912.0)
    r = x - n * F4(0.693145751953125) - n * F4(1.4286068203094173e-06)
    p = F4(0.0083691655) + r * F4(0.0013837991)
    p = F4(0.49999994) + r * (F4(0.16666517) + r * (F4(0.041668102) + r * p))
    return I4(F4(shifted).view(I4) - I4(0x4B400000)), r + r * r * p


@exact_jit
def exp_f4(x):
    """e^x; results below 2^-126 keep what bits they have, unless the kernel flushes them to 0."""
    x = F4(89.0) if x > F4(89.0) else x  # comparisons so written that NaN stays
    x = F4(-104.0) if x < F4(-104.0) else x
    n, m = exp_parts_f4(x)
    half = I4(n >> I4(1))  # 2^n alone would overflow before the result does
    return (m + F4(1.0)) * power_of_two_f4(half) * power_of_two_f4(I4(n - half))


@exact_jit
def exp_of_negative_f4(x):
    """e^x for x <= 0, 0 where that is below 2^-126: the exponential of a softmax, a third faster.

    An x above 0, which only rounding can have made, counts as 0.
    """
    x = F4(0.0) if x > F4(0.0) else x
    c = F4(-87.33) if x < F4(-87.33) else x
    n, m = exp_parts_f4(c)
    power = power_of_two_f4(n)
    return F4(0.0) if x < F4(-87.33) else m * power + power


@exact_jit
def expm1_f4(x):
    """e^x - 1, accurate near 0."""
    c = F4(89.0) if x > F4(89.0) else x
    c = F4(-18.0) if c < F4(-18.0) else c
    n, m = exp_parts_f4(c)
    half = power_of_two_f4(I4(n - I4(1)))
    y = (half * m + (half - F4(0.5))) * F4(2.0)
    return x if abs(x) < F4(1e-8) else y  # keeps -0 and tiny values


@exact_jit
def tanh_f4(x):
    """(e^2a - 1) / (e^2a + 1) of a = |x|, with the sign of x; e^2a - 1 as expm1 has it."""
    a = abs(x)
    a = F4(10.0) if a > F4(10.0) else a  # 1 from 9.02 on
    n, m = exp_parts_f4(a + a)
    power = power_of_two_f4(n)
    t = m * power + (power - F4(1.0))
    return signed_as_f4(t / (t + F4(2.0)), x)


@exact_jit
def sigmoid_f4(x):
    """1 / (1 + e^-x), written so that neither end overflows: e^-|x| is at most 1."""
    e = exp_f4(-abs(x))
    return (F4(1.0) if x > F4(0.0) else e) / (F4(1.0) + e)


# ---- the order of floats -------------------------------------------------------------------------


@exact_jit
def order_f4(x):
    """An integer that grows with x: the largest of integers is found by vector code.

    The largest of floats is not, since the compiler may not forget NaN. A NaN lies beyond the
    infinity of its sign.
    """
    bits = F4(x).view(I4)
    return I4(bits ^ I4((bits >> I4(31)) & I4(0x7FFFFFFF)))


@exact_jit
def unorder_f4(key):
    """The float of an integer from `order_f4`."""
    return I4(key ^ I4((key >> I4(31)) & I4(0x7FFFFFFF))).view(F4)


# ---- logarithms ----------------------------------------------------------------------------------


@exact_jit
def log_parts_f4(u):
    """(n, f) with u = 2^n (1 + f) and 1 + f between sqrt(1/2) and sqrt(2); u normal, positive."""
    bits = U4(F4(u).view(U4) + U4(0x3F800000 - 0x3F3504F3))
    n = I4(I4(bits >> U4(23)) - I4(127))
    f = U4(U4(bits & U4(0x7FFFFF)) + U4(0x3F3504F3)).view(F4) - F4(1.0)
    return n, f


@exact_jit
def log_sum_f4(n, f):
    """The sum n ln 2 + ln(1 + f)."""
    s = f / (F4(2.0) + f)
    z = s * s
    p = z * (F4(0.66666776) + z * (F4(0.39977586) + z * F4(0.29870695)))
    h = F4(0.5) * f * f
    n = F4(n)
    low = s * (h + p) + n * F4(1.4286068203094173e-06)
    return n * F4(0.693145751953125) - ((h - low) - f)


@exact_jit
def log_f4(x):
    """Natural logarithm: -inf at 0, NaN below."""
    tiny = x < F4(1.1754943508222875e-38)
    n, f = log_parts_f4(x * F4(33554432.0) if tiny else x)
    y = log_sum_f4(I4(n - I4(25)) if tiny else n, f)
    y = y if x < F4(math.inf) else x
    y = F4(-math.inf) if x == F4(0.0) else y
    return F4(math.nan) if x < F4(0.0) else y


@exact_jit
def log1p_f4(x):
    """ln(1 + x), accurate near 0: what 1 + x rounds away goes back into f."""
    u = F4(1.0) + x
    lost = x - (u - F4(1.0)) if x < F4(1.0) else F4(1.0) - (u - x)
    n, f = log_parts_f4(u)
    f = f + lost * power_of_two_f4(I4(-n)) if x < F4(1e9) else f
    y = log_sum_f4(n, f)
    y = y if x < F4(math.inf) else x
    y = F4(-math.inf) if x == F4(-1.0) else y
    y = F4(math.nan) if x < F4(-1.0) else y
    return x if abs(x) < F4(1e-8) else y


# ---- the error function --------------------------------------------------------------------------


@exact_jit
def erf_f4(x):
    """2 / sqrt(pi) times the integral of e^-t^2 from 0 to x; beyond 1 as 1 - e^q."""
    t = x * x
    p = F4(0.005187162) + t * (F4(-0.0007997853) + t * F4(7.806903e-05))
    p = F4(0.11283579) + t * (F4(-0.026853347) + t * p)
    p = F4(0.12837917) + t * (F4(-0.37612626) + t * p)
    a = abs(x)
    v = (F4(4.0) if a > F4(4.0) else a) - F4(1.0)  # 1 from 3.92 on
    q = F4(0.009465068) + v * (F4(-0.0014986785) + v * F4(9.720173e-05))
    q = F4(-0.8431724) + v * (F4(-0.041264623) + v * q)
    n, m = exp_parts_f4(F4(-1.8496056) + v * (F4(-2.6389627) + v * q))
    far = F4(1.0) - (m + F4(1.0)) * power_of_two_f4(n)
    far = -far if x < F4(0.0) else far
    return far if a > F4(1.0) else x + x * p


# ---- sine and cosine -----------------------------------------------------------------------------


@exact_jit
def quarter_turns_f4(x):
    """(n, r) with x = n pi/2 + r and |r| <= pi/4; the last two bits of n are right.

    pi/2 comes in parts of 11 bits, so that n times a part is exact: always with fused multiply-add,
    and without it while n has no more than 13 bits, which is for |x| up to 12,000.
    """
    shifted = x * F4(0.6366197723675814) + F4(12582912.0)
    n = shifted - F4(12582912.0)
    r = x - n * F4(1.5703125) - n * F4(0.0004837512969970703)
    r = r - n * F4(7.549533620476723e-08) - n * F4(2.5632829192545614e-12)
    return I4(F4(shifted).view(I4)), r - n * F4(6.123234e-17)


@exact_jit
def sine_in_quarter_f4(n, r):
    """sin(n pi/2 + r) for |r| <= pi/4."""
    t = r * r
    sine = r + r * t * (F4(-0.16666651) + t * (F4(0.008331919) - t * F4(0.00019483038)))
    p = F4(0.041666638) + t * (F4(-0.0013886959) + t * F4(2.439365e-05))
    y = F4(1.0) - (F4(0.5) * t - t * t * p) if n & I4(1) else sine
    return -y if n & I4(2) else y


@exact_jit
def sin_f4(x):
    """Sine; NaN where |x| exceeds 1,000,000: neighbouring floats there are a sixteenth apart."""
    n, r = quarter_turns_f4(x)
    y = sine_in_quarter_f4(n, r) if abs(x) <= F4(1e6) else F4(math.nan)
    return x if abs(x) < F4(1e-4) else y


@exact_jit
def cos_f4(x):
    """Cosine; NaN where |x| exceeds 1,000,000."""
    n, r = quarter_turns_f4(x)
    return sine_in_quarter_f4(I4(n + I4(1)), r) if abs(x) <= F4(1e6) else F4(math.nan)
