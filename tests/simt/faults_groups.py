"""Planted faults: barriers, shuffles and locks that a part of the threads misses."""

import numpy as np

from minigrad import cuda
from minigrad.errors import DivergentBarrierError, EndlessLoopError, InactiveLaneError
from tests.simt.planted import N, f4, fault, x_and_out


@fault("barrier in a divergent branch", DivergentBarrierError, 2, 64, x_and_out(N))
def divergent_barrier():
    def kernel(x, out):
        i = cuda.grid(1)
        if cuda.threadIdx.x < 50:
            out[i] = x[i]
            cuda.syncthreads()  # fault

    def clean(x, out):
        i = cuda.grid(1)
        if cuda.threadIdx.x < 50:
            out[i] = x[i]
        cuda.syncthreads()

    return kernel, clean


@fault("barrier in a loop of different lengths", DivergentBarrierError, 1, 64, x_and_out(100))
def divergent_loop():
    def kernel(x, out):
        for i in range(cuda.threadIdx.x, x.size, 64):
            out[i] = x[i]
            cuda.syncthreads()  # fault

    def clean(x, out):
        for first in range(0, x.size, 64):
            i = first + cuda.threadIdx.x
            if i < x.size:
                out[i] = x[i]
            cuda.syncthreads()

    return kernel, clean


@fault(
    "shuffle in a divergent branch", InactiveLaneError, 1, 32, x_and_out(32, 1), lambda x: x.sum()
)
def divergent_shuffle():
    def kernel(x, out):
        here = cuda.threadIdx.x
        total = x[here]
        for k in range(5):
            step = 16 >> k
            if here < step:
                total += cuda.shfl_down_sync(0xFFFFFFFF, total, step)  # fault
        if here == 0:
            out[0] = total

    def clean(x, out):
        here = cuda.threadIdx.x
        total = x[here]
        for k in range(5):
            total += cuda.shfl_down_sync(0xFFFFFFFF, total, 16 >> k)
        if here == 0:
            out[0] = total

    return kernel, clean


@fault("vote that a part of the warp has left", InactiveLaneError, 1, 32, x_and_out(20))
def vote_after_return():
    def kernel(x, out):
        i = cuda.grid(1)
        if i < x.size and cuda.any_sync(0xFFFFFFFF, x[i] > f4(0)):  # fault
            out[i] = x[i]

    def clean(x, out):
        i = cuda.grid(1)
        value = x[i] if i < x.size else f4(0)
        if cuda.any_sync(0xFFFFFFFF, value > f4(0)) and i < x.size:
            out[i] = value

    return kernel, clean


def lock_and_out():
    return np.zeros(1, np.int32), np.zeros(1, f4)


@fault(
    "a lock that lanes of one warp wait for", EndlessLoopError, 1, 32, lock_and_out, lambda lock: 32
)
def spinning():
    def kernel(lock, out):
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:  # fault
            pass
        out[0] += f4(1)
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)

    def clean(lock, out):
        waits = True
        while waits:
            if cuda.atomic.cas(lock, 0, 0, 1) == 0:
                out[0] += f4(1)
                cuda.threadfence()
                cuda.atomic.exch(lock, 0, 0)
                waits = False

    return kernel, clean
