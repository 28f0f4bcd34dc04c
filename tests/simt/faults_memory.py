"""Planted faults: accesses out of bounds, and reads of what nobody has written."""

from minigrad import cuda
from minigrad.errors import OutOfBoundsError, UninitializedReadError
from tests.simt.planted import N, f4, fault, x_and_out


@fault("guard off by one: `i <= n`", OutOfBoundsError, 4, 32, x_and_out(100), lambda x: x)
def off_by_one():
    def kernel(x, out):
        i = cuda.grid(1)
        if i <= x.size:
            out[i] = x[i]  # fault

    def clean(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[i]

    return kernel, clean


@fault("no guard, more threads than elements", OutOfBoundsError, 4, 32, x_and_out(100))
def no_guard():
    def kernel(x, out):
        i = cuda.grid(1)
        out[i] = x[i]  # fault

    def clean(x, out):
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            out[i] = x[i]

    return kernel, clean


@fault("stencil reads beyond the right end", OutOfBoundsError, 4, 32, x_and_out(N))
def stencil_end():
    def kernel(x, out):
        i = cuda.grid(1)
        if 0 < i < x.size:
            out[i] = x[i - 1] + x[i + 1]  # fault

    def clean(x, out):
        i = cuda.grid(1)
        if 0 < i < x.size - 1:
            out[i] = x[i - 1] + x[i + 1]

    return kernel, clean


@fault("halo of a tile: shared array too small", OutOfBoundsError, 4, 32, x_and_out(N))
def small_tile():
    def kernel(x, out):
        tile = cuda.shared.array(32, f4)
        here = cuda.threadIdx.x
        tile[here + 1] = x[cuda.grid(1)]  # fault
        cuda.syncthreads()
        out[cuda.grid(1)] = tile[here + 1]

    def clean(x, out):
        tile = cuda.shared.array(33, f4)
        here = cuda.threadIdx.x
        tile[here + 1] = x[cuda.grid(1)]
        cuda.syncthreads()
        out[cuda.grid(1)] = tile[here + 1]

    return kernel, clean


@fault("local array indexed too far", OutOfBoundsError, 1, 32, x_and_out(32))
def local_end():
    def kernel(x, out):
        mine = cuda.local.array(4, f4)
        for k in range(4):
            mine[k] = x[cuda.grid(1)]
        out[cuda.grid(1)] = mine[cuda.threadIdx.x // 7]  # fault

    def clean(x, out):
        mine = cuda.local.array(4, f4)
        for k in range(4):
            mine[k] = x[cuda.grid(1)]
        out[cuda.grid(1)] = mine[cuda.threadIdx.x // 8]

    return kernel, clean


@fault(
    "dynamic shared memory smaller than what is used",
    OutOfBoundsError,
    2,
    32,
    x_and_out(64),
    lambda x: x,
    128,
)
def small_dynamic():
    def kernel(x, out):
        tile = cuda.shared.array(0, f4)
        tile[2 * cuda.threadIdx.x] = x[cuda.grid(1)]  # fault
        out[cuda.grid(1)] = tile[2 * cuda.threadIdx.x]

    def clean(x, out):
        tile = cuda.shared.array(0, f4)
        tile[cuda.threadIdx.x] = x[cuda.grid(1)]
        out[cuda.grid(1)] = tile[cuda.threadIdx.x]

    return kernel, clean


def sum_of_tiles(x):
    return x.sum()


@fault(
    "tail of a tile left uninitialised",
    UninitializedReadError,
    1,
    32,
    x_and_out(50, 1),
    sum_of_tiles,
)
def tail_of_tile():
    def kernel(x, out):
        tile = cuda.shared.array(32, f4)
        here = cuda.threadIdx.x
        i = 32 + here
        if i < x.size:
            tile[here] = x[i]
        cuda.syncthreads()
        if here == 0:
            total = f4(0)
            for k in range(32):
                total += tile[k] + x[k]  # fault
            out[0] = total

    def clean(x, out):
        tile = cuda.shared.array(32, f4)
        here = cuda.threadIdx.x
        i = 32 + here
        tile[here] = x[i] if i < x.size else f4(0)
        cuda.syncthreads()
        if here == 0:
            total = f4(0)
            for k in range(32):
                total += tile[k] + x[k]
            out[0] = total

    return kernel, clean


@fault(
    "accumulator in shared memory never set to zero",
    UninitializedReadError,
    2,
    32,
    x_and_out(64, 2),
    lambda x: x.reshape(2, 32).sum(1),
)
def accumulator_not_zeroed():
    def kernel(x, out):
        total = cuda.shared.array(1, f4)
        cuda.atomic.add(total, 0, x[cuda.grid(1)])  # fault
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            out[cuda.blockIdx.x] = total[0]

    def clean(x, out):
        total = cuda.shared.array(1, f4)
        if cuda.threadIdx.x == 0:
            total[0] = f4(0)
        cuda.syncthreads()
        cuda.atomic.add(total, 0, x[cuda.grid(1)])
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            out[cuda.blockIdx.x] = total[0]

    return kernel, clean


@fault("local array read before it is written", UninitializedReadError, 1, 32, x_and_out(32))
def local_not_written():
    def kernel(x, out):
        mine = cuda.local.array(3, f4)
        mine[0] = x[cuda.grid(1)]
        mine[1] = mine[0]
        out[cuda.grid(1)] = mine[1] + mine[2]  # fault

    def clean(x, out):
        mine = cuda.local.array(3, f4)
        mine[0] = x[cuda.grid(1)]
        mine[1] = mine[0]
        mine[2] = f4(0)
        out[cuda.grid(1)] = mine[1] + mine[2]

    return kernel, clean
