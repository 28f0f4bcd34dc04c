"""One thread an element, and some threads without one."""

from __future__ import annotations

import numpy as np

from minigrad.course.l13_cuda_kernels.launching import (
    Counted,
    empty,
    floats,
    in_float32,
    launch,
    written,
)
from minigrad.course.l13_cuda_kernels.lesson import lesson
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
EXPECTED = "out[i] = x[i] where it is positive, and 0.01 * x[i] elsewhere"


def ask(t: Tester, n: int, threads: int) -> Counted:
    """Launch; fail unless out is the leaky ReLU of x."""
    x = floats(t, n)
    blocks = -(-n // threads)
    counted = launch(t, blocks, threads, {"x": x, "out": empty(n), "n": n}, EXPECTED)
    leaky = np.where(x > 0, x, np.float32(0.01) * x)
    mistakes = [
        Mistake("relu", np.maximum(x, 0), "And the negative ones? A leaky ReLU keeps a little."),
        Mistake("swapped", np.where(x > 0, np.float32(0.01) * x, x), "Which side is scaled?"),
    ]
    attempt = "Take one element and follow its thread through the kernel."
    written(t, counted, leaky, "out", attempt=attempt, mistakes=mistakes, rtol=1e-5)
    return counted


@k_map_guarded.check(points=1)
def whole_blocks(t: Tester) -> None:
    """Each element is done by one thread, where the blocks fit exactly."""
    threads = int(t.random.choice([32, 64, 128]))
    ask(t, threads * int(t.random.integers(2, 5)), threads)


@k_map_guarded.check(points=2)
def rest(t: Tester) -> None:
    """Threads without an element touch nothing."""
    threads = int(t.random.choice([32, 64, 128]))
    ask(t, threads * int(t.random.integers(1, 4)) + int(t.random.integers(1, threads)), threads)
    ask(t, int(t.random.integers(2, threads)), threads)


@k_map_guarded.check(points=1)
def single_precision(t: Tester) -> None:
    """Nothing is computed in float64."""
    in_float32(t, ask(t, 100, 64))
