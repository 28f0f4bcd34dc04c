"""Add to float32 rows by index, in long sums by way of float64; see gather.py."""

# pyright: reportUndefinedVariable=false


@exact_jit
def is_crowded(index, m):
    """Return whether some target may take more than SUMMED of m rows: False is certain.

    Targets whose numbers end in the same bits share a count.
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
    """Return target k's place in a table of `size` places, a power of two; -1 marks a free one."""
    place = k & (size - 1)
    while owners[place] != k and owners[place] != -1:
        place = (place + 1) & (size - 1)
    return place


@lazy("void(i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8)")
def add_f4(source_at, index_at, out_at, scratch_at, outer, n, m, r, size, start, stop):
    """Add source[o, i] to out[o, index[i]] for targets start to stop - 1, float32.

    After SUMMED rows a target's sum is added to its row of float64 `totals` and restarts at 0.
    scratch, not needed for up to SUMMED rows, holds the totals (size, r), the target of each
    (int64), and each target's count of rows (int32). size: a power of two.
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
