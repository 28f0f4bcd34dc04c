"""Sort the places of each row's elements bitonically: the same comparisons for any data.

K. E. Batcher, "Sorting networks and their applications" (1968). A row's places, padded to a power
of two, are sorted in runs of 2, 4, 8, ... places that ascend and descend in turn; a step compares
places that lie `distance` apart. T is the element type.
"""

# pyright: reportUndefinedVariable=false


@exact_jit
def comes_first(x, start, n, p, q, descending):
    """Return whether place p of a row precedes q: NaN is the largest, equals stay in order."""
    if p >= n or q >= n:  # places past the row come last
        return p < q
    a, b = x[start + p], x[start + q]
    if a == b or (a != a and b != b):
        return p < q
    return (a < b or b != b) != (descending != 0)


@exact_jit
def begin(order, count, width):
    """Fill order (rows, width), `count` elements, with the places of each row in their order."""
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        order[i] = i % width


@exact_jit
def sort_step(x, order, rows, n, width, run, distance, descending):
    """Run one step: sort each pair of places at a distance in order (rows, width).

    x (rows, n); run: the length of the sorted runs that the step works towards. descending: 0 or 1.
    """
    half = width // 2
    for k in range(cuda.grid(1), rows * half, cuda.gridsize(1)):
        row = k // half
        pair = k - row * half
        i = pair + pair // distance * distance  # the first of the pair
        at = row * width + i
        p, q = order[at], order[at + distance]
        goes_up = i // run % 2 == 0
        if comes_first(x, row * n, n, q, p, descending) == goes_up:
            order[at] = q
            order[at + distance] = p
