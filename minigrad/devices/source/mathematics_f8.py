"""Elementary functions of float64: mathematics_f4.py in the other precision, function by function.

The polynomials have more terms, the reductions more bits; rounding to an integer adds 1.5 * 2^52.
Most processors cannot convert vectors of int64 to float64: there the same sum serves backwards.
"""

# pyright: reportUndefinedVariable=false

# ---- the exponential function and its relatives --------------------------------------------------


@exact_jit
def power_of_two_f8(n):
    """2^n for an integer n from -1022 to 1023."""
    return I8((n + I8(1023)) << I8(52)).view(F8)


@exact_jit
def signed_as_f8(y, x):
    """y >= 0 with the sign of x."""
    return I8(F8(y).view(I8) | (F8(x).view(I8) & I8(-0x7FFFFFFFFFFFFFFF - 1))).view(F8)


@exact_jit
def exp_parts_f8(x):
    """(n, m) with e^x = 2^n (1 + m) and |m| < 0.42, for |x| < 2000."""
    shifted = x * F8(1.4426950408889634) + F8(6755399441055744.0)
    n = shifted - F8(6755399441055744.0)
    r = x - n * F8(0.6931471805598903) - n * F8(5.497923018708371e-14)
    p = F8(2.7630667266917875e-07) + r * F8(2.5026955137046105e-08)
    p = F8(2.4801491874333814e-05) + r * (F8(2.7557526423919343e-06) + r * p)
    p = F8(0.0013888888944850642) + r * (F8(0.0001984126955491611) + r * p)
    p = F8(0.04166666666652579) + r * (F8(0.008333333333475829) + r * p)
    p = F8(0.5000000000000011) + r * (F8(0.16666666666666435) + r * p)
    return F8(shifted).view(I8) - I8(0x4338000000000000), r + r * r * p


@exact_jit
def exp_f8(x):
    """e^x; results below 2^-1022 keep what bits they have, unless the kernel flushes them to 0."""
    x = F8(710.0) if x > F8(710.0) else x
    x = F8(-746.0) if x < F8(-746.0) else x
    n, m = exp_parts_f8(x)
    half = n >> I8(1)
    return (m + F8(1.0)) * power_of_two_f8(half) * power_of_two_f8(n - half)


@exact_jit
def exp_of_negative_f8(x):
    """As exp_of_negative_f4: 0 below 2^-1022."""
    x = F8(0.0) if x > F8(0.0) else x
    c = F8(-708.39) if x < F8(-708.39) else x
    n, m = exp_parts_f8(c)
    power = power_of_two_f8(n)
    return F8(0.0) if x < F8(-708.39) else m * power + power


@exact_jit
def expm1_f8(x):
    """e^x - 1, accurate near 0."""
    c = F8(710.0) if x > F8(710.0) else x
    c = F8(-40.0) if c < F8(-40.0) else c
    n, m = exp_parts_f8(c)
    half = power_of_two_f8(n - I8(1))
    y = (half * m + (half - F8(0.5))) * F8(2.0)
    return x if abs(x) < F8(1e-17) else y


@exact_jit
def tanh_f8(x):
    """(e^2a - 1) / (e^2a + 1) of a = |x|, with the sign of x; e^2a - 1 as expm1 has it."""
    a = abs(x)
    a = F8(20.0) if a > F8(20.0) else a  # 1 from 19.07 on
    n, m = exp_parts_f8(a + a)
    power = power_of_two_f8(n)
    t = m * power + (power - F8(1.0))
    return signed_as_f8(t / (t + F8(2.0)), x)


@exact_jit
def sigmoid_f8(x):
    """1 / (1 + e^-x), written so that neither end overflows: e^-|x| is at most 1."""
    e = exp_f8(-abs(x))
    return (F8(1.0) if x > F8(0.0) else e) / (F8(1.0) + e)


# ---- the order of floats -------------------------------------------------------------------------


@exact_jit
def order_f8(x):
    """An integer that grows with x, as order_f4."""
    bits = F8(x).view(I8)
    return bits ^ ((bits >> I8(63)) & I8(0x7FFFFFFFFFFFFFFF))


@exact_jit
def unorder_f8(key):
    """The float of an integer from `order_f8`."""
    return I8(key ^ ((key >> I8(63)) & I8(0x7FFFFFFFFFFFFFFF))).view(F8)


# ---- logarithms ----------------------------------------------------------------------------------


@exact_jit
def log_parts_f8(u):
    """(n, f) with u = 2^n (1 + f) and 1 + f between sqrt(1/2) and sqrt(2); u normal, positive."""
    bits = F8(u).view(U8) + U8(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
    n = I8(bits >> U8(52)) - I8(1023)
    f = U8((bits & U8(0xFFFFFFFFFFFFF)) + U8(0x3FE6A09E667F3BCD)).view(F8) - F8(1.0)
    return n, f


@exact_jit
def log_sum_f8(n, f):
    """The sum n ln 2 + ln(1 + f)."""
    s = f / (F8(2.0) + f)
    z = s * s
    p = F8(0.18183561876628193) + z * (F8(0.15314111203235994) + z * F8(0.14795360415115308))
    p = F8(0.2857142874188876) + z * (F8(0.22222198622118527) + z * p)
    p = z * (F8(0.6666666666666734) + z * (F8(0.3999999999941706) + z * p))
    h = F8(0.5) * f * f
    n = I8(n + I8(0x4338000000000000)).view(F8) - F8(6755399441055744.0)  # F8(n), as vectors can
    low = s * (h + p) + n * F8(5.497923018708371e-14)
    return n * F8(0.6931471805598903) - ((h - low) - f)


@exact_jit
def log_f8(x):
    """Natural logarithm: -inf at 0, NaN below."""
    tiny = x < F8(2.2250738585072014e-308)
    n, f = log_parts_f8(x * F8(18014398509481984.0) if tiny else x)
    y = log_sum_f8(n - I8(54) if tiny else n, f)
    y = y if x < F8(math.inf) else x
    y = F8(-math.inf) if x == F8(0.0) else y
    return F8(math.nan) if x < F8(0.0) else y


@exact_jit
def log1p_f8(x):
    """ln(1 + x), accurate near 0: what 1 + x rounds away goes back into f."""
    u = F8(1.0) + x
    lost = x - (u - F8(1.0)) if x < F8(1.0) else F8(1.0) - (u - x)
    n, f = log_parts_f8(u)
    f = f + lost * power_of_two_f8(-n) if x < F8(1e18) else f
    y = log_sum_f8(n, f)
    y = y if x < F8(math.inf) else x
    y = F8(-math.inf) if x == F8(-1.0) else y
    y = F8(math.nan) if x < F8(-1.0) else y
    return x if abs(x) < F8(1e-17) else y


# ---- the error function --------------------------------------------------------------------------


@exact_jit
def erf_f8(x):
    """2 / sqrt(pi) times the integral of e^-t^2 from 0 to x; beyond 1 as 1 - e^q."""
    t = x * x
    p = F8(1.3616950377448498e-08) + t * F8(-7.608331887761768e-10)
    p = F8(1.6444156394403798e-06) + t * (F8(-1.618404262525164e-07) + t * p)
    p = F8(0.00012055280513375697) + t * (F8(-1.4924466037434782e-05) + t * p)
    p = F8(0.005223977596742327) + t * (F8(-0.0008548325485431844) + t * p)
    p = F8(0.11283791670936952) + t * (F8(-0.02686617064195963) + t * p)
    p = F8(0.12837916709551256) + t * (F8(-0.37612638903183343) + t * p)
    a = abs(x)
    v = (F8(6.0) if a > F8(6.0) else a) - F8(1.0)  # 1 from 5.93 on
    q = F8(1.2218032027773596e-10) + v * F8(-4.994245416111107e-12)
    q = F8(8.685388713869142e-09) + v * (F8(-1.3473986238823085e-09) + v * q)
    q = F8(5.978797243128857e-08) + v * (F8(-3.404145117824969e-08) + v * q)
    q = F8(-2.126892658665057e-06) + v * (F8(2.0131211123917868e-07) + v * q)
    q = F8(-2.7194811806639683e-05) + v * (F8(9.666023857572673e-06) + v * q)
    q = F8(0.00023731737148746375) + v * (F8(2.6293983820775417e-05) + v * q)
    q = F8(0.010033825225602486) + v * (F8(-0.0019779014734117657) + v * q)
    q = F8(-0.8431072563591074) + v * (F8(-0.04156109803019664) + v * q)
    n, m = exp_parts_f8(F8(-1.8496055099332482) + v * (F8(-2.6389675142347837) + v * q))
    far = F8(1.0) - (m + F8(1.0)) * power_of_two_f8(n)
    far = -far if x < F8(0.0) else far
    return far if a > F8(1.0) else x + x * p


# ---- sine and cosine -----------------------------------------------------------------------------


@exact_jit
def quarter_turns_f8(x):
    """(n, r) with x = n pi/2 + r and |r| <= pi/4; the last two bits of n are right.

    pi/2 comes in parts of 33 bits, so that n times a part is exact: always with fused multiply-add,
    and without it while n has no more than 20 bits, which is for |x| up to 1,600,000.
    """
    shifted = x * F8(0.6366197723675814) + F8(6755399441055744.0)
    n = shifted - F8(6755399441055744.0)
    r = x - n * F8(1.5707963267341256) - n * F8(6.077100506303966e-11)
    return F8(shifted).view(I8), r - n * F8(2.0222662487111665e-21) - n * F8(8.4784276603689e-32)


@exact_jit
def sine_in_quarter_f8(n, r):
    """sin(n pi/2 + r) for |r| <= pi/4."""
    t = r * r
    p = F8(2.7557311709340714e-06) + t * (
        F8(-2.505045397174733e-08) + t * F8(1.587954650229166e-10)
    )
    p = F8(0.008333333333315021) + t * (F8(-0.0001984126982398567) + t * p)
    sine = r + r * t * (F8(-0.16666666666666602) + t * p)
    p = F8(-2.755731243100377e-07) + t * (
        F8(2.0875469582014537e-09) + t * F8(-1.1346890068603983e-11)
    )
    p = F8(-0.0013888888888862847) + t * (F8(2.4801587282637087e-05) + t * p)
    p = F8(0.04166666666666653) + t * p
    y = F8(1.0) - (F8(0.5) * t - t * t * p) if n & I8(1) else sine
    return -y if n & I8(2) else y


@exact_jit
def sin_f8(x):
    """Sine; NaN where |x| exceeds 10^14: neighbouring floats there are 1/64 apart."""
    n, r = quarter_turns_f8(x)
    y = sine_in_quarter_f8(n, r) if abs(x) <= F8(1e14) else F8(math.nan)
    return x if abs(x) < F8(1e-9) else y


@exact_jit
def cos_f8(x):
    """Cosine; NaN where |x| exceeds 10^14: neighbouring floats there are 1/64 apart."""
    n, r = quarter_turns_f8(x)
    return sine_in_quarter_f8(n + I8(1), r) if abs(x) <= F8(1e14) else F8(math.nan)
