"""A matrix product that reads each element once a tile, and not once a product."""

from __future__ import annotations

import numpy as np

from minigrad.course.l13_cuda_kernels import lesson
from minigrad.course.l13_cuda_kernels.launching import (
    Counted,
    empty,
    floats,
    launch,
    one_each,
    written,
)
from minigrad.grader.tester import Mistake, Tester

k_matmul_tiled = lesson.exercise(
    "k_matmul_tiled",
    difficulty=4,
    minutes=25,
    returns="c filled by the kernel",
    hints=(
        "In each step the block needs TILE columns of its rows of a, and TILE rows of its columns "
        "of b. Two barriers a step: what must be finished before the products, and what before "
        "the next tiles are loaded?",
        "Thread (tx, ty) loads a[row, start + tx] and b[start + ty, column]. Where an index is "
        "beyond the end, a zero goes into the tile: it adds nothing. A thread outside of c must "
        "not leave early; it loads for the others.",
        "for start in range(0, a.shape[1], TILE): fill tile_a[ty, tx] and tile_b[ty, tx]; "
        "cuda.syncthreads(); for k in range(TILE): total += tile_a[ty, k] * tile_b[k, tx]; "
        "cuda.syncthreads(). At the end c[row, column] = total, if it is inside.",
    ),
)
TILE = 16
EXPECTED = "c = a @ b"


def ask(t: Tester, n: int, k: int, m: int, low: float = 0.5) -> Counted:
    """Launch; fail unless c is the product of matrices with numbers from `low` on."""
    a, b = floats(t, n, k, low=low), floats(t, k, m, low=low)
    blocks = (-(-m // TILE), -(-n // TILE))
    given = {"a": a, "b": b, "c": empty(n, m)}
    counted = launch(t, blocks, (TILE, TILE), given, EXPECTED)
    right = a.astype(float) @ b.astype(float)
    mistakes = []
    if n == k == m:
        exact = a.astype(float), b.astype(float)
        says = "Which index of a tile goes with the row, and which with the column?"
        mistakes = [
            Mistake("transposed", right.T, "c[0, 1] holds what belongs at c[1, 0], and so on. "
                    "Which of the two numbers of a thread is its row?"),
            Mistake("swapped", exact[0].T @ exact[1], says),
            Mistake("swapped", exact[0] @ exact[1].T, says),
            Mistake("swapped", exact[1] @ exact[0], says),
            Mistake("last_tile", exact[0][:, -TILE:] @ exact[1][-TILE:],
                    "Only the last tiles are in it. Where does `total` begin?"),
        ]  # fmt: skip
    attempt = "Compare one element with its row times its column. Which products are in it?"
    written(t, counted, right, "c", attempt=attempt, mistakes=mistakes, rtol=1e-4,
            atol=1e-4)  # fmt: skip
    one_each(t, counted, "c")
    return counted


@k_matmul_tiled.check(points=2)
def whole_tiles(t: Tester) -> None:
    """Square matrices whose size is a multiple of TILE; no thread runs ahead."""
    ask(t, 2 * TILE, 2 * TILE, 2 * TILE)


@k_matmul_tiled.check(points=2)
def any_size(t: Tester) -> None:
    """Matrices of any size, where tiles overhang."""
    for low, high in ((2, TILE), (TILE + 1, 2 * TILE)):
        n, k, m = (int(i) for i in t.fixed.integers(low, high, 3))
        ask(t, n, k, m)
    ask(t, TILE + 1, 2 * TILE + 3, 5)
    ask(t, 3, 6 * TILE + 1, 2, low=-2)
    ask(t, 3, 0, 2)


@k_matmul_tiled.check(points=3)
def reads(t: Tester) -> None:
    """A product of (n, n) matrices reads exactly 2 * n**3 / TILE elements of global memory."""
    n = TILE * int(t.fixed.integers(2, 4))
    counted = ask(t, n, n, n)
    n_reads, wanted = counted.lanes("load", "global"), 2 * n**3 // TILE
    if n_reads != wanted:
        reads_c = counted.reads["c"] is not None and bool(np.any(counted.reads["c"]))
        key, attempt = "reads", "Each thread loads one element of either tile in a step, once."
        if n_reads == 2 * n**3:
            key, attempt = "naive", "Every product fetches its own two numbers. Who else had them?"
        elif reads_c:
            attempt = "c is read, too. Where does a sum grow that needs no global memory?"
        expected = f"{wanted} elements read: 2 * {n}**3 / {TILE}"
        array = "c" if reads_c else ""
        where = counted.most(t, "load", "global", array=array) if n_reads else None
        t.fail(key, expected, f"{n_reads} elements read", attempt, where=where)
    stores = counted.lanes("store", "global")
    if stores != n * n:
        attempt = "A thread adds up in a register, and writes once."
        where = counted.most(t, "store", "global")
        t.fail("stores", f"{n * n} elements written", f"{stores}", attempt, where=where)
