"""A function that generated GPU kernels call: division of indices by numbers known before."""

# pyright: reportUndefinedVariable=false


@exact_jit
def quotient(i, multiplier, shift):
    """Return i // n for 0 <= i < 2^31 without dividing, by the numbers `division` makes of n."""
    i = U4(i)
    high = U4(U8(U8(i) * U8(multiplier)) >> U8(32))
    return I4(U4(high + i) >> shift)
