"""Rounds floats to fewer digits by integers, on every device: bfloat16 has no instructions there.

A bfloat16 is the upper half of a float32. Here it is a U4 below 2^16.
"""

# pyright: reportUndefinedVariable=false


@exact_jit
def to_odd(x):
    """Return a float64 as float32, its last bit 1 if it is inexact: then fewer bits round once."""
    near = F4(x)
    if F8(near) == x or x != x:
        return near
    word = near.view(U4)
    if abs(F8(near)) > abs(x):
        word = U4(word - U4(1))
    return U4(word | U4(1)).view(F4)


@exact_jit
def f4_of_b2(bits):
    """Return the float32 of a bfloat16's bits."""
    return U4(U4(bits) << U4(16)).view(F4)


@exact_jit
def b2_of_f4(x):
    """Return the bits of the bfloat16 nearest to a float32, to even between two."""
    word = F4(x).view(U4)
    even = U4(U4(word >> U4(16)) & U4(1))
    near = U4(U4(word + U4(U4(0x7FFF) + even)) >> U4(16))
    return U4(U4(U4(word >> U4(16)) & U4(0x8000)) | U4(0x7FC0)) if x != x else near


@exact_jit
def b2_of_f8(x):
    """Return the bits of the bfloat16 nearest to a float64, to even between two."""
    return b2_of_f4(to_odd(x))
