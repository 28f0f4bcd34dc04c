"""Elementary functions that LLVM can vectorize. T: float32 or float64.

They use no tables and no calls, and every `if` becomes a select. Each function reduces
its argument to a short interval, evaluates a polynomial there (tools/fit_polynomials.py fits them),
and undoes the reduction. To round to an integer, they add and subtract 1.5 * 2^23 (2^52); the low
bits of the sum then hold the integer. For float64 the polynomials have more terms and the
reductions more bits. docs/numerics.md lists the errors.

A caller that may reorder sums (`reassoc`) would undo the very steps that make these functions
accurate. So `exact_jit` gives them their own flags.
"""

# pyright: reportUndefinedVariable=false

# Integers of T's size, fraction bits, exponent bias, and the thresholds of the functions.
if SIZE == 4:
    INT, WORD, BITS, BIAS = I4, U4, I4(23), I4(127)
    ROUND, ROUND_BITS = T(12582912.0), I4(0x4B400000)  # 1.5 * 2^23, and its bits
    LN2, LN2_REST = T(0.693145751953125), T(1.4286068203094173e-06)
    HALF_ROOT = U4(0x3F3504F3)  # bits of sqrt(1/2)
    NORMAL, SCALE, SCALED = T(1.1754943508222875e-38), T(33554432.0), I4(25)  # the smallest; 2^25
    MOST, LEAST, LEAST_NORMAL = T(89.0), T(-104.0), T(-87.33)  # beyond them e^x overflows, is 0
    LEAST_EXPM1, MOST_TANH, MOST_ERF = T(-18.0), T(10.0), T(4.0)  # tanh, erf: 1 from 9.02, 3.92 on
    SMALL, LARGE = T(1e-8), T(1e9)  # x is expm1(x) and log1p(x); 1 + x loses nothing that matters
    SMALL_SINE, MOST_SINE = T(1e-4), T(1e6)
    EXACT = T(16777216.0)  # 2^24, up to which floats hold all integers
    EIGHTH, EIGHTH_REST = T(0.7853981852531433), T(-2.1855694143368964e-08)  # pi/4 in two parts
else:
    INT, WORD, BITS, BIAS = I8, U8, I8(52), I8(1023)
    ROUND, ROUND_BITS = T(6755399441055744.0), I8(0x4338000000000000)
    LN2, LN2_REST = T(0.6931471805598903), T(5.497923018708371e-14)
    HALF_ROOT = U8(0x3FE6A09E667F3BCD)
    NORMAL, SCALE, SCALED = T(2.2250738585072014e-308), T(18014398509481984.0), I8(54)
    MOST, LEAST, LEAST_NORMAL = T(710.0), T(-746.0), T(-708.39)
    LEAST_EXPM1, MOST_TANH, MOST_ERF = T(-40.0), T(20.0), T(6.0)  # 19.07, 5.93
    SMALL, LARGE = T(1e-17), T(1e18)
    SMALL_SINE, MOST_SINE = T(1e-9), T(1e14)
    EXACT = T(9007199254740992.0)
    EIGHTH, EIGHTH_REST = T(0.7853981633974483), T(3.061616997868383e-17)
SIGN, SIGN_PLACE = INT(-(2 ** (8 * SIZE - 1))), INT(8 * SIZE - 1)
REST = INT(2 ** (8 * SIZE - 1) - 1)  # all bits but the sign
ONE_BITS = WORD(int(BIAS) << int(BITS))
FRACTION = WORD(2 ** int(BITS) - 1)

# ---- the exponential function and its relatives --------------------------------------------------


@exact_jit
def power_of_two_T(n):
    """Return 2^n for an integer n from -126 to 127 (-1022 to 1023)."""
    return INT(INT(n + BIAS) << BITS).view(T)


@exact_jit
def signed_as_T(y, x):
    """Return y >= 0 with the sign of x."""
    return INT(T(y).view(INT) | INT(T(x).view(INT) & SIGN)).view(T)


@exact_jit
def exp_parts_T(x):
    """Return (n, m) with e^x = 2^n (1 + m) and |m| < 0.42, for |x| < 1000 (2000)."""
    shifted = x * T(1.4426950408889634) + ROUND
    n = shifted - ROUND
    r = x - n * LN2 - n * LN2_REST
    if SIZE == 4:
        p = T(0.0083691655) + r * T(0.0013837991)
        p = T(0.49999994) + r * (T(0.16666517) + r * (T(0.041668102) + r * p))
    else:
        p = T(2.7630667266917875e-07) + r * T(2.5026955137046105e-08)
        p = T(2.4801491874333814e-05) + r * (T(2.7557526423919343e-06) + r * p)
        p = T(0.0013888888944850642) + r * (T(0.0001984126955491611) + r * p)
        p = T(0.04166666666652579) + r * (T(0.008333333333475829) + r * p)
        p = T(0.5000000000000011) + r * (T(0.16666666666666435) + r * p)
    return INT(T(shifted).view(INT) - ROUND_BITS), r + r * r * p


@exact_jit
def exp_T(x):
    """Return e^x; subnormal results are kept unless the kernel flushes them to 0."""
    x = MOST if x > MOST else x  # written so that NaN passes through
    x = LEAST if x < LEAST else x
    n, m = exp_parts_T(x)
    half = INT(n >> INT(1))  # 2^n alone would overflow before the result does
    return (m + T(1.0)) * power_of_two_T(half) * power_of_two_T(INT(n - half))


@exact_jit
def exp_of_negative_T(x):
    """Return e^x for x <= 0, or 0 where that is subnormal: a third faster, for softmax.

    An x above 0, which only rounding can produce, counts as 0.
    """
    x = T(0.0) if x > T(0.0) else x
    c = LEAST_NORMAL if x < LEAST_NORMAL else x
    n, m = exp_parts_T(c)
    power = power_of_two_T(n)
    return T(0.0) if x < LEAST_NORMAL else m * power + power


@exact_jit
def expm1_T(x):
    """Return e^x - 1, accurate near 0."""
    c = MOST if x > MOST else x
    c = LEAST_EXPM1 if c < LEAST_EXPM1 else c
    n, m = exp_parts_T(c)
    half = power_of_two_T(INT(n - INT(1)))
    y = (half * m + (half - T(0.5))) * T(2.0)
    return x if abs(x) < SMALL else y  # keeps -0 and tiny values


@exact_jit
def tanh_T(x):
    """Return (e^2a - 1) / (e^2a + 1) for a = |x|, with x's sign; e^2a - 1 as in expm1."""
    a = abs(x)
    a = MOST_TANH if a > MOST_TANH else a
    n, m = exp_parts_T(a + a)
    power = power_of_two_T(n)
    t = m * power + (power - T(1.0))
    return signed_as_T(t / (t + T(2.0)), x)


@exact_jit
def sigmoid_T(x):
    """Return 1 / (1 + e^-x), computed from e^-|x| <= 1 so that it cannot overflow."""
    e = exp_T(-abs(x))
    return (T(1.0) if x > T(0.0) else e) / (T(1.0) + e)


# ---- the order of floats -------------------------------------------------------------------------


@exact_jit
def order_T(x):
    """Return an integer that increases with x, so that a maximum can be vectorized.

    A maximum of floats cannot, since the compiler must respect NaN. A NaN lies beyond the infinity
    of its sign.
    """
    bits = T(x).view(INT)
    return INT(bits ^ INT((bits >> SIGN_PLACE) & REST))


@exact_jit
def unorder_T(key):
    """Return the float whose `order_T` is key."""
    return INT(key ^ INT((key >> SIGN_PLACE) & REST)).view(T)


# ---- logarithms ----------------------------------------------------------------------------------


@exact_jit
def log_parts_T(u):
    """Return (n, f): u = 2^n (1 + f), 1 + f from sqrt(1/2) to sqrt(2); u normal, positive."""
    bits = WORD(T(u).view(WORD) + WORD(ONE_BITS - HALF_ROOT))
    n = INT(INT(bits >> WORD(BITS)) - BIAS)
    f = WORD(WORD(bits & FRACTION) + HALF_ROOT).view(T) - T(1.0)
    return n, f


@exact_jit
def log_sum_T(n, f):
    """Return n ln 2 + ln(1 + f)."""
    s = f / (T(2.0) + f)
    z = s * s
    if SIZE == 4:
        whole = T(n)
        p = z * (T(0.66666776) + z * (T(0.39977586) + z * T(0.29870695)))
    else:  # most processors cannot convert int64 vectors: undo the ROUND trick
        whole = INT(n + ROUND_BITS).view(T) - ROUND
        p = T(0.18183561876628193) + z * (T(0.15314111203235994) + z * T(0.14795360415115308))
        p = T(0.2857142874188876) + z * (T(0.22222198622118527) + z * p)
        p = z * (T(0.6666666666666734) + z * (T(0.3999999999941706) + z * p))
    h = T(0.5) * f * f
    low = s * (h + p) + whole * LN2_REST
    return whole * LN2 - ((h - low) - f)


@exact_jit
def log_T(x):
    """Return the natural logarithm: -inf at 0, NaN below."""
    tiny = x < NORMAL
    n, f = log_parts_T(x * SCALE if tiny else x)
    y = log_sum_T(INT(n - SCALED) if tiny else n, f)
    y = y if x < T(math.inf) else x
    y = T(-math.inf) if x == T(0.0) else y
    return T(math.nan) if x < T(0.0) else y


@exact_jit
def log1p_T(x):
    """Return ln(1 + x), accurate near 0: add to f what 1 + x rounds away."""
    u = T(1.0) + x
    lost = x - (u - T(1.0)) if x < T(1.0) else T(1.0) - (u - x)
    n, f = log_parts_T(u)
    f = f + lost * power_of_two_T(INT(-n)) if x < LARGE else f
    y = log_sum_T(n, f)
    y = y if x < T(math.inf) else x
    y = T(-math.inf) if x == T(-1.0) else y
    y = T(math.nan) if x < T(-1.0) else y
    return x if abs(x) < SMALL else y


@exact_jit
def log2_T(x):
    """Return the base-2 logarithm, exact for powers of 2: -inf at 0, NaN below."""
    tiny = x < NORMAL
    n, f = log_parts_T(x * SCALE if tiny else x)
    n = INT(n - SCALED) if tiny else n
    y = T(n) + log_sum_T(INT(0), f) * T(1.4426950408889634)
    y = y if x < T(math.inf) else x
    y = T(-math.inf) if x == T(0.0) else y
    return T(math.nan) if x < T(0.0) else y


# ---- the error function --------------------------------------------------------------------------


@exact_jit
def erf_T(x):
    """Return 2 / sqrt(pi) times the integral of e^-t^2 from 0 to x; beyond 1 as 1 - e^q."""
    t = x * x
    if SIZE == 4:
        p = T(0.005187162) + t * (T(-0.0007997853) + t * T(7.806903e-05))
        p = T(0.11283579) + t * (T(-0.026853347) + t * p)
        p = T(0.12837917) + t * (T(-0.37612626) + t * p)
    else:
        p = T(1.3616950377448498e-08) + t * T(-7.608331887761768e-10)
        p = T(1.6444156394403798e-06) + t * (T(-1.618404262525164e-07) + t * p)
        p = T(0.00012055280513375697) + t * (T(-1.4924466037434782e-05) + t * p)
        p = T(0.005223977596742327) + t * (T(-0.0008548325485431844) + t * p)
        p = T(0.11283791670936952) + t * (T(-0.02686617064195963) + t * p)
        p = T(0.12837916709551256) + t * (T(-0.37612638903183343) + t * p)
    a = abs(x)
    v = (MOST_ERF if a > MOST_ERF else a) - T(1.0)
    if SIZE == 4:
        q = T(0.009465068) + v * (T(-0.0014986785) + v * T(9.720173e-05))
        q = T(-0.8431724) + v * (T(-0.041264623) + v * q)
        q = T(-1.8496056) + v * (T(-2.6389627) + v * q)
    else:
        q = T(1.2218032027773596e-10) + v * T(-4.994245416111107e-12)
        q = T(8.685388713869142e-09) + v * (T(-1.3473986238823085e-09) + v * q)
        q = T(5.978797243128857e-08) + v * (T(-3.404145117824969e-08) + v * q)
        q = T(-2.126892658665057e-06) + v * (T(2.0131211123917868e-07) + v * q)
        q = T(-2.7194811806639683e-05) + v * (T(9.666023857572673e-06) + v * q)
        q = T(0.00023731737148746375) + v * (T(2.6293983820775417e-05) + v * q)
        q = T(0.010033825225602486) + v * (T(-0.0019779014734117657) + v * q)
        q = T(-0.8431072563591074) + v * (T(-0.04156109803019664) + v * q)
        q = T(-1.8496055099332482) + v * (T(-2.6389675142347837) + v * q)
    n, m = exp_parts_T(q)
    far = T(1.0) - (m + T(1.0)) * power_of_two_T(n)
    far = -far if x < T(0.0) else far
    return far if a > T(1.0) else x + x * p


# ---- sine and cosine -----------------------------------------------------------------------------


@exact_jit
def quarter_turns_T(x):
    """Return (n, r) with x = n pi/2 + r and |r| <= pi/4; the last two bits of n are right.

    pi/2 is split into parts of 11 (33) bits so that n times a part is exact. It always is with
    fused multiply-add. Without it, n must have at most 13 (20) bits: |x| up to 12,000 (1,600,000).
    """
    shifted = x * T(0.6366197723675814) + ROUND
    n = shifted - ROUND
    if SIZE == 4:
        r = x - n * T(1.5703125) - n * T(0.0004837512969970703)
        r = r - n * T(7.549533620476723e-08) - n * T(2.5632829192545614e-12)
        return INT(T(shifted).view(INT)), r - n * T(6.123234e-17)
    r = x - n * T(1.5707963267341256) - n * T(6.077100506303966e-11)
    return INT(T(shifted).view(INT)), r - n * T(2.0222662487111665e-21) - n * T(8.4784276603689e-32)


@exact_jit
def sine_in_quarter_T(n, r):
    """Return sin(n pi/2 + r) for |r| <= pi/4."""
    t = r * r
    if SIZE == 4:
        s = T(-0.16666651) + t * (T(0.008331919) - t * T(0.00019483038))
        p = T(0.041666638) + t * (T(-0.0013886959) + t * T(2.439365e-05))
    else:
        s = T(-2.505045397174733e-08) + t * T(1.587954650229166e-10)
        s = T(-0.0001984126982398567) + t * (T(2.7557311709340714e-06) + t * s)
        s = T(-0.16666666666666602) + t * (T(0.008333333333315021) + t * s)
        p = T(2.0875469582014537e-09) + t * T(-1.1346890068603983e-11)
        p = T(2.4801587282637087e-05) + t * (T(-2.755731243100377e-07) + t * p)
        p = T(0.04166666666666653) + t * (T(-0.0013888888888862847) + t * p)
    sine = r + r * t * s
    y = T(1.0) - (T(0.5) * t - t * t * p) if n & INT(1) else sine
    return -y if n & INT(2) else y


@exact_jit
def sin_T(x):
    """Return sin(x), NaN for |x| above 10^6 (10^14), where floats are 1/16 (1/64) apart."""
    n, r = quarter_turns_T(x)
    y = sine_in_quarter_T(n, r) if abs(x) <= MOST_SINE else T(math.nan)
    return x if abs(x) < SMALL_SINE else y


@exact_jit
def cos_T(x):
    """Return cos(x), NaN for |x| above 10^6 (10^14)."""
    n, r = quarter_turns_T(x)
    return sine_in_quarter_T(INT(n + INT(1)), r) if abs(x) <= MOST_SINE else T(math.nan)


# ---- the angle of a point ------------------------------------------------------------------------


@exact_jit
def atan2_T(y, x):
    """Return the angle of point (x, y), from -pi to pi. (0, 0) gives 0 or pi by x's sign.

    In the eighth of a turn above the x-axis, the angle is arctan(low / high). In the upper half of
    that eighth, it is pi/4 + arctan((low - high) / (low + high)).
    """
    a, b = abs(y), abs(x)
    low, high = (b, a) if a > b else (a, b)
    scale = T(0.25) if high > T(1e30) else T(1.0)  # the sum must not overflow
    low, high = low * scale, high * scale
    steep = low > high * T(0.41421356)  # the tangent of a sixteenth of a turn
    top, bottom = (low - high, low + high) if steep else (low, high)
    t = T(0.0) if low == high else top / bottom  # both 0, or both infinite
    z = t * t
    if SIZE == 4:
        p = T(-0.3333295) + z * (T(0.19977722) + z * (T(-0.13877691) + z * T(0.08053503)))
    else:
        p = T(0.03806049035931833) + z * T(-0.017902743369774817)
        p = T(0.05847854594787024) + z * (T(-0.05039145722471445) + z * p)
        p = T(0.07692059828985516) + z * (T(-0.06663099420057866) + z * p)
        p = T(0.11111110782905426) + z * (T(-0.09090897738108378) + z * p)
        p = T(0.19999999999953613) + z * (T(-0.14285714280190132) + z * p)
        p = T(-0.333333333333332) + z * p
    eighth = steep or (low == high and high > T(0.0))
    angle = t + t * z * p
    angle = EIGHTH + (EIGHTH_REST + angle) if eighth else angle
    angle = T(2.0) * EIGHTH - (angle - T(2.0) * EIGHTH_REST) if a > b else angle
    is_left = T(x).view(INT) < INT(0)
    angle = T(4.0) * EIGHTH - (angle - T(4.0) * EIGHTH_REST) if is_left else angle
    return y + x if y != y or x != x else signed_as_T(angle, y)


# ---- integer quotients and remainders ------------------------------------------------------------


@exact_jit
def divide_T(a, b):
    """Return floor(|a| / |b|), and the exact remainder with the sign of a, like C's fmod.

    Long division: subtract b times the power of 2 that brings it next to what is left. The
    difference of two numbers within a factor of 2 is exact. A quotient from EXACT on is rounded.
    """
    q, r, d = T(0.0), abs(a), abs(b)
    if not r < T(math.inf) or not d > T(0.0):
        return T(math.nan), T(math.nan)
    while r >= d:
        n = INT((T(r).view(INT) >> BITS) - (T(d).view(INT) >> BITS))
        half = INT(n >> INT(1))
        times, rest = power_of_two_T(half), power_of_two_T(INT(n - half))
        t = d * times * rest
        if t > r:
            times, t = times * T(0.5), t * T(0.5)
        while r - t >= t:  # a subnormal b has leading zeros
            times, t = times + times, t + t
        q, r = q + times * rest, r - t
    return q if q < EXACT else abs(a / b), signed_as_T(r, a)


@exact_jit
def moved_T(r, b):
    """Return a remainder, moved to b's side of 0."""
    return r + b if (r != T(0.0)) & ((r < T(0.0)) != (b < T(0.0))) else r


@exact_jit
def rounded_down_T(a, b, q, r):
    """Return floor(a / b), or a / b for b = 0; q is floor(|a| / |b|), r what is left over."""
    is_negative = (T(a).view(INT) < INT(0)) != (T(b).view(INT) < INT(0))
    q = -q - (r != T(0.0)) if is_negative else q
    return a / b if b == T(0.0) else T(q)


@exact_jit
def remainder_T(a, b):
    """Return a - b floor(a / b) without rounding."""
    _, r = divide_T(a, b)
    return moved_T(r, b)


@exact_jit
def floor_divide_T(a, b):
    """Return floor(a / b) of the exact quotient, or a / b for b = 0."""
    q, r = divide_T(a, b)
    return rounded_down_T(a, b, q, r)
