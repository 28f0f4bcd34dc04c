"""Planted faults: two threads use one element, and nothing says who comes first."""

from minigrad import cuda
from minigrad.errors import DataRaceError
from tests.simt.planted import N, f4, fault, x_and_out


def reversed_blocks(x):
    return x.reshape(-1, 32)[:, ::-1].ravel()


@fault("no barrier after a tile is loaded", DataRaceError, 4, 32, x_and_out(N), reversed_blocks)
def no_barrier_after_load():
    def kernel(x, out):
        tile = cuda.shared.array(32, f4)
        here = cuda.threadIdx.x
        tile[here] = x[cuda.grid(1)]  # fault
        out[cuda.grid(1)] = tile[31 - here]  # fault

    def clean(x, out):
        tile = cuda.shared.array(32, f4)
        here = cuda.threadIdx.x
        tile[here] = x[cuda.grid(1)]
        cuda.syncthreads()
        out[cuda.grid(1)] = tile[31 - here]

    return kernel, clean


@fault(
    "no barrier before the next tile overwrites",
    DataRaceError,
    1,
    32,
    x_and_out(N, 32),
    lambda x: x.reshape(4, 32).sum(0)[::-1],
)
def no_barrier_before_next_tile():
    def kernel(x, out):
        tile = cuda.shared.array(32, f4)
        here = cuda.threadIdx.x
        total = f4(0)
        for first in range(0, x.size, 32):
            tile[here] = x[first + here]  # fault
            cuda.syncthreads()
            total += tile[31 - here]  # fault
        out[here] = total

    def clean(x, out):
        tile = cuda.shared.array(32, f4)
        here = cuda.threadIdx.x
        total = f4(0)
        for first in range(0, x.size, 32):
            tile[here] = x[first + here]
            cuda.syncthreads()
            total += tile[31 - here]
            cuda.syncthreads()
        out[here] = total

    return kernel, clean


def block_sums(x):
    return x.reshape(-1, 64).sum(1)


@fault("reduction without a barrier in its loop", DataRaceError, 2, 64, x_and_out(N, 2), block_sums)
def reduction_without_barrier():
    def kernel(x, out):
        part = cuda.shared.array(64, f4)
        here = cuda.threadIdx.x
        part[here] = x[cuda.grid(1)]
        cuda.syncthreads()
        half = 32
        while half > 0:
            if here < half:
                part[here] += part[here + half]  # fault
            half //= 2
        cuda.syncthreads()
        if here == 0:
            out[cuda.blockIdx.x] = part[0]

    def clean(x, out):
        part = cuda.shared.array(64, f4)
        here = cuda.threadIdx.x
        part[here] = x[cuda.grid(1)]
        cuda.syncthreads()
        half = 32
        while half > 0:
            if here < half:
                part[here] += part[here + half]
            cuda.syncthreads()
            half //= 2
        if here == 0:
            out[cuda.blockIdx.x] = part[0]

    return kernel, clean


@fault(
    "warp-synchronous reduction without syncwarp",
    DataRaceError,
    1,
    32,
    x_and_out(32, 1),
    lambda x: x.sum(),
)
def warp_synchronous():
    def kernel(x, out):
        part = cuda.shared.array(32, f4)
        here = cuda.threadIdx.x
        part[here] = x[here]
        cuda.syncwarp()
        if here < 16:
            part[here] += part[here + 16]  # fault
            part[here] += part[here + 8]  # fault
        if here == 0:
            total = f4(0)
            for k in range(8):
                total += part[k]
            out[0] = total

    def clean(x, out):
        part = cuda.shared.array(32, f4)
        here = cuda.threadIdx.x
        part[here] = x[here]
        half = 16
        while half > 0:
            cuda.syncwarp()
            other = f4(0)
            if here < half:
                other = part[here + half]
            cuda.syncwarp()
            if here < half:
                part[here] += other
            half //= 2
        if here == 0:
            out[0] = part[0]

    return kernel, clean


@fault(
    "syncwarp where a barrier of the block is needed",
    DataRaceError,
    1,
    64,
    x_and_out(64),
    lambda x: x[::-1],
)
def syncwarp_for_block():
    def kernel(x, out):
        tile = cuda.shared.array(64, f4)
        here = cuda.threadIdx.x
        tile[here] = x[here]  # fault
        cuda.syncwarp()
        out[here] = tile[63 - here]  # fault

    def clean(x, out):
        tile = cuda.shared.array(64, f4)
        here = cuda.threadIdx.x
        tile[here] = x[here]
        cuda.syncthreads()
        out[here] = tile[63 - here]

    return kernel, clean
