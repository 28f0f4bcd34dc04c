"""The second pass of products whose sums over k were split into pieces."""

# pyright: reportUndefinedVariable=false


@exact_jit
def add_splits(parts, added, out, splits, count, m, n, inner, out_outer, out_inner, out_m, mode):
    """Sum parts[s, z, i, j] into out[z, i, j], in the order of s, and add what mode says.

    mode 1: added[j]; 2: added at the same place, which is what the output held; else nothing. parts
    is (splits, z, m, n) in C order, `count` elements per split; z counts blocks, whose last
    axis is `inner` long. One thread per element, striding over the grid.
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
