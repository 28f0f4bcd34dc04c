"""The second pass of products whose sums over k were cut into pieces."""

# pyright: reportUndefinedVariable=false


@exact_jit
def add_splits(parts, added, out, splits, count, m, n, inner, out_outer, out_inner, out_m, mode):
    """out[z, i, j] = the sum over s of parts[s, z, i, j], in the order of s, plus what mode adds.

    mode 1: added[j]; 2: added at the same place, which is what the output held; else nothing. parts
    is (splits, z, m, n) in C order, `count` elements a split; z counts blocks, whose last
    axis is `inner` long. One thread an element, over the grid.
    """
    for e in range(cuda.grid(1), count, cuda.gridsize(1)):
        total = parts[e]
        for s in range(1, splits):
            total += parts[s * count + e]
        row = e // n
        column = e - row * n
        z = row // m
        outer = z // inner
        at = outer * out_outer + (z - outer * inner) * out_inner + (row - z * m) * out_m + column
        if mode & 3:
            total += added[column if mode & 1 else at]
        out[at] = total
