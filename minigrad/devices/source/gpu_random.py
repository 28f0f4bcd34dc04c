"""Make random numbers: a thread makes a block of random_functions.py, four elements or two.

An eager call passes key and counter as numbers. A recorded launch reads them from memory, since
they change at each call: state[0] is the key, state[1] is added to the counter.
"""

# pyright: reportUndefinedVariable=false

PER_BLOCK = 16 // SIZE


@exact_jit
def store_block(out, block, count, is_wide, values):
    """Store the elements of a block that lie before `count`."""
    at = PER_BLOCK * block
    if SIZE == 4:
        a, b, c, d = values
        if is_wide and at + 3 < count:
            store4(out, at, a, b, c, d)
        else:
            out[at] = a
            if at + 1 < count:
                out[at + 1] = b
            if at + 2 < count:
                out[at + 2] = c
            if at + 3 < count:
                out[at + 3] = d
    else:
        a, b = values
        out[at] = a
        if at + 1 < count:
            out[at + 1] = b


@exact_jit
def uniform(out, count, is_wide, key, counter):
    """Fill out with numbers in [0, 1); is_wide: out begins at a multiple of 16 bytes."""
    for block in range(cuda.grid(1), (count + PER_BLOCK - 1) // PER_BLOCK, cuda.gridsize(1)):
        store_block(out, block, count, is_wide, uniform_block_T(counter + block, key))


@exact_jit
def normal(out, count, is_wide, key, counter):
    """Fill out with numbers of mean 0 and variance 1."""
    for block in range(cuda.grid(1), (count + PER_BLOCK - 1) // PER_BLOCK, cuda.gridsize(1)):
        store_block(out, block, count, is_wide, normal_block_T(counter + block, key))


@exact_jit
def integers(out, count, low, high, key, counter):
    """Fill out with int64 from low to high - 1; high > low."""
    span = U8(high) - U8(low)
    for block in range(cuda.grid(1), (count + PER_BLOCK - 1) // PER_BLOCK, cuda.gridsize(1)):
        store_block(out, block, count, 0, integer_block_T(counter + block, key, low, span))


@exact_jit
def uniform_later(out, count, is_wide, state, counter):
    """Run uniform with the state in memory."""
    uniform(out, count, is_wide, state[0], state[1] + counter)


@exact_jit
def normal_later(out, count, is_wide, state, counter):
    """Run normal with the state in memory."""
    normal(out, count, is_wide, state[0], state[1] + counter)


@exact_jit
def integers_later(out, count, low, high, state, counter):
    """Run integers with the state in memory."""
    integers(out, count, low, high, state[0], state[1] + counter)
