"""Gather, add to and overwrite rows by index; join rows.

x is (outer, n, r), the gathered rows (outer, m, r), the index (m,) int64 within 0 to n - 1; all in
C order. T: the integer of an element's size for copies, its type for sums and indices.
"""

# pyright: reportUndefinedVariable=false

_MOVE = "void(i8,i8,i8,i8,i8,i8,i8,i8,i8)"


@lazy("void(i8,i8,i8,i8,i8,i8,i8,i8,i8,i8)")
def gather_T(x_at, index_at, out_at, outer, n, m, r, is_outer, start, stop):
    """Set out[o, i] = x[o, index[i]] for i from start to stop - 1, or for o if is_outer."""
    if is_outer:
        x_at, out_at = x_at + start * n * r * SIZE, out_at + start * m * r * SIZE
        outer, start, stop = stop - start, I8(0), m
    x, index, out = T_at(x_at), i8_at(index_at), T_at(out_at)
    for o in range(outer):
        for i in range(start, stop):
            source, target = (o * n + index[i]) * r, (o * m + i) * r
            for j in range(r):
                out[target + j] = x[source + j]


@lazy(_MOVE)
def put_T(source_at, index_at, out_at, outer, n, m, r, start, stop):
    """Set out[o, index[i]] = source[o, i] for targets start to stop - 1; the last i wins."""
    source, index, out = T_at(source_at), i8_at(index_at), T_at(out_at)
    for o in range(outer):
        for i in range(m):
            k = index[i]
            if start <= k < stop:
                for j in range(r):
                    out[(o * n + k) * r + j] = source[(o * m + i) * r + j]


# Sums run in the order of i, for any ranges of targets: no two threads write the same row, and the
# result is the same for any number of threads.


@lazy(_MOVE)
def add_T(source_at, index_at, out_at, outer, n, m, r, start, stop):
    """Add source[o, i] to out[o, index[i]] for targets start to stop - 1; integers wrap around.

    Float32 has add_f4.py.
    """
    source, index, out = T_at(source_at), i8_at(index_at), T_at(out_at)
    for o in range(outer):
        for i in range(m):
            k = index[i]
            if start <= k < stop:
                for j in range(r):
                    place = (o * n + k) * r + j
                    out[place] = T(out[place] + source[(o * m + i) * r + j])


@lazy("void(i8,i8,i8,i8,i8,i8)")
def join_T(places_at, sizes_at, parts, out_at, outer, row):
    """Join part[o] of all parts into out[o]; tables: addresses, and elements of a part[o]."""
    places, sizes, out, start = i8_at(places_at), i8_at(sizes_at), T_at(out_at), 0
    for k in range(parts):
        part, n = T_at(places[k]), sizes[k]
        for o in range(outer):
            for j in range(n):
                out[o * row + start + j] = part[o * n + j]
        start += n


@lazy("i8(i8,i8,i8,i8)")
def wrap_T(index_at, out_at, count, n):
    """Set out[i] to index[i], or to n + index[i] if it is negative.

    Return the first place whose index lies outside -n to n - 1, or -1.
    """
    index, out = T_at(index_at), i8_at(out_at)
    for i in range(count):
        k = I8(index[i])
        if k < -n or k >= n:
            return i
        out[i] = k + n if k < 0 else k
    return -1
