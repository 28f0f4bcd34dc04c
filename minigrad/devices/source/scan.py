"""Along one axis of x (outer, n, inner) in C order: running sums, and the place of the extreme.

And the order of the elements of a flat x.
"""

# pyright: reportUndefinedVariable=false

_SCAN = "void(i8,i8,i8,i8,i8,i8,i8)"


@lazy(_SCAN)
def cumsum_f4(x_at, out_at, outer, n, inner, start, stop):
    """Columns start to stop - 1 of the inner axis. Sums run in float64."""
    x, out, totals = f4_at(x_at), f4_at(out_at), columns_f8()
    for o in range(outer):
        if inner == 1:
            total = F8(0)
            for i in range(n):
                total += x[o * n + i]
                out[o * n + i] = F4(total)
            continue
        for low in range(start, stop, COLUMNS):
            high = min(low + COLUMNS, stop)
            for j in range(low, high):
                totals[j - low] = F8(0)
            for i in range(n):
                row = (o * n + i) * inner
                for j in range(low, high):
                    total = totals[j - low] + F8(x[row + j])
                    totals[j - low] = total
                    out[row + j] = F4(total)


@lazy(_SCAN)
def cumsum_f8(x_at, out_at, outer, n, inner, start, stop):
    """Columns start to stop - 1 of the inner axis, float64."""
    x, out = f8_at(x_at), f8_at(out_at)
    for o in range(outer):
        for j in range(start, stop):
            out[o * n * inner + j] = x[o * n * inner + j]
        for i in range(1, n):
            row = (o * n + i) * inner
            for j in range(start, stop):
                out[row + j] = out[row - inner + j] + x[row + j]


@lazy(_SCAN)
def cumsum_i8(x_at, out_at, outer, n, inner, start, stop):
    """As cumsum_f8, int64, which wraps around."""
    x, out = i8_at(x_at), i8_at(out_at)
    for o in range(outer):
        for j in range(start, stop):
            out[o * n * inner + j] = x[o * n * inner + j]
        for i in range(1, n):
            row = (o * n + i) * inner
            for j in range(start, stop):
                out[row + j] = out[row - inner + j] + x[row + j]


@lazy("void(i8,i8,i8,i8,i8,i8,i8,i8)")
def arg_f4(x_at, out_at, outer, n, inner, start, stop, is_max):
    """out[o, j] = the first i of the largest (or smallest) x[o, i, j]; a NaN counts as it."""
    x, out = f4_at(x_at), i8_at(out_at)
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


@lazy("void(i8,i8,i8,i8,i8,i8,i8,i8)")
def arg_f8(x_at, out_at, outer, n, inner, start, stop, is_max):
    """As arg_f4, float64."""
    x, out = f8_at(x_at), i8_at(out_at)
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


@lazy("void(i8,i8,i8,i8,i8,i8,i8,i8)")
def arg_i8(x_at, out_at, outer, n, inner, start, stop, is_max):
    """As arg_f4, int64."""
    x, out = i8_at(x_at), i8_at(out_at)
    for o in range(outer):
        for j in range(start, stop):
            best, place = x[o * n * inner + j], I8(0)
            for i in range(1, n):
                value = x[(o * n + i) * inner + j]
                if value > best if is_max else value < best:
                    best, place = value, I8(i)
            out[o * inner + j] = place


@lazy("void(i8,i8,i8,i8,i8,i8)")
def argsort_f8(x_at, out_at, other_at, n, start, stop):
    """out = the places of x (n,) in ascending order, equal ones in theirs: runs that are merged.

    other: memory for n places. One thread does it, the one whose range is not empty.
    """
    x, out, other = f8_at(x_at), i8_at(out_at), i8_at(other_at)
    if start < stop:
        for i in range(n):
            out[i] = i
        width = 1
        while width < n:
            low = 0
            while low < n:
                middle, high = min(low + width, n), min(low + 2 * width, n)
                i, j = low, middle
                for k in range(low, high):
                    if j >= high or (i < middle and x[out[i]] <= x[out[j]]):
                        other[k] = out[i]
                        i += 1
                    else:
                        other[k] = out[j]
                        j += 1
                low = high
            for i in range(n):
                out[i] = other[i]
            width *= 2
