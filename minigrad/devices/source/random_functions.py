"""Philox-4x32-10: random numbers that are a function of a key and a counter, with no state.

Block b of a call is philox(counter + b, key): four words of 32 bits. Element i of a call depends
only on (key, counter, i), so a call may be split anywhere into ranges, one per thread. A call that
made n elements has used n / (elements per block) counters, rounded up: the next one must advance by
as many. Elements per block: 4 for bits and float32, 2 for float64 and integers.

These functions serve the kernels of every device: the numbers are the same on all of them.

The function, and the vectors that tests/devices/test_random.py holds it to: J. K. Salmon, M. A.
Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

# pyright: reportUndefinedVariable=false


@exact_jit
def philox(c0, c1, c2, c3, k0, k1):
    """Run ten rounds on the counter (c0 lowest) with the key (k0, k1); return four words."""
    for _ in range(10):
        even = U8(c0) * U8(0xD2511F53)
        odd = U8(c2) * U8(0xCD9E8D57)
        c0, c1, c2, c3 = (
            U4(U4(odd >> U8(32)) ^ c1 ^ k0),
            U4(odd),
            U4(U4(even >> U8(32)) ^ c3 ^ k1),
            U4(even),
        )
        k0, k1 = U4(k0 + U4(0x9E3779B9)), U4(k1 + U4(0xBB67AE85))
    return c0, c1, c2, c3


@exact_jit
def words_of_block(block, key):
    """Return a block's four words: block and key have 64 bits each, upper counter words are 0."""
    b, k = U8(block), U8(key)
    return philox(U4(b), U4(b >> U8(32)), U4(0), U4(0), U4(k), U4(k >> U8(32)))


@exact_jit
def fraction_f4(word):
    """Convert one word to a multiple of 2^-24 in [0, 1)."""
    return F4(I4(word >> U4(8))) * F4(2.0**-24)


@exact_jit
def fraction_f8(high, low):
    """Convert two words to a multiple of 2^-53 in [0, 1)."""
    return (F8(I4(high >> U4(5))) * F8(67108864.0) + F8(I4(low >> U4(6)))) * F8(2.0**-53)


@exact_jit
def normal_pair_f4(a, b):
    """Convert two words to two normal deviates, |z| <= 6.7 (Box and Muller, 1958).

    Word a gives the radius, from 31 bits in (0, 1]; b gives the angle: its upper two bits the
    quarter turn, the rest a place within it.
    """
    u = F4(I4(a >> U4(1))) * F4(2.0**-31) + F4(2.0**-32)
    radius = F4(math.sqrt(F4(-2.0) * log_f4(u)))
    quarter, r = I4(b >> U4(30)), F4(I4(U4(b << U4(2)))) * F4(math.pi * 2.0**-33)
    sine = sine_in_quarter_f4(quarter, r)
    cosine = sine_in_quarter_f4(I4(quarter + I4(1)), r)
    return radius * cosine, radius * sine


@exact_jit
def normal_pair_f8(a, b, c, d):
    """Convert four words to two normal deviates, |z| <= 8.6."""
    radius = math.sqrt(F8(-2.0) * log_f8(F8(1.0) - fraction_f8(a, b)))
    place = F8(I4(U4(c << U4(2)))) + F8(I4(d >> U4(1))) * F8(2.0**-29)
    quarter, r = I8(c >> U4(30)), place * F8(math.pi * 2.0**-33)
    return radius * sine_in_quarter_f8(quarter + I8(1), r), radius * sine_in_quarter_f8(quarter, r)


@exact_jit
def scaled_i8(a, b, low, span):
    """Return low + floor(w span / 2^64) for the word pair w = 2^32 a + b; span is unsigned.

    Each value has a probability within 2^-64 of 1 / span.
    """
    half = U8(0xFFFFFFFF)
    s0, s1 = span & half, span >> U8(32)
    middle = U8(a) * s0 + ((U8(b) * s0) >> U8(32))
    other = U8(b) * s1 + (middle & half)
    return I8(U8(low) + U8(a) * s1 + (middle >> U8(32)) + (other >> U8(32)))


@exact_jit
def pick(k, values):
    """Return the k-th of two or four values."""
    if len(values) == 2:
        return values[1] if k & 1 else values[0]
    return (values[3] if k & 1 else values[2]) if k & 2 else (values[1] if k & 1 else values[0])


@exact_jit
def uniform_block_f4(block, key):
    """Return four multiples of 2^-24 in [0, 1)."""
    a, b, c, d = words_of_block(block, key)
    return fraction_f4(a), fraction_f4(b), fraction_f4(c), fraction_f4(d)


@exact_jit
def uniform_block_f8(block, key):
    """Return two multiples of 2^-53 in [0, 1)."""
    a, b, c, d = words_of_block(block, key)
    return fraction_f8(a, b), fraction_f8(c, d)


@exact_jit
def normal_block_f4(block, key):
    """Return four normal deviates."""
    a, b, c, d = words_of_block(block, key)
    return normal_pair_f4(a, b) + normal_pair_f4(c, d)


@exact_jit
def normal_block_f8(block, key):
    """Return two normal deviates."""
    a, b, c, d = words_of_block(block, key)
    return normal_pair_f8(a, b, c, d)


@exact_jit
def integer_block_i8(block, key, low, span):
    """Return two integers from low to low + span - 1."""
    a, b, c, d = words_of_block(block, key)
    return scaled_i8(a, b, low, span), scaled_i8(c, d, low, span)
