"""How sums stay accurate: in blocks, whose sums are added in float64.

Each addition rounds the sum. So a float32 sum that has grown large loses part of every number that
follows, or all of it. Kernels therefore sum at most BLOCK numbers in float32, and add the sums of
blocks in float64. The size of a block then bounds the error, however many numbers there are
(docs/numerics.md).

On a GPU, whose float64 units are few, the sums of blocks are added as a tree instead.
"""

BLOCK = 512  # numbers added by one accumulator of the kernel's type
DENSE = 4096  # contiguous numbers, added by a vector of accumulators
MET = 1024  # atomic additions to one place of a GPU's memory
COLUMNS = 1024  # columns that are summed at a time, as in source/sums.py


def scratch_to_add(n, m, r):
    """(float32 elements of scratch, rows of totals) for sums of m rows of r at n targets.

    See add_f4.py: every SUMMED rows may need a row of totals; at least a third of them stays free.
    """
    if m <= BLOCK:
        return 0, 0
    size = 1 << (min(n, m // BLOCK) * 3 // 2).bit_length()
    return -(-(2 * size * (r + 1) + n) // 16) * 16, size
