"""One thread an element, and some threads without one."""

from __future__ import annotations

import numpy as np

from minigrad.course.l13_cuda_kernels import lesson
from minigrad.course.l13_cuda_kernels.launching import (
    Counted,
    empty,
    floats,
    in_float32,
    launch,
    one_each,
    written,
)
from minigrad.grader.tester import Mistake, Tester

k_map_guarded = lesson.exercise(
    "k_map_guarded",
    difficulty=1,
    minutes=10,
    returns="out filled by the kernel",
    hints=(
        "A kernel has no loop over elements: each thread does one. Which one? `cuda` knows.",
        "cuda.grid(1) is this thread's number in the whole grid. Whole blocks are launched, so "
        "some of these numbers are too large. For floats, compare and multiply with np.float32(…).",
        "i = cuda.grid(1); then `if i < n:` around all that touches x or out. Inside, `if x[i] > "
        "np.float32(0)` decides what out[i] becomes.",
    ),
)
SPECIAL = np.array([0, 1e-4, -1e-4, 1e30, -1e30, np.inf, -np.inf], np.float32)
EXPECTED = "out[i] = x[i] where it is positive, and 0.01 * x[i] elsewhere"


def ask(t: Tester, n: int, threads: int) -> Counted:
    """Launch; fail unless out is the leaky ReLU of x."""
    x = floats(t, n)
    x[: len(SPECIAL)] = t.random.permutation(SPECIAL)[:n]
    blocks = -(-n // threads)
    counted = launch(t, blocks, threads, {"x": x, "out": empty(n), "n": n}, EXPECTED)
    leaky = np.where(x > 0, x, np.float32(0.01) * x)
    mistakes = [
        Mistake("relu", np.maximum(x, 0), "And the negative ones? A leaky ReLU keeps a little."),
        Mistake("swapped", np.where(x > 0, np.float32(0.01) * x, x), "Which side is scaled?"),
    ]
    attempt = "Take one element and follow its thread through the kernel."
    if np.isnan(counted.arrays["out"]).any():
        attempt = "inf * 0 and inf - inf are nan. Does a thread compute one side, or mix both?"
    written(t, counted, leaky, "out", attempt=attempt, mistakes=mistakes, rtol=1e-5)
    one_each(t, counted, "out")
    return counted


@k_map_guarded.check(points=1)
def whole_blocks(t: Tester) -> None:
    """Each element is done by one thread, where the blocks fit exactly."""
    for threads in (32, 128):
        ask(t, threads * int(t.fixed.integers(2, 5)), threads)


@k_map_guarded.check(points=2)
def rest(t: Tester) -> None:
    """Threads without an element touch nothing."""
    for threads in (64, 20):
        n = threads * int(t.fixed.integers(1, 4)) + int(t.fixed.integers(1, threads))
        ask(t, n, threads)
        ask(t, int(t.fixed.integers(2, threads)), threads)
    ask(t, 1, 32)


@k_map_guarded.check(points=1)
def single_precision(t: Tester) -> None:
    """Nothing is computed in float64."""
    in_float32(t, ask(t, 100, 64))
