"""Blocks and warps: shared memory, barriers, shuffles, votes, halves and bits, against NumPy."""

import numpy as np
import pytest

from minigrad import simt
from tests.simt.programs import define

RNG = np.random.default_rng(1)
X = RNG.standard_normal(1000).astype(np.float32)


def launch(text, blocks, threads, *arguments, shared=0, **names):
    simt.launch(define(text, **names)["kernel"], blocks, threads, arguments, shared=shared)


@pytest.mark.parametrize("shape", [(64, 67, 64), (5, 3, 40), (16, 16, 16)])
def test_tiled_matmul(shape):
    text = """
def kernel(a, b, c):
    left = cuda.shared.array((T, T), np.float32); right = cuda.shared.array((T, T), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    j, i = cuda.grid(2)
    total = np.float32(0)
    for t in range((a.shape[1] + T - 1) // T):
        k = t * T + x
        left[y, x] = a[i, k] if i < a.shape[0] and k < a.shape[1] else np.float32(0)
        k = t * T + y
        right[y, x] = b[k, j] if k < b.shape[0] and j < b.shape[1] else np.float32(0)
        cuda.syncthreads()
        for k in range(T):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    if i < c.shape[0] and j < c.shape[1]:
        c[i, j] = total
"""
    n, k, m = shape
    a, b = (RNG.standard_normal(s).astype(np.float32) for s in ((n, k), (k, m)))
    c = np.zeros((n, m), np.float32)
    launch(text, (-(-m // 16), -(-n // 16)), (16, 16), a, b, c, T=16)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("blocks", [1, 8, 300])
def test_block_reduction(blocks):
    text = """
def total(part, t):
    s = cuda.blockDim.x // 2
    while s > 0:
        if t < s:
            part[t] += part[t + s]
        cuda.syncthreads()  # a barrier within a device function
        s //= 2
    return part[0]


def kernel(x, out):
    part = cuda.shared.array(0, np.float32)
    t = cuda.threadIdx.x
    s = np.float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        s += x[i]
    part[t] = s
    cuda.syncthreads()
    s = total(part, t)
    if t == 0:
        out[cuda.blockIdx.x] = s
"""
    out = np.zeros(blocks, np.float32)
    launch(text, blocks, 128, X, out, shared=128 * 4)
    assert out.sum() == pytest.approx(X.sum(), abs=1e-3)


def test_warp_reduction():
    text = """
def kernel(x, out):
    i = cuda.grid(1)
    v = x[i] if i < x.size else np.float32(0)
    step = 16
    while step > 0:
        v += cuda.shfl_down_sync(0xFFFFFFFF, v, step)
        step >>= 1
    if cuda.laneid == 0:
        cuda.atomic.add(out, 0, v)
"""
    out = np.zeros(1, np.float32)
    launch(text, 8, 128, X, out)
    assert out[0] == pytest.approx(X.sum(), abs=1e-3)


def test_shuffles():
    text = """
def kernel(out):
    i = cuda.grid(1)
    v = np.int32(i * 10)
    out[0, i] = cuda.shfl_sync(0xFFFFFFFF, v, 3)
    out[1, i] = cuda.shfl_sync(0xFFFFFFFF, v, i * 7 + 40)
    out[2, i] = cuda.shfl_up_sync(0xFFFFFFFF, v, 5)
    out[3, i] = cuda.shfl_down_sync(0xFFFFFFFF, v, 9)
    out[4, i] = cuda.shfl_xor_sync(0xFFFFFFFF, v, 6)
    out[5, i] = cuda.shfl_xor_sync(-1, np.int32(7), 1)
    if i % 32 < 4:
        out[6, i] = cuda.shfl_xor_sync(0xF, v, 1)
    else:
        out[6, i] = cuda.shfl_sync(0xFFFFFFF0, v, 31 - i % 4)
"""
    n = 96
    out = np.zeros((7, n), np.int64)
    launch(text, 1, n, out)
    i = np.arange(n)
    lane, base = i % 32, i // 32 * 32
    wanted = [
        base + 3,
        base + (i * 7 + 40) % 32,
        np.where(lane >= 5, i - 5, i),
        np.where(lane + 9 < 32, i + 9, i),
        i ^ 6,
        np.full(n, 0.7),
        np.where(lane < 4, i ^ 1, base + 31 - i % 4),
    ]
    assert (out == np.array(wanted) * 10).all()


def test_votes():
    text = """
def kernel(x, out):
    i = cuda.grid(1)
    hit = x[i] > 0
    out[0, i] = cuda.ballot_sync(0xFFFFFFFF, hit)
    out[1, i] = cuda.any_sync(0xFFFFFFFF, hit)
    out[2, i] = cuda.all_sync(0xFFFFFFFF, hit)
    out[3, i] = cuda.popc(cuda.ballot_sync(0xFFFFFFFF, i >= 0))
    if i % 2:
        out[4, i] = cuda.activemask()
    out[5, i] = cuda.match_any_sync(0xFFFFFFFF, i % 3)
    out[6, i] = cuda.syncthreads_count(hit)
    out[7, i] = cuda.syncthreads_and(hit or i > 63)
    out[8, i] = cuda.syncthreads_or(hit and i > 63)
    cuda.syncwarp()
"""
    x = np.r_[-np.ones(32), np.ones(32), X[:64]]
    out = np.zeros((9, 128), np.int64)
    launch(text, 2, 64, x, out)
    hit, i = x > 0, np.arange(128)
    bits = (hit.reshape(4, 32) * (1 << np.arange(32))).sum(1).astype(np.uint32).view(np.int32)
    assert (out[0] == np.repeat(bits, 32)).all()
    assert (out[1] == np.repeat(hit.reshape(4, 32).any(1), 32)).all()
    assert (out[2] == np.repeat(hit.reshape(4, 32).all(1), 32)).all()
    assert (out[3] == 32).all()
    assert (out[4] == np.where(i % 2, np.uint32(0xAAAAAAAA).view(np.int32), 0)).all()
    same = (i[:, None] % 3 == i % 3) & (i[:, None] // 32 == i // 32)
    wanted = (same * (1 << (i % 32))).sum(1).astype(np.uint32).view(np.int32)
    assert (out[5] == wanted).all()
    assert (out[6] == np.repeat(hit.reshape(2, 64).sum(1), 64)).all()
    assert (out[7] == np.repeat((hit | (i > 63)).reshape(2, 64).all(1), 64)).all()
    assert (out[8] == np.repeat((hit & (i > 63)).reshape(2, 64).any(1), 64)).all()


def test_lanes_that_have_returned_are_not_waited_for():
    text = """
def kernel(out):
    i = cuda.grid(1)
    if i >= 20:
        return
    cuda.syncwarp()
    out[i] = cuda.popc(cuda.ballot_sync(0xFFFFFFFF, True)) + cuda.shfl_sync(0xFFFFFFFF, i, 19)
"""
    out = np.zeros(32, np.int64)
    launch(text, 1, 32, out)
    assert (out == np.where(np.arange(32) < 20, 39, 0)).all()


def test_float16():
    text = """
def kernel(x, out):
    i = cuda.grid(1)
    out[i] = cuda.fp16.hfma(x[i], x[i], np.float16(0.5)) + x[i]
    out[i] = cuda.fp16.hexp(out[i])
"""
    x = X[:40].astype(np.float16)
    out = np.zeros(40, np.float16)
    launch(text, 1, 40, x, out)
    inner = (x.astype(float) * x.astype(float) + 0.5).astype(np.float16) + x
    assert (out == np.exp(inner.astype(np.float32)).astype(np.float16)).all()


def test_two_shared_arrays_on_one_line():
    text = """
def kernel(out):
    t = cuda.threadIdx.x
    a, b = cuda.shared.array(4, np.int32), cuda.shared.array(4, np.int32)
    a[t] = t
    b[t] = 10 * t
    cuda.syncthreads()
    out[cuda.grid(1)] = a[3 - t] + b[t]
"""
    out = np.zeros(8, np.int64)
    launch(text, 2, 4, out)
    assert out.tolist() == [3, 12, 21, 30] * 2


def test_dynamic_arrays_are_the_same_bytes():
    text = """
def kernel(out):
    t = cuda.threadIdx.x
    a = cuda.shared.array(0, np.float32)
    b = cuda.shared.array(shape=(0,), dtype=np.int32)
    part = b[4:]
    a[t] = t + 1
    part[t] = 7
    cuda.syncthreads()
    out[t, 0] = b[t]
    out[t, 1] = b[t + 4] + b.size
"""
    out = np.zeros((4, 2), np.int64)
    launch(text, 1, 4, out, shared=32)
    assert (out[:, 0] == np.arange(1, 5, dtype=np.float32).view(np.int32)).all()
    assert (out[:, 1] == 15).all()


def test_threads_that_have_returned_do_not_count_at_barriers():
    text = """
def kernel(x, out):
    part = cuda.shared.array(64, np.float32)
    i = cuda.grid(1)
    if i >= x.size:
        return
    part[cuda.threadIdx.x] = x[i]
    cuda.syncthreads()
    out[i] = part[0] + cuda.syncthreads_count(True)
"""
    out = np.zeros(100, np.float32)
    launch(text, 2, 64, X[:100], out)
    assert (out == np.where(np.arange(100) < 64, X[0] + 64, X[64] + 36)).all()


def test_blocks_go_through_loops_of_their_own_length():
    text = """
def kernel(out):
    part = cuda.shared.array(8, np.int64)
    t = cuda.threadIdx.x
    part[t] = t
    for k in range(cuda.blockIdx.x):
        cuda.syncthreads()
        v = part[(t + 1) % 8]
        cuda.syncthreads()
        part[t] = v
    out[cuda.blockIdx.x, t] = part[t]
"""
    out = np.zeros((6, 8), np.int64)
    launch(text, 6, 8, out)
    assert (out == (np.arange(8) + np.arange(6)[:, None]) % 8).all()


def test_numbers_of_bits():
    text = """
def kernel(x, out):
    i = cuda.grid(1)
    out[0, i] = cuda.popc(x[i])
    out[1, i] = cuda.clz(x[i])
    out[2, i] = cuda.ffs(x[i])
    out[3, i] = cuda.brev(np.uint32(x[i]))
    out[4, i] = cuda.selp(x[i] > 3, 1, 2) + cuda.fma(2.0, 3.0, 0.5) * 2
"""
    x = np.array([0, 1, 2, 12, 2**30, -1], np.int32)
    out = np.zeros((5, 6), np.int64)
    launch(text, 1, 6, x, out)
    assert out[0].tolist() == [0, 1, 1, 2, 1, 32]
    assert out[1].tolist() == [32, 31, 30, 28, 1, 0]
    assert out[2].tolist() == [0, 1, 2, 3, 31, 1]
    assert out[3].tolist() == [int(f"{v & 0xFFFFFFFF:032b}"[::-1], 2) for v in x.tolist()]
    assert out[4].tolist() == [15, 15, 15, 14, 14, 15]
