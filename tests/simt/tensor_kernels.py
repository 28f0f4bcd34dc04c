"""A kernel with all that tensor cores need: it is the example of docs/simt.md, and it is tested."""

import numpy as np

from minigrad import cuda

f2, f4 = np.float16, np.float32
PITCH = 24  # 16, and 8 more: so the 8 rows of a matrix lie in different banks


@cuda.jit
def multiply(a, b, out):
    """out = a @ b of halves, in float32: a warp computes 16 x 16; sizes are multiples of 16."""
    left = cuda.shared.array((2, 16, PITCH), f2, 16)
    right = cuda.shared.array((2, 16, PITCH), f2, 16)
    lane = cuda.threadIdx.x
    row, column = lane % 16, lane // 16 * 8  # the 16 bytes that the lane copies of each tile
    top, first = 16 * cuda.blockIdx.y, 16 * cuda.blockIdx.x
    cuda.cp_async(left, (0, row, column), a, (top + row, column))
    cuda.cp_async(right, (0, row, column), b, (row, first + column))
    cuda.cp_async_commit()
    c = (f4(0), f4(0), f4(0), f4(0))
    d = (f4(0), f4(0), f4(0), f4(0))
    for k in range(0, a.shape[1], 16):
        here = k // 16 % 2
        if k + 16 < a.shape[1]:  # the next tiles are on their way while these are multiplied
            cuda.cp_async(left, (1 - here, row, column), a, (top + row, k + 16 + column))
            cuda.cp_async(right, (1 - here, row, column), b, (k + 16 + row, first + column))
        cuda.cp_async_commit()
        cuda.cp_async_wait(1)  # for all groups but the latest
        cuda.syncthreads()  # the tiles of all lanes stand
        x = cuda.ldmatrix(left, (here, row, column))
        y = cuda.ldmatrix_trans(right, (here, row, column))
        c = cuda.mma_f16(x, y[:4], c)  # the left 8 columns
        d = cuda.mma_f16(x, y[4:], d)
        cuda.syncthreads()  # all have read: the tiles may be overwritten
    for k in range(2):
        out[top + lane // 4, first + lane % 4 * 2 + k] = c[k]
        out[top + lane // 4 + 8, first + lane % 4 * 2 + k] = c[2 + k]
        out[top + lane // 4, first + lane % 4 * 2 + 8 + k] = d[k]
        out[top + lane // 4 + 8, first + lane % 4 * 2 + 8 + k] = d[2 + k]
