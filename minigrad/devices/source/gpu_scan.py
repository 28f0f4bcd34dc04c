"""Along one axis of x (outer, n, inner) in C order: running sums, and the place of the extreme.

Sequence s = o * inner + j has its elements at (o * n + i) * inner + j for i from 0 to n - 1. Either
a thread goes along a sequence, its neighbours along the neighbouring ones, or a block does, in
pieces of `BLOCK * EACH` elements. T is the element type. Sums of floats are made as a tree within a
piece, and so are sums of pieces: nothing is added twice or taken away, so that NaN and infinities
reach what follows them and nothing else.
"""

# pyright: reportUndefinedVariable=false

BLOCK, EACH = 256, 8  # threads of a block, elements of a thread
RUN = 256  # elements that a thread adds to one sum
ALL = 0xFFFFFFFF  # lanes of a warp


@exact_jit
def summed_in_warp(value):
    """The sum of `value` over the lanes up to this one; all lanes take part."""
    lane, step = I4(cuda.threadIdx.x & 31), I4(1)
    while step < 32:
        other = cuda.shfl_up_sync(ALL, value, step)
        if lane >= step:
            value = other + value
        step = I4(step * 2)
    return value


@exact_jit
def sum_before_warp(total, warps, zero):
    """(the sum over the warps before this one, over all warps of the block).

    total: in lane 31 the sum of its warp. warps: shared, an element a warp (8), of the type of
    total and zero. All threads take part; callers that use `warps` again need a barrier.
    """
    warp = I4(cuda.threadIdx.x >> 5)
    if cuda.threadIdx.x & 31 == 31:
        warps[warp] = total
    cuda.syncthreads()
    before, whole = zero, zero
    for k in range(BLOCK // 32):
        if k == warp:
            before = whole
        whole += warps[k]
    return before, whole


@exact_jit
def first_of_lane(piece):
    """The first element of this thread: a warp has 32 * EACH of them, its lanes every 32nd."""
    warp = cuda.threadIdx.x >> 5
    return (piece * BLOCK + warp * 32) * EACH + (cuda.threadIdx.x & 31)


@exact_jit
def place_of_block(n, inner, pieces):
    """(sequence s, piece p, where s begins) of block s * pieces + p."""
    s = I8(cuda.blockIdx.x) // pieces
    o = s // inner
    return s, I8(cuda.blockIdx.x) - s * pieces, o * n * inner + s - o * inner


@exact_jit
def cumsum_columns(x, out, outer, n, inner):
    """Running sums, a thread a sequence; a block of RUN elements adds to the sum before it."""
    for s in range(cuda.grid(1), outer * inner, cuda.gridsize(1)):
        o = s // inner
        at = o * n * inner + s - o * inner
        before = T(0)
        for start in range(0, n, RUN):
            total = T(0)
            for _ in range(start, min(start + RUN, n)):
                total += x[at]
                out[at] = before + total
                at += inner
            before += total


@exact_jit
def sums_of_pieces(x, totals, n, inner, pieces):
    """totals[s, p] = the sum of piece p of sequence s; block s * pieces + p."""
    warps = cuda.shared.array(8, T)
    s, piece, start = place_of_block(n, inner, pieces)
    total = T(0)
    stop = min((piece + 1) * BLOCK * EACH, n)
    for i in range(piece * BLOCK * EACH + cuda.threadIdx.x, stop, BLOCK):
        total += x[start + i * inner]
    _, whole = sum_before_warp(summed_in_warp(total), warps, T(0))
    if cuda.threadIdx.x == 0:
        totals[s * pieces + piece] = whole


@exact_jit
def cumsum_pieces(x, before, out, n, inner, pieces):
    """Running sums, block s * pieces + p for piece p of sequence s.

    before: (sequences, pieces), the running sums of pieces; not read where there is one piece.
    """
    warps = cuda.shared.array(8, T)
    s, piece, start = place_of_block(n, inner, pieces)
    first, total = first_of_lane(piece), T(0)
    for i in range(first, min(first + 32 * EACH, n), 32):
        total += x[start + i * inner]
    running, _ = sum_before_warp(summed_in_warp(total), warps, T(0))
    if piece > 0:
        running = before[s * pieces + piece - 1] + running
    for k in range(EACH):
        i, value = first + 32 * k, T(0)
        if i < n:
            value = x[start + i * inner]
        value = summed_in_warp(value)
        if i < n:
            out[start + i * inner] = running + value
        running += cuda.shfl_sync(ALL, value, 31)


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
    s, piece, start = place_of_block(n, inner, pieces)
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
    piece, found = I8(cuda.blockIdx.x), I8(0)
    stop = min((piece + 1) * BLOCK * EACH, n)
    for i in range(piece * BLOCK * EACH + cuda.threadIdx.x, stop, BLOCK):
        if x[i] != 0:
            found += 1
    _, whole = sum_before_warp(summed_in_warp(found), warps, I8(0))
    if cuda.threadIdx.x == 0:
        counts[piece] = whole


@exact_jit
def write_nonzero(x, before, out, n):
    """Writes the places of elements of x (n,) that are not 0; before: running sums of counts."""
    warps = cuda.shared.array(8, I8)
    piece, found = I8(cuda.blockIdx.x), I8(0)
    first = first_of_lane(piece)
    for i in range(first, min(first + 32 * EACH, n), 32):
        if x[i] != 0:
            found += 1
    at, _ = sum_before_warp(summed_in_warp(found), warps, I8(0))
    if piece > 0:
        at += before[piece - 1]
    for k in range(EACH):
        i, is_one = first + 32 * k, I8(0)
        if i < n and x[i] != 0:
            is_one = I8(1)
        upto = summed_in_warp(is_one)
        if is_one == 1:
            out[at + upto - 1] = i
        at += cuda.shfl_sync(ALL, upto, 31)
