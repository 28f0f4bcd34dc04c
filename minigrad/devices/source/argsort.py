"""The order of the elements of a flat x."""

# pyright: reportUndefinedVariable=false


@lazy("void(i8,i8,i8,i8,i8,i8)")
def argsort_f8(x_at, out_at, other_at, n, start, stop):
    """out = the places of x (n,) in ascending order, by a stable merge sort.

    other: memory for n places. The thread whose range is not empty does all the work.
    """
    x, out, other = f8_at(x_at), i8_at(out_at), i8_at(other_at)
    if start < stop:
        for i in range(n):
            out[i] = i
        width = 1
        while width < n:
            low = 0
            while low < n:
                middle, high = min(low + width, n), min(low + 2 * width, n)
                i, j = low, middle
                for k in range(low, high):
                    if j >= high or (i < middle and x[out[i]] <= x[out[j]]):
                        other[k] = out[i]
                        i += 1
                    else:
                        other[k] = out[j]
                        j += 1
                low = high
            for i in range(n):
                out[i] = other[i]
            width *= 2
