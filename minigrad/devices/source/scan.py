"""Running sums and argmax/argmin along one axis of x (outer, n, inner) in C order.

A range is of the outer axis if is_outer, else of the inner one.
"""

# pyright: reportUndefinedVariable=false

# Sums run in this type; those of a few columns are on the stack.
SUM, sums_on_stack = (I8, columns_i8) if T is I8 else (F8, columns_f8)
ZERO = SUM(-0.0)  # to which -0 can be added


@lazy("void(i8,i8,i8,i8,i8,i8,i8,i8)")
def cumsum_T(x_at, out_at, outer, n, inner, is_outer, start, stop):
    """Set out[o, i, j] to the sum of x[o, 0 to i, j]. Float sums run in float64."""
    if is_outer:
        x_at, out_at = x_at + start * n * inner * SIZE, out_at + start * n * inner * SIZE
        outer, start, stop = stop - start, I8(0), inner
    x, out, totals = T_at(x_at), T_at(out_at), sums_on_stack()
    for o in range(outer):
        if inner == 1 and start < stop:
            total = ZERO
            for i in range(n):
                total += x[o * n + i]
                out[o * n + i] = T(total)
            continue
        for low in range(start, stop, COLUMNS):
            high = min(low + COLUMNS, stop)
            for j in range(low, high):
                totals[j - low] = ZERO
            for i in range(n):
                row = (o * n + i) * inner
                for j in range(low, high):
                    total = totals[j - low] + SUM(x[row + j])
                    totals[j - low] = total
                    out[row + j] = T(total)


@lazy("void(i8,i8,i8,i8,i8,i8,i8,i8,i8)")
def arg_T(x_at, out_at, outer, n, inner, is_max, is_outer, start, stop):
    """Set out[o, j] to the first i of the largest (or smallest) x[o, i, j], or of a NaN."""
    if is_outer:
        x_at, out_at = x_at + start * n * inner * SIZE, out_at + start * inner * 8
        outer, start, stop = stop - start, I8(0), inner
    x, out = T_at(x_at), i8_at(out_at)
    for o in range(outer):
        for j in range(start, stop):
            best, place = x[o * n * inner + j], I8(0)
            for i in range(1, n):
                if best != best:
                    break
                value = x[(o * n + i) * inner + j]
                if value != value or (value > best if is_max else value < best):
                    best, place = value, I8(i)
            out[o * inner + j] = place
