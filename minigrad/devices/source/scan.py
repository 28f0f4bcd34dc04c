"""Running sums and argmax/argmin along one axis of x (outer, n, inner) in C order.

A range is of the outer axis if is_outer, else of the inner one.
"""

# pyright: reportUndefinedVariable=false

# Sums run in this type; those of a few columns are on the stack.
SUM, sums_on_stack = (I8, columns_i8) if T is I8 else (F8, columns_f8)
ZERO = SUM(-0.0)  # to which -0 can be added
of_columns = {F4: columns_f4, F8: columns_f8, I8: columns_i8}[T]


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


# The index of an extreme is found in two steps, neither with a branch per element: the extremes
# of blocks, then the first place of the extreme of these within its block. A block is ELEMENTS of a
# row, or ROWS of many columns: a first row, and then fours.
ELEMENTS, ROWS = 128, 33


@exact_jit
def turned_T(x, is_max):
    """Return x, or for a minimum what orders numbers the other way round: -x, of an int ~x."""
    if T is I8:
        return x ^ (I8(0) if is_max else I8(-1))
    return x * (T(1) if is_max else T(-1))


@exact_jit
def first_T(x, begin, step, count, best, is_max):
    """Return the first k below count where x[begin + k * step], turned, is best, or NaN as it."""
    for k in range(count):
        value = turned_T(x[begin + k * step], is_max)
        if value == best or (value != value and best != best):
            return I8(k)
    return I8(0)


@exact_jit
def arg_row_T(x, begin, n, is_max):
    """Return the place of the extreme of n neighbours from x[begin] on."""
    best, start = turned_T(x[begin], is_max), I8(0)
    for low in range(0, n, ELEMENTS):
        part = turned_T(x[begin + low], is_max)
        for i in range(low, min(low + ELEMENTS, n)):
            part = largest_of(turned_T(x[begin + i], is_max), part)
        if part > best or part != part:
            best, start = part, I8(low)
            if part != part:
                break
    return start + first_T(x, begin + start, 1, min(ELEMENTS, n - start), best, is_max)


@exact_jit
def block_of_columns_T(x, begin, rows, inner, width, is_max, parts):
    """Set parts[j] to the extreme of x[begin + i * inner + j] over i below rows, turned."""
    for j in range(width):
        parts[j] = turned_T(x[begin + j], is_max)
    i = 1
    while i + 4 <= rows:
        a = begin + i * inner
        b, c, d = a + inner, a + 2 * inner, a + 3 * inner
        for j in range(width):
            part = largest_of(turned_T(x[a + j], is_max), parts[j])
            part = largest_of(turned_T(x[b + j], is_max), part)
            part = largest_of(turned_T(x[c + j], is_max), part)
            parts[j] = largest_of(turned_T(x[d + j], is_max), part)
        i += 4
    while i < rows:
        for j in range(width):
            parts[j] = largest_of(turned_T(x[begin + i * inner + j], is_max), parts[j])
        i += 1


@lazy("void(i8,i8,i8,i8,i8,i8,i8,i8,i8)")
def arg_T(x_at, out_at, outer, n, inner, is_max, is_outer, start, stop):
    """Set out[o, j] to the first i of the largest (or smallest) x[o, i, j], or of a NaN."""
    if is_outer:
        x_at, out_at = x_at + start * n * inner * SIZE, out_at + start * inner * 8
        outer, start, stop = stop - start, I8(0), inner
    x, out, parts, best = T_at(x_at), i8_at(out_at), of_columns(), of_columns()
    for o in range(outer):
        if inner == 1 and start < stop:
            out[o] = arg_row_T(x, o * n, n, is_max)
            continue
        for low in range(start, stop, COLUMNS):
            width = min(COLUMNS, stop - low)
            begin, places = o * n * inner + low, o * inner + low
            for i in range(0, n, ROWS):
                rows = min(ROWS, n - i)
                block_of_columns_T(x, begin + i * inner, rows, inner, width, is_max, parts)
                for j in range(width):
                    if i == 0 or (best[j] == best[j] and not parts[j] <= best[j]):
                        best[j], out[places + j] = parts[j], i
            for j in range(width):
                i = out[places + j]
                rows = min(ROWS, n - i)
                k = first_T(x, begin + i * inner + j, inner, rows, best[j], is_max)
                out[places + j] = i + k
