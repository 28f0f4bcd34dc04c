"""Planted faults: asynchronous copies that are not waited for, products of a part of a warp."""

import numpy as np

from minigrad import cuda
from minigrad.errors import DataRaceError, InactiveLaneError
from tests.simt.planted import f4, fault, x_and_out

SIZE = 256
FOUR = 4  # elements of float32 that one copy moves
LAST = 32 - FOUR  # from here on, threads add up what others have copied


def reversed_fours(x):
    return x.reshape(-1, FOUR)[::-1]


@fault("asynchronous copy without a wait", DataRaceError, 1, 64, x_and_out(SIZE), reversed_fours)
def no_wait():
    def kernel(x, out):
        tile = cuda.shared.array(SIZE, f4, 16)
        here = FOUR * cuda.threadIdx.x
        cuda.cp_async(tile, here, x, here)  # fault
        cuda.cp_async_commit()
        cuda.syncthreads()
        for k in range(FOUR):
            out[here + k] = tile[SIZE - FOUR - here + k]  # fault

    def clean(x, out):
        tile = cuda.shared.array(SIZE, f4, 16)
        here = FOUR * cuda.threadIdx.x
        cuda.cp_async(tile, here, x, here)
        cuda.cp_async_commit()
        cuda.cp_async_wait(0)
        cuda.syncthreads()
        for k in range(FOUR):
            out[here + k] = tile[SIZE - FOUR - here + k]

    return kernel, clean


@fault(
    "asynchronous copy waited for, but no barrier",
    DataRaceError,
    1,
    64,
    x_and_out(SIZE),
    reversed_fours,
)
def no_barrier():
    def kernel(x, out):
        tile = cuda.shared.array(SIZE, f4, 16)
        here = FOUR * cuda.threadIdx.x
        cuda.cp_async(tile, here, x, here)  # fault
        cuda.cp_async_commit()
        cuda.syncthreads()
        cuda.cp_async_wait(0)
        for k in range(FOUR):
            out[here + k] = tile[SIZE - FOUR - here + k]  # fault

    return kernel, no_wait()[1]


@fault("asynchronous copy in no group", DataRaceError, 1, 64, x_and_out(SIZE), reversed_fours)
def no_commit():
    def kernel(x, out):
        tile = cuda.shared.array(SIZE, f4, 16)
        here = FOUR * cuda.threadIdx.x
        cuda.cp_async(tile, here, x, here)  # fault
        cuda.cp_async_wait(0)
        cuda.syncthreads()
        for k in range(FOUR):
            out[here + k] = tile[SIZE - FOUR - here + k]  # fault

    return kernel, no_wait()[1]


def sums(x):
    return x.reshape(-1, FOUR).sum(0)


@fault(
    "two tiles in turn: the wait lets both be late", DataRaceError, 1, 32, x_and_out(512, 4), sums
)
def one_group_too_many():
    def kernel(x, out):
        tile = cuda.shared.array((2, 128), f4, 16)
        here, total = FOUR * cuda.threadIdx.x, f4(0)
        cuda.cp_async(tile, (0, here), x, here)  # fault
        cuda.cp_async_commit()
        for first in range(0, x.size, 128):
            buffer = first // 128 % 2
            if first + 128 < x.size:
                cuda.cp_async(tile, (1 - buffer, here), x, first + 128 + here)  # fault
            cuda.cp_async_commit()
            cuda.cp_async_wait(2)
            cuda.syncthreads()
            if cuda.threadIdx.x >= LAST:
                for k in range(32):
                    total += tile[buffer, FOUR * k + cuda.threadIdx.x - LAST]  # fault
            cuda.syncthreads()
        if cuda.threadIdx.x >= LAST:
            out[cuda.threadIdx.x - LAST] = total

    def clean(x, out):
        tile = cuda.shared.array((2, 128), f4, 16)
        here, total = FOUR * cuda.threadIdx.x, f4(0)
        cuda.cp_async(tile, (0, here), x, here)
        cuda.cp_async_commit()
        for first in range(0, x.size, 128):
            buffer = first // 128 % 2
            if first + 128 < x.size:
                cuda.cp_async(tile, (1 - buffer, here), x, first + 128 + here)
            cuda.cp_async_commit()
            cuda.cp_async_wait(1)
            cuda.syncthreads()
            if cuda.threadIdx.x >= LAST:
                for k in range(32):
                    total += tile[buffer, FOUR * k + cuda.threadIdx.x - LAST]
            cuda.syncthreads()
        if cuda.threadIdx.x >= LAST:
            out[cuda.threadIdx.x - LAST] = total

    return kernel, clean


@fault(
    "asynchronous copy into a tile that others still read",
    DataRaceError,
    1,
    32,
    x_and_out(512, 4),
    sums,
)
def no_barrier_after_reading():
    def kernel(x, out):
        tile = cuda.shared.array((2, 128), f4, 16)
        here, total = FOUR * cuda.threadIdx.x, f4(0)
        for first in range(0, x.size, 128):
            cuda.cp_async(tile, (0, here), x, first + here)  # fault
            cuda.cp_async_commit()
            cuda.cp_async_wait(0)
            cuda.syncthreads()
            if cuda.threadIdx.x < FOUR:
                for k in range(32):
                    total += tile[0, FOUR * k + cuda.threadIdx.x]  # fault
        if cuda.threadIdx.x < FOUR:
            out[cuda.threadIdx.x] = total

    return kernel, one_group_too_many()[1]


def matrices():
    rng = np.random.default_rng(0)
    return rng.integers(-8, 8, (16, 16)).astype(np.float16), np.zeros(128, f4)


@fault(
    "product of tensor cores in a divergent branch",
    InactiveLaneError,
    1,
    32,
    matrices,
    lambda x: x.astype(f4) @ x[:, :8].astype(f4),
)
def divergent_product():
    def kernel(x, out):
        row, column = cuda.laneid // 4, cuda.laneid % 4 * 2
        a = (
            x[row, column], x[row, column + 1], x[row + 8, column], x[row + 8, column + 1],
            x[row, column + 8], x[row, column + 9], x[row + 8, column + 8], x[row + 8, column + 9],
        )  # fmt: skip
        b = (x[column, row], x[column + 1, row], x[column + 8, row], x[column + 9, row])
        c = (f4(0), f4(0), f4(0), f4(0))
        if row < 6:
            c = cuda.mma_f16(a, b, c)  # fault
            out[8 * row + column], out[8 * row + column + 1] = c[0], c[1]

    def clean(x, out):
        row, column = cuda.laneid // 4, cuda.laneid % 4 * 2
        a = (
            x[row, column], x[row, column + 1], x[row + 8, column], x[row + 8, column + 1],
            x[row, column + 8], x[row, column + 9], x[row + 8, column + 8], x[row + 8, column + 9],
        )  # fmt: skip
        b = (x[column, row], x[column + 1, row], x[column + 8, row], x[column + 9, row])
        c = cuda.mma_f16(a, b, (f4(0), f4(0), f4(0), f4(0)))
        for k in range(2):
            out[8 * row + column + k], out[8 * row + 64 + column + k] = c[k], c[k + 2]

    return kernel, clean
