"""Make random numbers on the CPU: loops over the blocks of random_functions.py.

T: a float for uniform and normal numbers, int64 for integers, uint32 for bits.
"""

# pyright: reportUndefinedVariable=false

_FILL = "void(i8,i8,i8,i8,i8)"
PER_BLOCK = I8(16 // SIZE)  # elements


@inline_jit
def fill(out, start, stop, block_of, counter, arguments):
    """Write elements [start, stop) of a call, made by block_of(counter + block, *arguments).

    First the whole blocks, in a loop that LLVM turns into vector code, then the edge: elements of
    the blocks that the range cuts at either end.
    """
    first = (start + PER_BLOCK - 1) // PER_BLOCK
    last = max(first, stop // PER_BLOCK)
    for block in range(first, last):
        values = block_of(counter + block, *arguments)
        out[PER_BLOCK * block] = values[0]
        out[PER_BLOCK * block + 1] = values[1]
        if SIZE == 4:
            out[PER_BLOCK * block + 2] = values[2]
            out[PER_BLOCK * block + 3] = values[3]
    inside = (last - first) * PER_BLOCK
    for k in range(stop - start - inside):
        i = start + k
        if i >= first * PER_BLOCK:
            i += inside
        out[i] = pick(i % PER_BLOCK, block_of(counter + i // PER_BLOCK, *arguments))


@lazy(_FILL)
def random_bits_T(out_at, key, counter, start, stop):
    """Write words of 32 random bits, uint32."""
    fill(T_at(out_at), start, stop, words_of_block, counter, (key,))


@lazy(_FILL)
def random_uniform_T(out_at, key, counter, start, stop):
    """Write floats in [0, 1)."""
    fill(T_at(out_at), start, stop, uniform_block_T, counter, (key,))


@lazy(_FILL)
def random_normal_T(out_at, key, counter, start, stop):
    """Write floats with mean 0 and variance 1."""
    fill(T_at(out_at), start, stop, normal_block_T, counter, (key,))


@lazy("void(i8,i8,i8,i8,i8,i8,i8)")
def random_integers_T(out_at, low, high, key, counter, start, stop):
    """Write int64 from low to high - 1; high > low."""
    span = U8(high) - U8(low)
    fill(T_at(out_at), start, stop, integer_block_T, counter, (key, low, span))
