"""Running sums and argmax/argmin along one axis of x (outer, n, inner) in C order.

Sequence s = o * inner + j has its elements at (o * n + i) * inner + j for i from 0 to n - 1. Either
one thread walks a sequence, while neighbouring threads walk neighbouring ones, or a block does, in
pieces of `BLOCK * EACH` elements. T is the element type. Float sums form a tree within a piece, and
so do the sums of pieces. Nothing is added twice or subtracted, so NaN and infinities affect only
the elements after them.
"""

# pyright: reportUndefinedVariable=false

BLOCK, EACH = 256, 8  # threads of a block, elements of a thread
RUN = 256  # elements that a thread adds to one sum
ALL = 0xFFFFFFFF  # lanes of a warp


@exact_jit
def summed_in_warp(value):
    """Return the sum of `value` over the lanes up to this one; all lanes must take part."""
    lane, step = I4(cuda.threadIdx.x & 31), I4(1)
    while step < 32:
        other = cuda.shfl_up_sync(ALL, value, step)
        if lane >= step:
            value = other + value
        step = I4(step * 2)
    return value


@exact_jit
def sum_before_warp(total, warps, zero):
    """Return (sum over the warps before this one, sum over all warps of the block).

    total: the warp's sum, in lane 31. warps: shared memory, one element per warp (8), of the type
    of total and zero. All threads must take part; a caller needs a barrier to reuse `warps`.
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
    """Return this thread's first element: a warp has 32 * EACH, a lane every 32nd of them."""
    warp = cuda.threadIdx.x >> 5
    return (piece * BLOCK + warp * 32) * EACH + (cuda.threadIdx.x & 31)


@exact_jit
def place_of_block(n, inner, pieces):
    """Return (sequence s, piece p, start of s) of block s * pieces + p."""
    s = I8(cuda.blockIdx.x) // pieces
    o = s // inner
    return s, I8(cuda.blockIdx.x) - s * pieces, o * n * inner + s - o * inner


@exact_jit
def cumsum_columns(x, out, outer, n, inner):
    """Compute running sums, one thread per sequence, in runs of RUN elements."""
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
    """Set totals[s, p] to the sum of piece p of sequence s, in block s * pieces + p."""
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
    """Compute running sums; block s * pieces + p handles piece p of sequence s.

    before: (sequences, pieces), the running sums of the pieces; not read if there is one piece.
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


# ---- argmax and argmin ---------------------------------------------------------------------------


@exact_jit
def wins(value, place, best, at, is_max):
    """Return whether an element beats the best so far, which is at `at` (-1: none yet).

    A NaN beats everything else. Among equal values, and among NaNs, the first place wins.
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
    """Return the block's (best, place) in thread 0. values, places: 8 elements of shared memory."""
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
    """Set out[s] to the place of the extreme of sequence s, one thread per sequence."""
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
    """Set values[s, p], out[s, p] to the extreme of piece p of sequence s and its place.

    A piece has `length` elements and is handled by block s * pieces + p.
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
    """Set out[s] to the place of the best (values[s, p], places[s, p]), in block s."""
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


# ---- places of nonzero elements ------------------------------------------------------------------


@exact_jit
def count_nonzero(x, counts, n):
    """Set counts[p] (int64) to the nonzero count of piece p of x (n,), one block per piece."""
    warps = cuda.shared.array(8, I8)
    piece, count = I8(cuda.blockIdx.x), I8(0)
    stop = min((piece + 1) * BLOCK * EACH, n)
    for i in range(piece * BLOCK * EACH + cuda.threadIdx.x, stop, BLOCK):
        if x[i] != 0:
            count += 1
    _, whole = sum_before_warp(summed_in_warp(count), warps, I8(0))
    if cuda.threadIdx.x == 0:
        counts[piece] = whole


@exact_jit
def write_nonzero(x, before, out, n):
    """Write the places of nonzero elements of x (n,). before: running sums of counts."""
    warps = cuda.shared.array(8, I8)
    piece, count = I8(cuda.blockIdx.x), I8(0)
    first = first_of_lane(piece)
    for i in range(first, min(first + 32 * EACH, n), 32):
        if x[i] != 0:
            count += 1
    at, _ = sum_before_warp(summed_in_warp(count), warps, I8(0))
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
