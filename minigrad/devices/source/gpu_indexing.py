"""Gather, add to and overwrite rows by index, as gather.py does on the CPU.

x is (outer, n, r), the gathered rows (outer, m, r), the index (m,) int64 within 0 to n - 1; all in
C order. Threads share rows as in gpu_rows.py. Copies know only an element's size; sums know its
type.
"""

# pyright: reportUndefinedVariable=false


@exact_jit
def gather(x, index, out, outer, n, m, r):
    """Set out[o, i, :] = x[o, index[i], :]."""
    for row in range(first_row(), outer * m, step_of_rows()):
        o = row // m if outer > 1 else row * 0
        source, target = (o * n + index[row - o * m]) * r, row * r
        for j in range(first_along(), r, step_along()):
            out[target + j] = x[source + j]


@exact_jit
def gather_wide(x, index, out, outer, n, m, r):
    """Gather in vectors of four: r is a multiple of four; x and out are aligned to four."""
    for row in range(first_row(), outer * m, step_of_rows()):
        o = row // m if outer > 1 else row * 0
        source, target = (o * n + index[row - o * m]) * r, row * r
        for j in range(4 * first_along(), r, 4 * step_along()):
            a, b, c, d = load4(x, source + j)
            store4(out, target + j, a, b, c, d)


@exact_jit
def scatter_add(source, index, out, outer, n, m, r):
    """Add source[o, i, :] to out[o, index[i], :] by atomic additions, in any order.

    So the rounding of floats that meet in one place differs from run to run.
    """
    for row in range(first_row(), outer * m, step_of_rows()):
        o = row // m if outer > 1 else row * 0
        target = (o * n + index[row - o * m]) * r
        for j in range(first_along(), r, step_along()):
            atomic_add(out, target + j, source[row * r + j])


@exact_jit
def rank(index, counts, ranks, m):
    """Count equal indices: ranks[i] = how many came before, counts[k] (initially 0) = all k.

    The order among equal indices differs from run to run.
    """
    for i in range(cuda.grid(1), m, cuda.gridsize(1)):
        ranks[i] = atomic_add(counts, index[i], I4(1))


@exact_jit
def share_out(counts, used, bases, owners, n, most):
    """Give a target further rows, one per `most` sources beyond the first `most`.

    They begin at bases[k], and their owner is k. used[0], initially 0: rows given so far.
    """
    for k in range(cuda.grid(1), n, cuda.gridsize(1)):
        if counts[k] > most:
            more = (I8(counts[k]) - 1) // most
            base = I8(atomic_add(used, 0, I4(more)))
            bases[k] = I4(base)
            for row in range(base, base + more):
                owners[row] = I8(k)


@exact_jit
def scatter_add_shared(source, index, ranks, bases, out, further, outer, n, m, r, rows, most):
    """Scatter-add at most `most` sources per row; the others go to rows of `further`.

    further: (outer, rows, r), assigned by share_out.
    """
    for row in range(first_row(), outer * m, step_of_rows()):
        o = row // m if outer > 1 else row * 0
        k, past = index[row - o * m], I8(ranks[row - o * m]) // most
        if past == 0:
            target = (o * n + k) * r
            for j in range(first_along(), r, step_along()):
                atomic_add(out, target + j, source[row * r + j])
        else:
            target = (o * rows + bases[k] + past - 1) * r
            for j in range(first_along(), r, step_along()):
                atomic_add(further, target + j, source[row * r + j])


@exact_jit
def last_of_few(index, wins, m):
    """Set wins[i] to 1 if no place after i has the same index, else 0, by checking all."""
    for i in range(cuda.grid(1), m, cuda.gridsize(1)):
        k, is_last = index[i], I4(1)
        for j in range(i + 1, m):
            if index[j] == k:
                is_last = I4(0)
        wins[i] = is_last


@exact_jit
def latest(index, place, m):
    """Set place[k], initially -1, to the last i with index[i] = k."""
    for i in range(cuda.grid(1), m, cuda.gridsize(1)):
        atomic_max(place, index[i], I4(i))


@exact_jit
def is_latest(index, place, wins, m):
    """Set wins[i] to 1 if place[index[i]] is i, else 0."""
    for i in range(cuda.grid(1), m, cuda.gridsize(1)):
        wins[i] = I4(1) if place[index[i]] == i else I4(0)


@exact_jit
def put(source, index, wins, out, outer, n, m, r):
    """Set out[o, index[i], :] = source[o, i, :] where wins[i] is 1: one of equal indices."""
    for row in range(first_row(), outer * m, step_of_rows()):
        o = row // m if outer > 1 else row * 0
        i = row - o * m
        if wins[i] == 1:
            target = (o * n + index[i]) * r
            for j in range(first_along(), r, step_along()):
                out[target + j] = source[row * r + j]


@exact_jit
def wrap(index, out, outside, count, n):
    """Set out[i] to index[i], or to n + index[i] if it is negative.

    outside[0], initially `count`, becomes the first place whose index lies outside -n to n - 1. out
    is 0 at such places, so that it can be used.
    """
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        k = I8(index[i])
        k = k + n if k < 0 else k
        if k < 0 or k >= n:
            atomic_min(outside, 0, i)
            k = I8(0)
        out[i] = k
