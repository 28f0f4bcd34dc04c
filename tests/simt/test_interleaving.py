"""Kernels in orders drawn at random: with their barriers right in all, without them by luck."""

import numpy as np
import pytest

from minigrad.errors import DivergentBarrierError, EndlessLoopError, KernelError
from minigrad.simt.language.language import cuda
from minigrad.simt.watch import interleaving
from minigrad.simt.watch.interleaving import run_in_some_order

THREADS = 64


def block_sum(x, out):
    s = cuda.shared.array(THREADS, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = s[0]


def no_first_barrier(x, out):
    s = cuda.shared.array(THREADS, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    half = THREADS // 2
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = s[0]


def halves(s, t, half):
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        cuda.syncthreads()
        half //= 2
    return s[0]


def sums_in_a_function(x, out):
    s = cuda.shared.array(THREADS, np.float32)
    s[cuda.threadIdx.x] = x[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.blockIdx.x] = halves(s, cuda.threadIdx.x, THREADS // 2)


def halves_without_barriers(s, t, half):
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        half //= 2
    return s[0]


def no_barrier_in_a_function(x, out):
    s = cuda.shared.array(THREADS, np.float32)
    s[cuda.threadIdx.x] = x[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.blockIdx.x] = halves_without_barriers(s, cuda.threadIdx.x, THREADS // 2)


def down(x, n):
    return x[n] if n == 0 else down(x, n - 1)


def calls_itself(x, out):
    out[0] = down(x, 3)


def trusts_the_warp(x, out):
    s = cuda.shared.array(32, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    half = 16
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        half //= 2
    if t == 0:
        out[0] = s[0]


def asks_the_warp(x, out):
    s = cuda.shared.array(32, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncwarp()
    half = 16
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        cuda.syncwarp()
        half //= 2
    if t == 0:
        out[0] = s[0]


def adds_without_atomics(x, out):
    out[0] += x[cuda.threadIdx.x]


def adds_with_atomics(x, out):
    cuda.atomic.add(out, 0, x[cuda.threadIdx.x])


def half_a_barrier(x, out):
    if cuda.threadIdx.x < 32:
        cuda.syncthreads()
    else:
        cuda.syncwarp()
        while x[0] > 0:
            cuda.syncwarp()


def shuffles(x, out):
    out[0] = cuda.shfl_down_sync(-1, x[0], 1)


def right_in(kernel, blocks, threads, together, seeds=8):
    """In how many orders the kernel sums right."""
    right = 0
    for seed in range(seeds):
        x = np.random.default_rng(seed).uniform(1, 2, blocks * threads).astype(np.float32)
        out = np.zeros(blocks, np.float32)
        run_in_some_order(kernel, blocks, threads, (x, out), seed=seed, together=together)
        right += np.allclose(out, x.reshape(blocks, -1).sum(1), rtol=1e-5)
    return right


@pytest.mark.parametrize("together", [1, 32])
def test_a_kernel_with_its_barriers_is_right_in_every_order(together):
    assert right_in(block_sum, 2, THREADS, together) == 8
    assert right_in(asks_the_warp, 1, 32, together) == 8
    assert right_in(sums_in_a_function, 2, THREADS, together) == 8


def test_without_a_barrier_it_is_right_by_luck_alone():
    assert 0 < right_in(no_first_barrier, 1, THREADS, 32, seeds=20) < 20
    assert right_in(no_barrier_in_a_function, 1, THREADS, 1, seeds=20) < 20


def test_a_kernel_that_trusts_the_warp_is_right_as_long_as_warps_go_in_lock_step():
    assert right_in(trusts_the_warp, 1, 32, together=32) == 8
    assert right_in(trusts_the_warp, 1, 32, together=1) == 0


def test_increments_get_lost_where_they_are_not_atomic():
    assert right_in(adds_with_atomics, 1, 64, together=1) == 8
    assert right_in(adds_without_atomics, 1, 64, together=1) == 0


def test_a_barrier_that_some_never_reach_is_named_with_its_line():
    x, out = np.zeros(1, np.float32), np.zeros(1, np.float32)
    run_in_some_order(half_a_barrier, 1, 64, (x, out))  # who has ended is not waited for

    def stuck(x, out):
        if cuda.threadIdx.x < 32:
            cuda.syncthreads()
        else:
            while cuda.threadIdx.x > 32:
                cuda.syncwarp()
            out[0] = 1
            cuda.syncwarp()
            cuda.syncthreads()
            cuda.syncwarp()

    with pytest.raises(DivergentBarrierError, match=r"syncwarp|syncthreads"):
        run_in_some_order(stuck, 1, 64, (x, out), together=1)


def never_ends(x, out):
    while x[0] > 0:
        out[0] += 1


def test_a_loop_without_end_ends(monkeypatch):
    monkeypatch.setattr(interleaving, "MOST_STEPS", 1000)
    with pytest.raises(EndlessLoopError, match="never_ends"):
        run_in_some_order(never_ends, 1, 32, (np.ones(1), np.zeros(1)))


def test_shuffles_are_refused_by_name():
    with pytest.raises(KernelError, match="shfl_down_sync"):
        run_in_some_order(shuffles, 1, 32, (np.zeros(1), np.zeros(1)))


def several_targets(x, out):
    t = cuda.threadIdx.x
    out[t] = y = out[t + 32] = x[t]
    out[t] += y


def test_an_assignment_to_several_targets_reaches_all():
    x, out = np.arange(32.0), np.zeros(64)
    run_in_some_order(several_targets, 1, 32, (x, out))
    assert (out == np.concatenate([2 * x, x])).all()


def test_device_functions_that_call_themselves_are_refused():
    with pytest.raises(KernelError, match="down does") as caught:
        run_in_some_order(calls_itself, 1, 32, (np.zeros(1), np.zeros(1)))
    assert f"test_interleaving.py:{down.__code__.co_firstlineno}" in caught.value.where


def counts_at_a_barrier(x, out):
    n = cuda.syncthreads_count(1)
    out[0] = n


def goes_too_far(x, out):
    mine = cuda.local.array(2, np.float32)
    mine[0] = x[0]
    out[7] = mine[0]


def test_a_kernel_may_be_decorated():
    from minigrad import cuda

    @cuda.jit
    def counts(x, out):
        cuda.atomic.add(out, 0, x[0])

    out = np.zeros(1)
    run_in_some_order(counts, 1, 32, (np.ones(1), out))
    assert out == 32


def test_names_without_orders_are_refused_with_their_line():
    first = counts_at_a_barrier.__code__.co_firstlineno
    with pytest.raises(KernelError, match="syncthreads_count") as caught:
        run_in_some_order(counts_at_a_barrier, 1, 32, (np.zeros(1), np.zeros(1)))
    assert f"test_interleaving.py:{first + 1}" in caught.value.where


def test_errors_of_python_have_the_kernel_s_line():
    with pytest.raises(IndexError) as caught:
        run_in_some_order(goes_too_far, 1, 32, (np.zeros(1), np.zeros(1)))
    assert caught.traceback[-1].lineno + 1 == goes_too_far.__code__.co_firstlineno + 3


def test_who_watches_sees_every_step():
    moments = []
    x, out = np.ones(THREADS, np.float32), np.zeros(1, np.float32)
    run_in_some_order(block_sum, 1, THREADS, (x, out), watch=moments.append)
    assert any(any(moment.waits) for moment in moments)
    assert moments[-1].lines == (None,) * THREADS
    assert moments[-1].shared[0][0] == THREADS == out[0]


def documented(x, out):
    """Not a statement."""
    s = cuda.shared.array(THREADS, np.float32)
    s[cuda.threadIdx.x] = x[cuda.grid(1)]
    cuda.syncthreads()
    out[0] = s[0]


def test_threads_stand_at_statements_from_the_first_step_on():
    moments, first = [], documented.__code__.co_firstlineno + 2
    x, out = np.ones(THREADS, np.float32), np.zeros(1, np.float32)
    run_in_some_order(documented, 1, THREADS, (x, out), watch=moments.append)
    assert set(moments[0].lines) == {first, first + 1}  # one warp has moved
    assert {line for m in moments for line in m.lines} == {None, *range(first, first + 4)}
