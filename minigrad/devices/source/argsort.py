"""Sort the places of the elements of each row of x (rows, n), or find k of them."""

# pyright: reportUndefinedVariable=false

RUN = I8(16)  # places that are sorted by insertion, which is quicker for few
FEW = I8(48)  # places that are sorted by keys; fewer are merged
DIGIT, KEY = I8(8), I8(32)  # bits of a digit, and of a key beside a place in one word
DIGITS, VALUES = KEY // DIGIT, I8(1) << DIGIT
PLACE = (I8(1) << I8(31)) - I8(1)  # the largest; counts are int32


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
def merge_sort(x, out, other, start, stop, is_down):
    """Sort the places start to stop - 1 of out; equals keep their order. other: as much memory."""
    for low in range(start, stop, RUN):
        for k in range(low + 1, min(low + RUN, stop)):
            i, place = k, out[k]
            while i > low and is_before(x[place], x[out[i - 1]], is_down):
                out[i] = out[i - 1]
                i -= 1
            out[i] = place
    width = RUN
    while width < stop - start:
        for places, target in ((out, other), (other, out)):
            for low in range(start, stop, 2 * width):
                middle, high = min(low + width, stop), min(low + 2 * width, stop)
                merged(x, places, target, low, middle, high, is_down)
            width *= 2


@exact_jit
def rank_f4(x):
    """Return an int that is ordered as x is, with one for both zeros, and the largest for NaN."""
    bits = I8(F4(x + F4(0.0)).view(I4))
    bits = bits if bits >= 0 else bits ^ I8(0x7FFFFFFF)
    return bits if x == x else I8(0x7FFFFFFF)


@exact_jit
def rank_f8(x):
    """Return the same for float64."""
    bits = F8(x + F8(0.0)).view(I8)
    bits = bits if bits >= 0 else bits ^ I8(0x7FFFFFFFFFFFFFFF)
    return bits if x == x else I8(0x7FFFFFFFFFFFFFFF)


@exact_jit
def rank_i8(x):
    """Return x."""
    return x


@exact_jit
def sort_by_keys(x, out, other, n, is_down):
    """Write words of a key and a place to out, and sort them, there and back by way of other.

    A key is what an element's rank exceeds the least one by, without the lowest bits where it has
    more than KEY. The words are sorted by one digit of their keys after the other, the lowest
    first. Returns how often they went to the other side, and the bits that the keys lack.
    """
    least = most = rank_T(x[0])
    for i in range(1, n):
        rank = rank_T(x[i])
        least, most = min(least, rank), max(most, rank)
    width, span = I8(0), U8(most) - U8(least)
    while width < 64 and span >> U8(width):
        width += 1
    lacking, counts = max(width - KEY, I8(0)), columns_i4()
    for k in range(DIGITS * VALUES):
        counts[k] = 0
    for i in range(n):
        rank = U8(rank_T(x[i]))
        key = I8((U8(most) - rank if is_down else rank - U8(least)) >> U8(lacking))
        out[i] = key << KEY | i
        for digit in range(DIGITS):
            counts[digit * VALUES + (key >> digit * DIGIT & (VALUES - 1))] += 1
    words, target, passes = out, other, (width - lacking + DIGIT - 1) // DIGIT
    for digit in range(passes):
        total = I4(0)
        for k in range(digit * VALUES, (digit + 1) * VALUES):
            counts[k], total = total, total + counts[k]
        for i in range(n):
            k = digit * VALUES + (words[i] >> (KEY + digit * DIGIT) & (VALUES - 1))
            target[counts[k]] = words[i]
            counts[k] += 1
        words, target = target, words
    return passes, lacking


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

    Of fewer than n, the first `size` of them. All: a stable sort, there and back by way of `other`,
    memory for as many places as out.
    """
    is_down = descending != 0
    for row in range(start, stop):
        x, out = T_at(x_at + row * n * SIZE), i8_at(out_at + row * size * 8)
        if size < n:
            select(x, out, n, size, is_down)
            continue
        other = i8_at(other_at + row * n * 8)
        words, lacking, is_keyed = out, KEY, FEW <= n <= PLACE
        if is_keyed:
            passes, lacking = sort_by_keys(x, out, other, n, is_down)
            words = other if passes & 1 else out
        else:
            for i in range(n):
                out[i] = i
        low = I8(0)
        while low < n:  # those of one key, or all
            high = low if is_keyed else n
            while high < n and words[high] >> KEY == words[low] >> KEY:
                high += 1
            for i in range(low, high):
                out[i] = words[i] & PLACE if is_keyed else out[i]
            if lacking and high - low > 1:
                merge_sort(x, out, other, low, high, is_down)
            low = high
