"""Sort the places of the elements of each row of x (rows, n)."""

# pyright: reportUndefinedVariable=false


@lazy("void(i8,i8,i8,i8,i8,i8)")
def argsort_T(x_at, out_at, other_at, n, start, stop):
    """Write the places that sort rows start to stop - 1 in ascending order, NaN last, to out.

    A stable merge sort; other: memory for as many places as out.
    """
    for row in range(start, stop):
        x, out = T_at(x_at + row * n * SIZE), i8_at(out_at + row * n * 8)
        other = i8_at(other_at + row * n * 8)
        for i in range(n):
            out[i] = i
        width = 1
        while width < n:
            low = 0
            while low < n:
                middle, high = min(low + width, n), min(low + 2 * width, n)
                i, j = low, middle
                for k in range(low, high):
                    takes_left = j >= high
                    if i < middle and not takes_left:
                        a, b = x[out[i]], x[out[j]]
                        takes_left = a <= b or b != b
                    if takes_left:
                        other[k] = out[i]
                        i += 1
                    else:
                        other[k] = out[j]
                        j += 1
                low = high
            for i in range(n):
                out[i] = other[i]
            width *= 2
