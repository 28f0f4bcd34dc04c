"""Rows that are picked, added to and overwritten by index.

x is (outer, n, r), the picked rows (outer, m, r), the index (m,) int64 within 0 to n - 1; all in
C order. Copies know only the size of an element; sums know its type.
"""

# pyright: reportUndefinedVariable=false

_MOVE = "void(i8,i8,i8,i8,i8,i8,i8,i8,i8)"


@lazy(_MOVE)
def gather_8(x_at, index_at, out_at, outer, n, m, r, start, stop):
    """out[o, i] = x[o, index[i]] for i from start to stop - 1, elements of 8 bytes."""
    x, index, out = i8_at(x_at), i8_at(index_at), i8_at(out_at)
    for o in range(outer):
        for i in range(start, stop):
            source, target = (o * n + index[i]) * r, (o * m + i) * r
            for j in range(r):
                out[target + j] = x[source + j]


@lazy(_MOVE)
def gather_4(x_at, index_at, out_at, outer, n, m, r, start, stop):
    """As gather_8, elements of 4 bytes."""
    x, index, out = i4_at(x_at), i8_at(index_at), i4_at(out_at)
    for o in range(outer):
        for i in range(start, stop):
            source, target = (o * n + index[i]) * r, (o * m + i) * r
            for j in range(r):
                out[target + j] = x[source + j]


@lazy(_MOVE)
def gather_1(x_at, index_at, out_at, outer, n, m, r, start, stop):
    """As gather_8, elements of one byte."""
    x, index, out = u1_at(x_at), i8_at(index_at), u1_at(out_at)
    for o in range(outer):
        for i in range(start, stop):
            source, target = (o * n + index[i]) * r, (o * m + i) * r
            for j in range(r):
                out[target + j] = x[source + j]


@lazy(_MOVE)
def put_8(source_at, index_at, out_at, outer, n, m, r, start, stop):
    """out[o, index[i]] = source[o, i] for targets from start to stop - 1; the last i wins."""
    source, index, out = i8_at(source_at), i8_at(index_at), i8_at(out_at)
    for o in range(outer):
        for i in range(m):
            k = index[i]
            if start <= k < stop:
                for j in range(r):
                    out[(o * n + k) * r + j] = source[(o * m + i) * r + j]


@lazy(_MOVE)
def put_4(source_at, index_at, out_at, outer, n, m, r, start, stop):
    """As put_8, elements of 4 bytes."""
    source, index, out = i4_at(source_at), i8_at(index_at), i4_at(out_at)
    for o in range(outer):
        for i in range(m):
            k = index[i]
            if start <= k < stop:
                for j in range(r):
                    out[(o * n + k) * r + j] = source[(o * m + i) * r + j]


@lazy(_MOVE)
def put_1(source_at, index_at, out_at, outer, n, m, r, start, stop):
    """As put_8, elements of one byte."""
    source, index, out = u1_at(source_at), i8_at(index_at), u1_at(out_at)
    for o in range(outer):
        for i in range(m):
            k = index[i]
            if start <= k < stop:
                for j in range(r):
                    out[(o * n + k) * r + j] = source[(o * m + i) * r + j]


# Sums are made in the order of i whatever ranges of targets they are cut into: no two threads
# write the same row, and the result is the same for any number of them.


@exact_jit
def is_crowded(index, m):
    """Whether some target may take more than SUMMED of m rows: False is certain.

    Targets whose numbers end in the same bits are counted together.
    """
    if m <= SUMMED:
        return False
    counts, most = columns_i4(), I4(0)
    for k in range(COLUMNS):
        counts[k] = I4(0)
    for i in range(m):
        k = index[i] & (COLUMNS - 1)
        counts[k] = I4(counts[k] + 1)
    for k in range(COLUMNS):
        most = max(most, counts[k])
    return most > SUMMED


@exact_jit
def place_of(owners, k, size):
    """Where target k stands in a table of a power of two of places; -1 marks one that is free."""
    place = k & (size - 1)
    while owners[place] != k and owners[place] != -1:
        place = (place + 1) & (size - 1)
    return place


@lazy("void(i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8)")
def add_f4(source_at, index_at, out_at, outer, n, m, r, scratch_at, size, start, stop):
    """out[o, index[i]] += source[o, i] for targets from start to stop - 1, float32.

    A target that has taken SUMMED rows hands its sum to a row of float64 `totals` and begins anew.
    scratch, not needed for up to SUMMED rows: the totals (size, r), an int64 for each of them,
    whose it is, and an int32 for each target, how many rows it has taken. size: a power of two.
    """
    source, index, out = f4_at(source_at), i8_at(index_at), f4_at(out_at)
    if not is_crowded(index, m):
        if r == 1:
            for o in range(outer):
                for i in range(m):
                    k = index[i]
                    if start <= k < stop:
                        out[o * n + k] += source[o * m + i]
            return
        for o in range(outer):
            for i in range(m):
                k = index[i]
                if start <= k < stop:
                    for j in range(r):
                        out[(o * n + k) * r + j] += source[(o * m + i) * r + j]
        return
    totals, owners = f8_at(scratch_at), i8_at(scratch_at + 8 * size * r)
    taken = i4_at(scratch_at + 8 * size * (r + 1))
    for o in range(outer):
        for place in range(size):
            owners[place] = I8(-1)
        for k in range(stop - start):
            taken[k] = I4(0)
        for i in range(m):
            k = index[i]
            if start <= k < stop:
                target = (o * n + k) * r
                for j in range(r):
                    out[target + j] += source[(o * m + i) * r + j]
                taken[k - start] = I4(taken[k - start] + 1)
                if taken[k - start] == SUMMED:
                    taken[k - start] = I4(0)
                    place = place_of(owners, k, size)
                    if owners[place] == -1:
                        owners[place] = k
                        for j in range(r):
                            totals[place * r + j] = F8(0)
                    for j in range(r):
                        totals[place * r + j] += F8(out[target + j])
                        out[target + j] = F4(0)
        for place in range(size):
            if owners[place] != -1:
                target = (o * n + owners[place]) * r
                for j in range(r):
                    out[target + j] = F4(totals[place * r + j] + F8(out[target + j]))


@lazy(_MOVE)
def add_f8(source_at, index_at, out_at, outer, n, m, r, start, stop):
    """out[o, index[i]] += source[o, i] for targets from start to stop - 1, float64."""
    source, index, out = f8_at(source_at), i8_at(index_at), f8_at(out_at)
    for o in range(outer):
        for i in range(m):
            k = index[i]
            if start <= k < stop:
                for j in range(r):
                    out[(o * n + k) * r + j] += source[(o * m + i) * r + j]


@lazy(_MOVE)
def add_i4(source_at, index_at, out_at, outer, n, m, r, start, stop):
    """As add_f8, int32, which wraps around."""
    source, index, out = i4_at(source_at), i8_at(index_at), i4_at(out_at)
    for o in range(outer):
        for i in range(m):
            k = index[i]
            if start <= k < stop:
                for j in range(r):
                    place = (o * n + k) * r + j
                    out[place] = I4(out[place] + source[(o * m + i) * r + j])


@lazy(_MOVE)
def add_i8(source_at, index_at, out_at, outer, n, m, r, start, stop):
    """As add_f8, int64."""
    source, index, out = i8_at(source_at), i8_at(index_at), i8_at(out_at)
    for o in range(outer):
        for i in range(m):
            k = index[i]
            if start <= k < stop:
                for j in range(r):
                    out[(o * n + k) * r + j] += source[(o * m + i) * r + j]


@lazy(_MOVE)
def add_u1(source_at, index_at, out_at, outer, n, m, r, start, stop):
    """As add_f8, uint8, which wraps around."""
    source, index, out = u1_at(source_at), i8_at(index_at), u1_at(out_at)
    for o in range(outer):
        for i in range(m):
            k = index[i]
            if start <= k < stop:
                for j in range(r):
                    place = (o * n + k) * r + j
                    out[place] = U1(out[place] + source[(o * m + i) * r + j])


@lazy("i8(i8,i8,i8,i8)")
def wrap_8(index_at, out_at, count, n):
    """out[i] = index[i], or n + index[i] if it is negative.

    Returns the first place whose index lies outside -n to n - 1, or -1.
    """
    index, out = i8_at(index_at), i8_at(out_at)
    for i in range(count):
        k = index[i]
        if k < -n or k >= n:
            return i
        out[i] = k + n if k < 0 else k
    return -1


@lazy("i8(i8,i8,i8,i8)")
def wrap_4(index_at, out_at, count, n):
    """As wrap_8, of an int32 index."""
    index, out = i4_at(index_at), i8_at(out_at)
    for i in range(count):
        k = I8(index[i])
        if k < -n or k >= n:
            return i
        out[i] = k + n if k < 0 else k
    return -1


@lazy("i8(i8,i8,i8,i8)")
def wrap_1(index_at, out_at, count, n):
    """As wrap_8, of a uint8 index."""
    index, out = u1_at(index_at), i8_at(out_at)
    for i in range(count):
        k = I8(index[i])
        if k >= n:
            return i
        out[i] = k
    return -1
