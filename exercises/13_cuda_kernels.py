"""Lesson 13: CUDA kernels, functions that thousands of threads run.

Each function here is a *kernel*: an ordinary function in a small part of
Python, which Numba can compile for a GPU. You do not call it. It is
launched over a grid of blocks of threads, and each thread runs it. In a
kernel, `cuda` says which thread this is, and gives it what threads share.
Each kernel here writes into the last of its arrays, and leaves the others
as they are. Checks run your kernels on minigrad's simulated machine: a
laptop is enough.
"""

import math

import numpy as np

from minigrad import cuda

# How the kernels below are launched. The size of a shared array is such a
# constant, or a number: it must be known when a kernel is compiled, and the
# compiler takes no `THREADS + 1` there.
THREADS = 128  # threads of a block: a power of 2
WARP = 32  # threads of a warp, on every GPU of NVIDIA's
EVERYONE = 0xFFFFFFFF  # the mask of shuffles: all 32 lanes take part
TILE = 16  # k_matmul_tiled: blocks of (TILE, TILE) threads
SQUARE = 32  # k_transpose: blocks of (SQUARE, SQUARE) threads


def k_map_guarded(x, out, n):
    """Write the leaky ReLU of x into out: x where x > 0, else 0.01 * x.

    One thread per element, in blocks of one dimension. There are always
    whole blocks, so the last one may have more threads than there are
    elements left.

    Everything is computed in float32. A Python constant in a kernel is not:
    0.01 is a float64, and 100 an int64, and arithmetic of a float32 with
    either of them is done in float64. On GPUs made for games, that is up to
    64 times slower. `np.float32(0.01)` is a float32.

    Args:
        x, out: float32 arrays (n,).
        n: how many elements.
    """
    raise NotImplementedError("k_map_guarded is yours to write")


def k_block_sum(x, out):
    """Write the sum of each block's elements into out, block b's to out[b].

    One thread per element, in blocks of THREADS threads; the last block may
    have more threads than there are elements left. The threads of a block
    add up in shared memory, half of them in each round, so that no thread
    reads it more than 4 times a round: 28 times with 128 threads. Each
    element of x is read once. No atomic operations.

    Args:
        x: float32 array (n,).
        out: float32 array, one element per block.
    """
    raise NotImplementedError("k_block_sum is yours to write")


def k_warp_sum(x, out):
    """Write the sum of each row of x into out: a warp a row, none shared.

    Blocks have THREADS threads in one dimension, so THREADS / 32 warps;
    warp w of the whole grid (the first 32 threads are warp 0) sums row w.
    There may be more warps than rows. Neighbouring lanes read neighbouring
    elements: lane k reads columns k, k + 32, k + 64 and so on. Then the
    lanes add up with `cuda.shfl_down_sync(EVERYONE, value, n)`: it gives
    each lane the `value` that the lane n places further up has. All 32
    lanes must call it.

    Args:
        x: float32 array (rows, columns), of any size.
        out: float32 array (rows,).
    """
    raise NotImplementedError("k_warp_sum is yours to write")


def k_softmax_row(x, out):
    """Write each row's softmax, exp(x - max) / sum(exp(x - max)), into out.

    One block of THREADS threads per row. A row may have more columns than
    there are threads: thread t computes columns t, t + THREADS and so on.
    All threads together find the largest element, and after it the sum, in
    one shared array of THREADS elements, in rounds as in k_block_sum. In
    global memory, each element of x is read three times at most, and
    nothing but out is written.

    `math.exp` and `max` of float32 are float32; `-math.inf` is a float64
    (see k_map_guarded).

    Args:
        x, out: float32 arrays (rows, columns), with one column at least.
    """
    raise NotImplementedError("k_softmax_row is yours to write")


def k_matmul_tiled(a, b, c):
    """Write the matrix product a @ b into c, over tiles in shared memory.

    Blocks of (TILE, TILE) threads, one thread an element of c: `column, row
    = cuda.grid(2)`, x being the columns. A block goes along the inner
    dimension in steps of TILE. In each step its threads load a tile of a
    and a tile of b into shared memory, each thread one element of either,
    and each thread then adds TILE products of what lies there. So where all
    sizes are multiples of TILE, an (n, n) product reads 2 * n**3 / TILE
    elements of global memory, and not 2 * n**3. Each element of c is
    written once.

    Args:
        a, b, c: float32 arrays (n, k), (k, m) and (n, m), of any size.
    """
    raise NotImplementedError("k_matmul_tiled is yours to write")


def k_transpose(x, out):
    """Write the transpose of x into out, through a tile in shared memory.

    So out[j, i] = x[i, j]. Blocks of (SQUARE, SQUARE) threads; block
    (bx, by) moves the SQUARE x SQUARE elements of x that begin at row
    by * SQUARE and column bx * SQUARE. At the edges there may be fewer.

    A warp is SQUARE threads with the same threadIdx.y. It must read
    neighbours in a row of x, and write neighbours in a row of out: then
    each of its accesses of global memory takes as few sectors (of 32 bytes)
    as can be. And its 32 accesses of shared memory must go to 32 different
    banks: element k of a shared array of float32 lies in bank k % 32.

    Args:
        x, out: float32 arrays (n, m) and (m, n), of any size.
    """
    raise NotImplementedError("k_transpose is yours to write")


# --- Bug hunt -------------------------------------------------------------
# Somebody counts how often each grey value occurs in the digits. Each block
# counts in shared memory, and adds its counts to those of all blocks at the
# end. It passed all of their tests; with larger blocks, counts are missing
# now and then. One thing is wrong.
#   kind:  what is missing: "barrier", "atomic" or "guard";
#   write: the letter of the line whose write is lost or comes too late;
#   read:  the letter of the line that reads or writes what it should not.
# Write them into BUG, two different letters, then mend the kernel.

BUG = {"kind": None, "write": None, "read": None}

GREYS = 17  # grey values of the digits: 0 to 16


def k_histogram(values, counts):
    """Add to counts[g] how often the grey value g occurs in values.

    Blocks of one dimension, of at least GREYS threads; any number of
    blocks.

    Args:
        values: int32 array (n,), each element from 0 to GREYS - 1.
        counts: int32 array (GREYS,). Its values stay, and are added to.
    """
    mine = cuda.shared.array(GREYS, np.int32)  # A
    t = cuda.threadIdx.x  # B
    if t < GREYS:  # C
        mine[t] = 0  # D
    cuda.syncthreads()  # E
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):  # F
        cuda.atomic.add(mine, values[i], 1)  # G
    if t < GREYS:  # H
        cuda.atomic.add(counts, t, mine[t])  # I
