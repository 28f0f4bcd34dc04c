"""Clip gradients on a GPU: parts of the work that the blocks of one gradient share.

`block` of `blocks` blocks works on this gradient of n elements; T is its type.
"""

# pyright: reportUndefinedVariable=false


@exact_jit
def squares(x, n, block, blocks, sums):
    """Set sums[blockIdx.x] to the sum of squares of this block's elements."""
    warps = cuda.shared.array(8, T)
    total = T(0)
    for i in range(block * cuda.blockDim.x + cuda.threadIdx.x, n, blocks * cuda.blockDim.x):
        total += x[i] * x[i]
    step = I4(16)
    while step > 0:
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, step)
        step = I4(step // 2)
    if cuda.threadIdx.x & 31 == 0:
        warps[cuda.threadIdx.x >> 5] = total
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        for k in range(1, 8):
            total += warps[k]
        sums[cuda.blockIdx.x] = total


@exact_jit
def scale(x, n, block, blocks, factor):
    """Multiply x by factor."""
    for i in range(block * cuda.blockDim.x + cuda.threadIdx.x, n, blocks * cuda.blockDim.x):
        x[i] *= factor
