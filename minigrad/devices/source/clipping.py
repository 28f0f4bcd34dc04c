"""Clip gradients: norms of many, and their scaling, in one call each.

T: their type; REAL: the type to compute in.
"""

# pyright: reportUndefinedVariable=false


@lazy("void(i8,i8,i8)")
def squares_T(table_at, rows, sums_at):
    """Set sums[r] to array r's sum of squares, in float64. Table rows: (address, elements)."""
    table, sums = i8_at(table_at), f8_at(sums_at)
    for r in range(rows):
        x, total = T_at(table[2 * r]), F8(0)
        for i in range(table[2 * r + 1]):
            total = plus(total, F8(x[i]) * F8(x[i]))
        sums[r] = total


@lazy("void(i8,i8,i8)")
def scale_T(table_at, rows, factors_at):
    """Multiply array r by factors[r]. Table rows: (address, elements)."""
    table, factors = i8_at(table_at), f8_at(factors_at)
    for r in range(rows):
        x, factor = T_at(table[2 * r]), REAL(factors[r])
        for i in range(table[2 * r + 1]):
            x[i] *= factor
