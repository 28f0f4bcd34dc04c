"""Along one axis of x (outer, n, inner) in C order: running sums, and the place of the extreme.

Sequence s = o * inner + j has its elements at (o * n + i) * inner + j for i from 0 to n - 1. Either
a thread goes along a sequence, its neighbours along the neighbouring ones, or a block does, in
pieces of `BLOCK * EACH` elements. T is the element type. Sums of floats are made as a tree within a
piece, and so are sums of pieces: nothing is added twice or taken away, so that NaN and infinities
reach what follows them and nothing else.
"""

# pyright: reportUndefinedVariable=false

BLOCK, EACH = 256, 8  # threads of a block, elements of a thread
ALL = 0xFFFFFFFF  # lanes of a warp


@exact_jit
def sum_before(value, warps, zero):
    """(the sum of `value` over the threads before this one, over all threads of the block).

    warps: shared, an element a warp (8), of the type of value and zero. All threads take part; it
    ends with no barrier, so callers that use `warps` again need one.
    """
    lane, warp = I4(cuda.threadIdx.x & 31), I4(cuda.threadIdx.x >> 5)
    total, step = value, I4(1)
    while step < 32:
        other = cuda.shfl_up_sync(ALL, total, step)
        if lane >= step:
            total = other + total
        step = I4(step * 2)
    if lane == 31:
        warps[warp] = total
    before = cuda.shfl_up_sync(ALL, total, 1)
    before = before if lane > 0 else zero
    cuda.syncthreads()
    start, whole = zero, zero
    for k in range(BLOCK // 32):
        if k == warp:
            start = whole
        whole += warps[k]
    return (before if warp == 0 else start + before), whole


@exact_jit
def cumsum_columns(x, out, outer, n, inner):
    """Running sums, a thread a sequence."""
    for s in range(cuda.grid(1), outer * inner, cuda.gridsize(1)):
        o = s // inner
        at = o * n * inner + s - o * inner
        total = x[at]
        out[at] = total
        for _ in range(1, n):
            at += inner
            total += x[at]
            out[at] = total


@exact_jit
def sums_of_pieces(x, totals, n, inner, pieces):
    """totals[s, p] = the sum of piece p of sequence s; block s * pieces + p."""
    warps = cuda.shared.array(8, T)
    s = I8(cuda.blockIdx.x) // pieces
    piece, o = I8(cuda.blockIdx.x) - s * pieces, s // inner
    start = o * n * inner + s - o * inner
    first = (piece * BLOCK + cuda.threadIdx.x) * EACH
    total = T(0)
    for i in range(first, min(first + EACH, n)):
        total += x[start + i * inner]
    _, whole = sum_before(total, warps, T(0))
    if cuda.threadIdx.x == 0:
        totals[s * pieces + piece] = whole


@exact_jit
def cumsum_pieces(x, before, out, n, inner, pieces):
    """Running sums, block s * pieces + p for piece p of sequence s.

    before: (sequences, pieces), the running sums of pieces; not read where there is one piece.
    """
    warps = cuda.shared.array(8, T)
    s = I8(cuda.blockIdx.x) // pieces
    piece, o = I8(cuda.blockIdx.x) - s * pieces, s // inner
    start = o * n * inner + s - o * inner
    first = (piece * BLOCK + cuda.threadIdx.x) * EACH
    total = T(0)
    for i in range(first, min(first + EACH, n)):
        total += x[start + i * inner]
    running, _ = sum_before(total, warps, T(0))
    if piece > 0:
        running = before[s * pieces + piece - 1] + running
    for i in range(first, min(first + EACH, n)):
        running += x[start + i * inner]
        out[start + i * inner] = running


# ---- the place of the extreme --------------------------------------------------------------------


@exact_jit
def wins(value, place, best, at, is_max):
    """Whether an element goes before the best so far, which lies at `at`, -1 if there is none.

    A NaN goes before all others; of equals, and of NaNs, the first place.
    """
    if place < 0 or at < 0:
        return place >= 0
    if value != value or best != best:
        return value != value and (best == best or place < at)
    if value == best:
        return place < at
    return value > best if is_max else value < best


@exact_jit
def best_of_block(best, at, values, places, is_max):
    """(best, place) over all threads of the block, in thread 0; values, places: shared, 8 long."""
    lane, warp = I4(cuda.threadIdx.x & 31), I4(cuda.threadIdx.x >> 5)
    step = I4(16)
    while step > 0:
        value = cuda.shfl_down_sync(ALL, best, step)
        place = cuda.shfl_down_sync(ALL, at, step)
        if wins(value, place, best, at, is_max):
            best, at = value, place
        step = I4(step // 2)
    if lane == 0:
        values[warp] = best
        places[warp] = at
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        for k in range(1, BLOCK // 32):
            if wins(values[k], places[k], best, at, is_max):
                best, at = values[k], places[k]
    return best, at


@exact_jit
def arg_columns(x, out, outer, n, inner, is_max):
    """out[s] = the place of the extreme of sequence s, a thread a sequence."""
    for s in range(cuda.grid(1), outer * inner, cuda.gridsize(1)):
        o = s // inner
        start = o * n * inner + s - o * inner
        best, at = x[start], I8(0)
        for i in range(1, n):
            value = x[start + i * inner]
            if wins(value, I8(i), best, at, is_max):
                best, at = value, I8(i)
        out[s] = at


@exact_jit
def arg_pieces(x, values, out, n, inner, pieces, length, is_max):
    """(values[s, p], out[s, p]) = the extreme of piece p of sequence s and its place.

    A piece has `length` elements; block s * pieces + p.
    """
    shared_values = cuda.shared.array(8, T)
    shared_places = cuda.shared.array(8, I8)
    s = I8(cuda.blockIdx.x) // pieces
    piece, o = I8(cuda.blockIdx.x) - s * pieces, s // inner
    start = o * n * inner + s - o * inner
    best, at = x[start], I8(-1)
    for i in range(piece * length + cuda.threadIdx.x, min((piece + 1) * length, n), BLOCK):
        value = x[start + i * inner]
        if wins(value, I8(i), best, at, is_max):
            best, at = value, I8(i)
    best, at = best_of_block(best, at, shared_values, shared_places, is_max)
    if cuda.threadIdx.x == 0:
        values[s * pieces + piece] = best
        out[s * pieces + piece] = at


@exact_jit
def arg_of_pieces(values, places, out, pieces, is_max):
    """out[s] = the place of the best of (values[s, p], places[s, p]); block s."""
    shared_values = cuda.shared.array(8, T)
    shared_places = cuda.shared.array(8, I8)
    s = I8(cuda.blockIdx.x)
    best, at = values[s * pieces], I8(-1)
    for p in range(cuda.threadIdx.x, pieces, BLOCK):
        value, place = values[s * pieces + p], places[s * pieces + p]
        if wins(value, place, best, at, is_max):
            best, at = value, place
    best, at = best_of_block(best, at, shared_values, shared_places, is_max)
    if cuda.threadIdx.x == 0:
        out[s] = at


# ---- the places of elements that are not 0 -------------------------------------------------------


@exact_jit
def count_nonzero(x, counts, n):
    """counts[p] = how many elements of piece p of x (n,) are not 0, int64; a block a piece."""
    warps = cuda.shared.array(8, I8)
    piece = I8(cuda.blockIdx.x)
    first = (piece * BLOCK + cuda.threadIdx.x) * EACH
    found = I8(0)
    for i in range(first, min(first + EACH, n)):
        if x[i] != 0:
            found += 1
    _, whole = sum_before(found, warps, I8(0))
    if cuda.threadIdx.x == 0:
        counts[piece] = whole


@exact_jit
def write_nonzero(x, before, out, n):
    """Writes the places of elements of x (n,) that are not 0; before: running sums of counts."""
    warps = cuda.shared.array(8, I8)
    piece = I8(cuda.blockIdx.x)
    first = (piece * BLOCK + cuda.threadIdx.x) * EACH
    found = I8(0)
    for i in range(first, min(first + EACH, n)):
        if x[i] != 0:
            found += 1
    at, _ = sum_before(found, warps, I8(0))
    if piece > 0:
        at += before[piece - 1]
    for i in range(first, min(first + EACH, n)):
        if x[i] != 0:
            out[at] = i
            at += 1
