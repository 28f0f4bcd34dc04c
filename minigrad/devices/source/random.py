"""Random numbers on the CPU: loops over the blocks of random_functions.py."""

# pyright: reportUndefinedVariable=false

# Compiled at the first call, for int64 arguments: few programs need all of these kernels.
lazy_jit = kept_jit(nogil=True, error_model="numpy", fastmath=FLAGS)

# Each kernel fills elements [start, stop) of a call: first the whole blocks, in a loop that LLVM
# turns into vector code, then the edge: elements of the blocks that the range cuts at either end.


@exact_jit
def whole_blocks(start, stop, size):
    """(first, last): the whole blocks [first, last) of `size` elements within [start, stop)."""
    first = (start + size - I8(1)) // size
    return first, max(first, stop // size)


@exact_jit
def edge_element(k, start, first, last, size):
    """Index of the k-th element of the range that lies outside its whole blocks."""
    i = start + k
    return i if i < first * size else i + (last - first) * size


@lazy_jit
def random_bits(out_at, start, stop, key, counter):
    """Words of 32 random bits, uint32."""
    out = u4_at(out_at)
    first, last = whole_blocks(start, stop, 4)
    for block in range(first, last):
        values = words_of_block(counter + block, key)
        out[4 * block] = values[0]
        out[4 * block + 1] = values[1]
        out[4 * block + 2] = values[2]
        out[4 * block + 3] = values[3]
    for k in range(stop - start - (last - first) * 4):
        i = edge_element(k, start, first, last, 4)
        out[i] = pick(i % 4, words_of_block(counter + i // 4, key))


@lazy_jit
def random_uniform_f4(out_at, start, stop, key, counter):
    """Float32 in [0, 1)."""
    out = f4_at(out_at)
    first, last = whole_blocks(start, stop, 4)
    for block in range(first, last):
        values = uniform_block_f4(counter + block, key)
        out[4 * block] = values[0]
        out[4 * block + 1] = values[1]
        out[4 * block + 2] = values[2]
        out[4 * block + 3] = values[3]
    for k in range(stop - start - (last - first) * 4):
        i = edge_element(k, start, first, last, 4)
        out[i] = pick(i % 4, uniform_block_f4(counter + i // 4, key))


@lazy_jit
def random_uniform_f8(out_at, start, stop, key, counter):
    """Float64 in [0, 1)."""
    out = f8_at(out_at)
    first, last = whole_blocks(start, stop, 2)
    for block in range(first, last):
        values = uniform_block_f8(counter + block, key)
        out[2 * block] = values[0]
        out[2 * block + 1] = values[1]
    for k in range(stop - start - (last - first) * 2):
        i = edge_element(k, start, first, last, 2)
        out[i] = pick(i % 2, uniform_block_f8(counter + i // 2, key))


@lazy_jit
def random_normal_f4(out_at, start, stop, key, counter):
    """Float32 with mean 0 and variance 1."""
    out = f4_at(out_at)
    first, last = whole_blocks(start, stop, 4)
    for block in range(first, last):
        values = normal_block_f4(counter + block, key)
        out[4 * block] = values[0]
        out[4 * block + 1] = values[1]
        out[4 * block + 2] = values[2]
        out[4 * block + 3] = values[3]
    for k in range(stop - start - (last - first) * 4):
        i = edge_element(k, start, first, last, 4)
        out[i] = pick(i % 4, normal_block_f4(counter + i // 4, key))


@lazy_jit
def random_normal_f8(out_at, start, stop, key, counter):
    """Float64 with mean 0 and variance 1."""
    out = f8_at(out_at)
    first, last = whole_blocks(start, stop, 2)
    for block in range(first, last):
        values = normal_block_f8(counter + block, key)
        out[2 * block] = values[0]
        out[2 * block + 1] = values[1]
    for k in range(stop - start - (last - first) * 2):
        i = edge_element(k, start, first, last, 2)
        out[i] = pick(i % 2, normal_block_f8(counter + i // 2, key))


@lazy_jit
def random_integers_i8(out_at, start, stop, low, high, key, counter):
    """Int64 from low to high - 1; high > low."""
    out = i8_at(out_at)
    span = U8(high) - U8(low)
    first, last = whole_blocks(start, stop, 2)
    for block in range(first, last):
        values = integer_block_i8(counter + block, key, low, span)
        out[2 * block] = values[0]
        out[2 * block + 1] = values[1]
    for k in range(stop - start - (last - first) * 2):
        i = edge_element(k, start, first, last, 2)
        out[i] = pick(i % 2, integer_block_i8(counter + i // 2, key, low, span))
