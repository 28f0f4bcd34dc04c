"""How sums stay accurate: in blocks, whose sums are added in float64.

A sum is rounded whenever a number joins it. So a float32 sum that has grown large loses numbers
that come late, up to all of them. Kernels therefore sum at most BLOCK numbers in float32, begin
anew, and add the sums of blocks in float64. The error is then bounded by the size of a block,
however many numbers there are (docs/numerics.md).

On a GPU, whose float64 units are few, the sums of blocks are added as a tree instead.
"""

BLOCK = 512  # numbers that one accumulator of the kernel's type takes
DENSE = 4096  # numbers side by side in memory, which a vector of accumulators takes
MET = 1024  # numbers that may meet in one place of a GPU's memory, by atomic additions
COLUMNS = 1024  # columns whose sums wait together, as in source/sums.py


def scratch_to_add(n, m, r):
    """(float32 elements of scratch, rows of totals) for sums of m rows of r at n targets.

    See add_f4: every SUMMED rows may need a row of totals, of which a third at least stays free.
    """
    if m <= BLOCK:
        return 0, 0
    size = 1 << (min(n, m // BLOCK) * 3 // 2).bit_length()
    return -(-(2 * size * (r + 1) + n) // 16) * 16, size
