"""Planted faults: many threads, of other blocks too, and one element."""

import numpy as np

from minigrad import cuda
from minigrad.errors import DataRaceError
from tests.simt.planted import N, f4, fault, x_and_out


@fault(
    "sum over blocks without an atomic", DataRaceError, 4, 32, x_and_out(N, 1), lambda x: x.sum()
)
def sum_without_atomic():
    def kernel(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[0] += x[i]  # fault

    def clean(x, out):
        i = cuda.grid(1)
        if i < x.size:
            cuda.atomic.add(out, 0, x[i])

    return kernel, clean


def labels_and_bins():
    return np.arange(N, dtype=np.int32) % 5, np.zeros(5, np.int32)


@fault(
    "histogram in shared memory without atomics",
    DataRaceError,
    2,
    64,
    labels_and_bins,
    lambda x: np.bincount(x),
)
def histogram():
    def kernel(labels, out):
        bins = cuda.shared.array(5, np.int32)
        here = cuda.threadIdx.x
        if here < 5:
            bins[here] = 0
        cuda.syncthreads()
        bins[labels[cuda.grid(1)]] += 1  # fault
        cuda.syncthreads()
        if here < 5:
            cuda.atomic.add(out, here, bins[here])

    def clean(labels, out):
        bins = cuda.shared.array(5, np.int32)
        here = cuda.threadIdx.x
        if here < 5:
            bins[here] = 0
        cuda.syncthreads()
        cuda.atomic.add(bins, labels[cuda.grid(1)], 1)
        cuda.syncthreads()
        if here < 5:
            cuda.atomic.add(out, here, bins[here])

    return kernel, clean


@fault("two threads write one element", DataRaceError, 1, 64, x_and_out(64, 32))
def two_writers():
    def kernel(x, out):
        i = cuda.grid(1)
        out[i // 2] = x[i]  # fault

    def clean(x, out):
        i = cuda.grid(1)
        if i % 2 == 0:
            out[i // 2] = x[i]

    return kernel, clean


@fault("all threads write the same flag", DataRaceError, 4, 32, x_and_out(N, 1))
def same_value():
    def kernel(x, out):
        i = cuda.grid(1)
        if x[i] > f4(0):
            out[0] = f4(1)  # fault

    def clean(x, out):
        i = cuda.grid(1)
        if x[i] > f4(0):
            cuda.atomic.max(out, 0, f4(1))

    return kernel, clean


@fault("stencil in place, across blocks", DataRaceError, 4, 32, x_and_out(N))
def stencil_in_place():
    def kernel(x, out):
        i = cuda.grid(1)
        left = x[i - 1] if i > 0 else f4(0)  # fault
        cuda.syncthreads()
        x[i] = x[i] + left  # fault

    def clean(x, out):
        i = cuda.grid(1)
        left = x[i - 1] if i > 0 else f4(0)
        out[i] = x[i] + left

    return kernel, clean


@fault(
    "a result of another block, read in the same launch",
    DataRaceError,
    4,
    32,
    x_and_out(N, 5),
    lambda x: [*x.reshape(4, 32).max(1), 0],
)
def other_blocks_result():
    def kernel(x, out):
        best = cuda.shared.array(1, f4)
        if cuda.threadIdx.x == 0:
            best[0] = x[cuda.grid(1)]
        cuda.syncthreads()
        cuda.atomic.max(best, 0, x[cuda.grid(1)])
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            out[cuda.blockIdx.x] = best[0]  # fault
            if cuda.blockIdx.x == 3:
                out[4] = out[0] + out[1]  # fault

    def clean(x, out):
        best = cuda.shared.array(1, f4)
        if cuda.threadIdx.x == 0:
            best[0] = x[cuda.grid(1)]
        cuda.syncthreads()
        cuda.atomic.max(best, 0, x[cuda.grid(1)])
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            out[cuda.blockIdx.x] = best[0]

    return kernel, clean


def for_last_block():
    x = np.random.default_rng(0).integers(-8, 8, N).astype(f4)
    return x, np.zeros(4, f4), np.zeros(1, np.int32), np.zeros(1, f4)


@fault(
    "last block done: the threadfence is missing",
    DataRaceError,
    4,
    32,
    for_last_block,
    lambda x: x.sum(),
)
def last_block():
    def kernel(x, part, counter, out):
        last = cuda.shared.array(1, np.int32)
        total = f4(0)
        if cuda.threadIdx.x == 0:
            for k in range(32):
                total += x[cuda.blockIdx.x * 32 + k]
            part[cuda.blockIdx.x] = total  # fault
            last[0] = cuda.atomic.add(counter, 0, 1) == cuda.gridDim.x - 1
        cuda.syncthreads()
        if last[0] and cuda.threadIdx.x == 0:
            out[0] = part[0] + part[1] + part[2] + part[3]  # fault

    def clean(x, part, counter, out):
        last = cuda.shared.array(1, np.int32)
        total = f4(0)
        if cuda.threadIdx.x == 0:
            for k in range(32):
                total += x[cuda.blockIdx.x * 32 + k]
            part[cuda.blockIdx.x] = total
            cuda.threadfence()
            last[0] = cuda.atomic.add(counter, 0, 1) == cuda.gridDim.x - 1
        cuda.syncthreads()
        if last[0] and cuda.threadIdx.x == 0:
            out[0] = part[0] + part[1] + part[2] + part[3]
            counter[0] = 0

    return kernel, clean


@fault(
    "a counter read plainly while others add to it",
    DataRaceError,
    1,
    64,
    x_and_out(64, 2),
    lambda x: [64, 64],
)
def atomic_and_plain():
    def kernel(x, out):
        cuda.atomic.add(out, 0, f4(1))  # fault
        if cuda.threadIdx.x == 63:
            out[1] = out[0]  # fault

    def clean(x, out):
        cuda.atomic.add(out, 0, f4(1))
        cuda.syncthreads()
        if cuda.threadIdx.x == 63:
            out[1] = out[0]

    return kernel, clean
