"""Random numbers: a thread makes one block of random_functions.py, four float32 or two others."""

# pyright: reportUndefinedVariable=false


@exact_jit
def store_four(out, at, count, is_wide, values):
    """Elements at to at + 3, as far as there are any before `count`."""
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


@exact_jit
def store_two(out, at, count, values):
    """Elements at and at + 1, as far as they lie before `count`."""
    a, b = values
    out[at] = a
    if at + 1 < count:
        out[at + 1] = b


@exact_jit
def uniform_f4(out, count, is_wide, key, counter):
    """Float32 in [0, 1); is_wide: out begins at a multiple of 16 bytes."""
    for block in range(cuda.grid(1), (count + 3) // 4, cuda.gridsize(1)):
        store_four(out, 4 * block, count, is_wide, uniform_block_f4(counter + block, key))


@exact_jit
def normal_f4(out, count, is_wide, key, counter):
    """Float32 with mean 0 and variance 1."""
    for block in range(cuda.grid(1), (count + 3) // 4, cuda.gridsize(1)):
        store_four(out, 4 * block, count, is_wide, normal_block_f4(counter + block, key))


@exact_jit
def uniform_f8(out, count, key, counter):
    """Float64 in [0, 1)."""
    for block in range(cuda.grid(1), (count + 1) // 2, cuda.gridsize(1)):
        store_two(out, 2 * block, count, uniform_block_f8(counter + block, key))


@exact_jit
def normal_f8(out, count, key, counter):
    """Float64 with mean 0 and variance 1."""
    for block in range(cuda.grid(1), (count + 1) // 2, cuda.gridsize(1)):
        store_two(out, 2 * block, count, normal_block_f8(counter + block, key))


@exact_jit
def integers_i8(out, count, low, high, key, counter):
    """Int64 from low to high - 1; high > low."""
    span = U8(high) - U8(low)
    for block in range(cuda.grid(1), (count + 1) // 2, cuda.gridsize(1)):
        store_two(out, 2 * block, count, integer_block_i8(counter + block, key, low, span))
