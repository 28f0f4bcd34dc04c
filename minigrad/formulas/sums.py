"""The sizes of blocks that keep sums accurate: sums of blocks are added in float64.

Each addition rounds the sum. So a float32 sum that has grown large loses part of every number that
follows, or all of it. Kernels therefore sum at most BLOCK numbers in float32, and add the sums of
blocks in float64. The size of a block then bounds the error for any count of numbers
(docs/numerics.md).

A GPU has few float64 units. It adds the sums of blocks as a tree instead.
"""

BLOCK = 512  # numbers that one accumulator of the kernel's type adds
DENSE = 4096  # contiguous numbers that a vector of accumulators adds
MET = 1024  # atomic additions to one element of a GPU's memory
COLUMNS = 1024  # columns summed at a time, as in source/sums.py


def scratch_to_add(n, m, r):
    """Returns (float32 elements of scratch, rows of totals) for adding m rows at n targets.

    r: the size of a row. See add_f4.py: every SUMMED rows may need a row of totals, and at least a
    third of these stays free.
    """
    if m <= BLOCK:
        return 0, 0
    size = 1 << (min(n, m // BLOCK) * 3 // 2).bit_length()
    return -(-(2 * size * (r + 1) + n) // 16) * 16, size
