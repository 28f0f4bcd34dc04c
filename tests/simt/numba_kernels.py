"""Kernels for Numba's CUDA target; run as a script, by Numba's own simulator, into an .npz file."""

import math
import sys

import numpy as np
from numba import cuda, float32, int32

T = 4
PADDED = T + 1


@cuda.jit(device=True)
def gelu(x):
    return float32(0.5) * x * (float32(1) + math.tanh(float32(0.79788456) * x))


@cuda.jit(device=True)
def block_sum(part, t):
    step = cuda.blockDim.x // 2
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        cuda.syncthreads()
        step //= 2
    return part[0]


@cuda.jit
def elementwise(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = gelu(x[i]) if x[i] > 0 else x[i] * float32(0.1)


@cuda.jit
def transpose(x, out):
    tile = cuda.shared.array((T, PADDED), float32)
    j, i = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        tile[cuda.threadIdx.y, cuda.threadIdx.x] = x[i, j]
    cuda.syncthreads()
    i = cuda.blockIdx.x * T + cuda.threadIdx.y
    j = cuda.blockIdx.y * T + cuda.threadIdx.x
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


@cuda.jit
def matmul(a, b, c):
    left = cuda.shared.array((T, T), float32)
    right = cuda.shared.array((T, T), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    j, i = cuda.grid(2)
    total = float32(0)
    for t in range((a.shape[1] + T - 1) // T):
        left[y, x] = 0
        right[y, x] = 0
        if i < a.shape[0] and t * T + x < a.shape[1]:
            left[y, x] = a[i, t * T + x]
        if t * T + y < b.shape[0] and j < b.shape[1]:
            right[y, x] = b[t * T + y, j]
        cuda.syncthreads()
        for k in range(T):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    if i < c.shape[0] and j < c.shape[1]:
        c[i, j] = total


@cuda.jit
def reduction(x, out):
    part = cuda.shared.array(16, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    total = block_sum(part, t)
    if t == 0:
        cuda.atomic.add(out, 0, total)


@cuda.jit
def divergent(x, out):
    i = cuda.grid(1)
    if i >= x.size:
        return
    n = i
    steps = 0
    while n != 1 and steps < 30:
        if n % 2 == 0:
            n //= 2
        else:
            n = 3 * n + 1
        steps += 1
        if n <= 0:
            break
    for k in range(i % 5):
        if k == 3:
            continue
        steps += k
    out[i] = steps


@cuda.jit
def histogram(x, out):
    bins = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    if t < 8:
        bins[t] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, x[i], 1)
    cuda.syncthreads()
    if t < 8:
        cuda.atomic.add(out, t, bins[t])
        cuda.atomic.max(out, 8, bins[t])


@cuda.jit
def scan(x, out):
    part = cuda.shared.array(0, float32)
    t = cuda.threadIdx.x
    part[t] = x[t]
    cuda.syncthreads()
    step = 1
    while step < cuda.blockDim.x:
        v = part[t - step] if t >= step else float32(0)
        cuda.syncthreads()
        part[t] += v
        cuda.syncthreads()
        step *= 2
    out[t] = part[t] + cuda.syncthreads_count(x[t] > 0)


@cuda.jit
def locals_and_tuples(x, out):
    i = cuda.grid(1)
    acc = cuda.local.array(3, float32)
    for k in range(3):
        acc[k] = x[(i + k) % x.size]
    a, b = acc[0], acc[2]
    a, b = b, a
    out[i] = a - b + acc[i % 3] + max(a, b) * min(abs(a), 2) + (a if 0 < a < 1 else -b)


def cases():
    """name -> (kernel, blocks, threads, arguments, bytes of dynamic shared memory)."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal(30).astype(np.float32)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((6, 5), (5, 7)))
    new = np.zeros
    return {
        "elementwise": (elementwise, 4, 8, [x, new(30, np.float32)], 0),
        "transpose": (transpose, (2, 2), (T, T), [a, new((5, 6), np.float32)], 0),
        "matmul": (matmul, (2, 2), (T, T), [a, b, new((6, 7), np.float32)], 0),
        "reduction": (reduction, 2, 16, [x, new(1, np.float32)], 0),
        "divergent": (divergent, 4, 8, [x, new(30, np.int64)], 0),
        "histogram": (histogram, 2, 8, [rng.integers(0, 8, 40), new(9, np.int32)], 0),
        "scan": (scan, 1, 16, [x[:16], new(16, np.float32)], 64),
        "locals": (locals_and_tuples, 2, 8, [x, new(16, np.float32)], 0),
    }


if __name__ == "__main__":
    results = {}
    for name, (kernel, blocks, threads, arguments, shared) in cases().items():
        kernel[blocks, threads, 0, shared](*arguments)
        results[name] = arguments[-1]
    np.savez(sys.argv[1], **results)
