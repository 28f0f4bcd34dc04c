"""Sort the places of the elements of each row of x (rows, n), or find k of them."""

# pyright: reportUndefinedVariable=false

RUN = I8(16)  # places that are sorted by insertion, which is quicker for few


@exact_jit
def is_before(a, b, is_down):
    """Return whether a must precede b: NaN counts as the largest."""
    if is_down:
        a, b = b, a
    return a < b or (b != b and a == a)


@exact_jit
def merged(x, places, out, low, middle, high, is_down):
    """Write places low to high - 1, two runs that are sorted up to and from middle, in order."""
    i, j, k = low, middle, low
    if middle < high:
        left, right = x[places[i]], x[places[j]]
        while i < middle and j < high:
            if is_before(right, left, is_down):
                out[k] = places[j]
                j += 1
                if j < high:
                    right = x[places[j]]
            else:
                out[k] = places[i]
                i += 1
                if i < middle:
                    left = x[places[i]]
            k += 1
    for rest in range(i, middle):
        out[k + rest - i] = places[rest]
    for rest in range(j, high):
        out[rest] = places[rest]


@exact_jit
def is_out_first(x, a, b, is_down):
    """Return whether place a leaves the k places before place b: equals are ordered by place."""
    return is_before(x[b], x[a], is_down) or (a > b and not is_before(x[a], x[b], is_down))


@exact_jit
def settle(x, heap, size, root, is_down):
    """Move the place at the root down a heap, until no child must leave before its parent."""
    moved, child = heap[root], 2 * root + 1
    while child < size:
        if child + 1 < size and is_out_first(x, heap[child + 1], heap[child], is_down):
            child += 1
        if not is_out_first(x, heap[child], moved, is_down):
            break
        heap[root] = heap[child]
        root, child = child, 2 * child + 1
    heap[root] = moved


@exact_jit
def select(x, out, n, k, is_down):
    """Write the first k < n of the places that sort x, in order: a heap takes them."""
    for i in range(k):
        out[i] = i
    for root in range(k // 2 - 1, -1, -1):
        settle(x, out, k, root, is_down)
    worst = x[out[0]]
    for i in range(k, n):  # i is the last of its equals
        if is_before(x[i], worst, is_down):
            out[0] = i
            settle(x, out, k, 0, is_down)
            worst = x[out[0]]
    for end in range(k - 1, 0, -1):
        out[0], out[end] = out[end], out[0]
        settle(x, out, end, 0, is_down)


@lazy("void(i8,i8,i8,i8,i8,i8,i8,i8)")
def argsort_T(x_at, out_at, other_at, n, size, descending, start, stop):
    """Write the places that sort rows start to stop - 1 to out: ascending, or descending if not 0.

    Of fewer than n, the first `size` of them. All: a stable merge sort, there and back by way of
    `other`, memory for as many places as out.
    """
    is_down = descending != 0
    for row in range(start, stop):
        x, out = T_at(x_at + row * n * SIZE), i8_at(out_at + row * size * 8)
        if size < n:
            select(x, out, n, size, is_down)
            continue
        other = i8_at(other_at + row * n * 8)
        for low in range(0, n, RUN):
            for k in range(low, min(low + RUN, n)):
                i = k
                while i > low and is_before(x[k], x[out[i - 1]], is_down):
                    out[i] = out[i - 1]
                    i -= 1
                out[i] = k
        width = RUN
        while width < n:
            for places, target in ((out, other), (other, out)):
                for low in range(0, n, 2 * width):
                    middle, high = min(low + width, n), min(low + 2 * width, n)
                    merged(x, places, target, low, middle, high, is_down)
                width *= 2
