"""The threads of a block add up together, in shared memory."""

from __future__ import annotations

import numpy as np

from minigrad.course.l13_cuda_kernels import lesson
from minigrad.course.l13_cuda_kernels.launching import (
    Counted,
    empty,
    floats,
    in_rounds,
    launch,
    written,
)
from minigrad.grader.tester import Mistake, Tester

k_block_sum = lesson.exercise(
    "k_block_sum",
    difficulty=3,
    minutes=20,
    returns="out filled by the kernel",
    hints=(
        "Three parts: every thread writes its element to shared memory; the threads add up in "
        "rounds, half as many in each; one thread writes the result. Between which of these must "
        "all have finished before anybody goes on?",
        "A thread without an element still takes part: it writes 0, and comes to every barrier. In "
        "a round, thread t < half adds element t + half to element t; then half is halved. A "
        "barrier stands after the first part, and after each round, outside of every `if`.",
        "s = cuda.shared.array(THREADS, np.float32); s[t] = x[i] or np.float32(0); "
        "cuda.syncthreads(); half = THREADS // 2; while half > 0: (if t < half: s[t] += "
        "s[t + half]); cuda.syncthreads(); half //= 2. At the end thread 0 writes s[0] to "
        "out[cuda.blockIdx.x].",
    ),
)
THREADS = 128
EXPECTED = "out[b] = the sum of the elements of block b's threads"


def ask(t: Tester, n: int, sign: int = 1) -> Counted:
    """Launch; fail unless each block summed its elements, all of this sign."""
    x = sign * floats(t, n, low=0.5, high=2)
    blocks = -(-n // THREADS)
    counted = launch(t, blocks, THREADS, {"x": x, "out": empty(blocks)}, EXPECTED)
    padded = np.zeros(blocks * THREADS, np.float32)
    padded[:n] = x
    parts = padded.reshape(blocks, THREADS)
    right = parts.astype(float).sum(axis=1)
    mistakes = [
        Mistake("half", parts[:, : THREADS // 2].astype(float).sum(axis=1),
                "Only the first half was added up. With which distance do the rounds begin?"),
        Mistake("first", parts[:, 0], "That is the first thread's element. Who adds the others?"),
        Mistake("truncated", np.trunc(parts).astype(float).sum(axis=1),
                "These are sums without the fractions. Which dtype has each array on the way?"),
        Mistake("total", np.full(blocks, right.sum()), "Each block sums its own elements only."),
    ]  # fmt: skip
    attempt = "Which elements are in it, and which not? Go through the rounds for 4 threads."
    written(t, counted, right, "out", attempt=attempt, mistakes=mistakes, rtol=1e-4)
    return counted


@k_block_sum.check(points=2)
def one_block(t: Tester) -> None:
    """A block whose threads all have an element adds them up, and no thread runs ahead."""
    ask(t, THREADS)


@k_block_sum.check(points=2)
def several(t: Tester) -> None:
    """Several blocks, each its own sum; threads without an element do no harm."""
    ask(t, THREADS * int(t.fixed.integers(1, 4)) + int(t.fixed.integers(1, THREADS)))
    ask(t, int(t.fixed.integers(2, 32)), sign=-1)
    ask(t, 1)


@k_block_sum.check(points=2)
def together(t: Tester) -> None:
    """Each element is read once; the sum takes a few rounds of many threads, not many of one."""
    n = 3 * THREADS - 5
    counted = ask(t, n)
    if counted.lanes("atomic", "global") + counted.lanes("atomic", "shared"):
        attempt = "An atomic operation makes threads queue. How do they add up side by side?"
        where = counted.most(t, "atomic", "global", "shared")
        t.fail("atomic", "no atomic operations", "atomic operations", attempt, where=where)
    reads = counted.lanes("load", "global")
    if (counted.reads["x"] != 1).any():
        attempt = "Each thread reads its own element, once. Where are they kept for the rest?"
        t.fail("reads", f"{n} elements of x read, each once", f"{reads} read", attempt)
    in_rounds(t, counted)
    if counted.of_round > 4:
        attempt = "Half of the threads add in a round, one element each. How many does yours add?"
        expected = "at most 4 reads of shared memory by one thread from one barrier to the next"
        t.fail("long_rounds", expected, f"{counted.of_round} by one thread", attempt)
    if (shared_reads := counted.lanes("load", "shared")) < 3 * (THREADS - 1):
        attempt = "Each addition takes what another thread has put into shared memory. Does yours?"
        expected = f"{THREADS - 1} additions a block of what lies in shared memory"
        t.fail("not_shared", expected, f"{shared_reads} reads of it by 3 blocks", attempt)
