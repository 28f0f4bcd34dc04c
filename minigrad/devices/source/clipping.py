"""Clipping: norms of many gradients, and their scaling, in one call each."""

# pyright: reportUndefinedVariable=false

# Compiled when somebody clips first.
lazy_jit = kept_jit(nogil=True, error_model="numpy", fastmath=FLAGS)


@inline_jit
def squares_range(x, n):
    """The sum of squares, in float64."""
    total = F8(0)
    for i in range(n):
        total = plus(total, F8(x[i]) * F8(x[i]))
    return total


@lazy_jit
def squares_f4(table_at, rows, sums_at, first, last):
    """sums[r] = sum of squares of array r. Rows of the table: (address, elements)."""
    table, sums = i8_at(table_at), f8_at(sums_at)
    for r in range(rows):
        sums[r] = squares_range(f4_at(table[2 * r]), table[2 * r + 1])


@lazy_jit
def squares_f8(table_at, rows, sums_at, first, last):
    """As squares_f4, for float64."""
    table, sums = i8_at(table_at), f8_at(sums_at)
    for r in range(rows):
        sums[r] = squares_range(f8_at(table[2 * r]), table[2 * r + 1])


@lazy_jit
def scale_f4(table_at, rows, factors_at, first, last):
    """Multiplies array r by factors[r]. Rows of the table: (address, elements)."""
    table, factors = i8_at(table_at), f8_at(factors_at)
    for r in range(rows):
        x, factor = f4_at(table[2 * r]), F4(factors[r])
        for i in range(table[2 * r + 1]):
            x[i] *= factor


@lazy_jit
def scale_f8(table_at, rows, factors_at, first, last):
    """As scale_f4, for float64."""
    table, factors = i8_at(table_at), f8_at(factors_at)
    for r in range(rows):
        x, factor = f8_at(table[2 * r]), factors[r]
        for i in range(table[2 * r + 1]):
            x[i] *= factor
