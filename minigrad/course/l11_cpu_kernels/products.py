"""A matrix product, block by block."""

from __future__ import annotations

import numpy as np

from minigrad.course.l11_cpu_kernels import lesson
from minigrad.course.l11_cpu_kernels.launching import (
    BEFORE,
    Counted,
    empty,
    laid_out,
    launch,
    no_temporaries,
    watch,
    with_specials,
    written,
)
from minigrad.grader import samples
from minigrad.grader.tester import Mistake, Tester

k_matmul_blocked = lesson.exercise(
    "k_matmul_blocked",
    difficulty=4,
    minutes=30,
    returns="c filled by the kernel",
    hints=(
        "Three plain loops use all of b for each row of a. With 8 rows of a at hand: how often "
        "must an element of b come into the cache?",
        "Three outer loops go over the beginnings of blocks, in steps of `block`: of rows, of "
        "columns, of the inner dimension. Three inner loops go through what is in these blocks. "
        "Where does a block end that would reach beyond the matrix?",
        "Zeros into c first, then: for top in range(0, n, block): for left in range(0, m, block): "
        "for start in range(0, inner, block): then i from top to min(top + block, n), k from start "
        "and j from left likewise, and c[i, j] += a[i, k] * b[k, j].",
    ),
)
EXPECTED = "c = a @ b"
DEFAULT = 64  # block, in the stub
# lines at most, of float64 matrices (n, k) and (k, m) in blocks of 8
LEAST_OF = {(32, 32, 32): 1600, (4, 128, 32): 1000}
# the same where sizes are no multiples of 8, with room for each order of the loops over blocks;
# plain loops for what is over fetch 2,300 and more
LEAST_OF_REST = {(16, 128, 7): 1400, (32, 7, 64): 1500, (1, 128, 64): 1700}


def ask(
    t: Tester, a: np.ndarray, b: np.ndarray, block: int | None, before: float = BEFORE
) -> Counted:
    """Run the kernel; fail unless c, which held `before`, is the product."""
    c = empty((a.shape[0], b.shape[1]), a.dtype, before)
    arguments = {"a": a, "b": b, "c": c} | ({} if block is None else {"block": block})
    counted = launch(t, arguments, EXPECTED)
    with np.errstate(all="ignore"):
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        right = product(wide_a, wide_b)
        size = DEFAULT if block is None else block
        whole = [n // size * size for n in (*a.shape, b.shape[1])]
        cut = np.zeros_like(right)
        cut[: whole[0], : whole[2]] = product(
            wide_a[: whole[0], : whole[1]], wide_b[: whole[1], : whole[2]]
        )
        inner = product(wide_a[:, : whole[1]], wide_b[: whole[1]])
        text = "Only whole blocks are in it. Where does the last block end?"
        last_block = max(0, (a.shape[1] - 1) // size * size)
        last = product(wide_a[:, last_block:], wide_b[last_block:])
        # where there is no step, c is 0, or what it was
        unwritten = last if a.shape[1] else np.full_like(right, before)
        once = "That is the last step along the inner dimension alone. Who adds, who begins?"
        n = len(a)
        square = np.zeros_like(right)
        square[:, :n] = product(wide_a[:, :n], wide_b[:n, :n])
        one_size = "All loops end at the number of a's rows. Which three sizes are there?"
        by_rows, by_columns = (
            product(wide_a[:, :end], wide_b[:end]) for end in (n, wide_b.shape[1])
        )
        other_size = "Products are missing where k is larger than another size. Where does k end?"
        step = np.arange(a.shape[1])
        in_block, length = step % size, np.minimum(size, a.shape[1] - step // size * size)
        left_over = "A block's last products are missing: a step of 2 or more leaves them over."
        short = "The last row, or the last column, is missing. Where does its block end?"
        no_row, no_column = right.copy(), right.copy()
        no_row[-1:], no_column[:, -1:] = 0, 0
        mistakes = [
            Mistake("whole_blocks", cut, text),
            Mistake("whole_blocks", inner, text),
            Mistake("last_step", last, once),
            Mistake("last_step", unwritten, once),
            Mistake("one_size", square, one_size),
            Mistake("other_size", by_rows, other_size),
            Mistake("other_size", by_columns, other_size),
            *(
                Mistake("left_over", product(wide_a[:, kept], wide_b[kept]), left_over)
                for kept in (in_block < length // by * by for by in (2, 4))
            ),
            Mistake("short", no_row, short),
            Mistake("short", no_column, short),
        ]
        if a.shape[0] == a.shape[1] == b.shape[1]:
            text = "That is another product: of a transpose, or in the other order."
            others = (wide_b @ wide_a, wide_a.T @ wide_b, wide_a @ wide_b.T)
            mistakes += [Mistake("transposed", other, text) for other in others]
    rtol, atol = (1e-4, 1e-4) if a.dtype == np.float32 else (1e-9, 1e-9)
    attempt = "Compute one element by hand. Which products are in it, which are missing?"
    if not a.shape[1]:
        attempt = "A sum of no products is 0. Who writes it, where there is nothing to add?"
    elif not np.isfinite(right).all():
        attempt = "0 * nan and 0 * inf are nan, and go into the sum. Which products are left out?"
        if (np.isnan(counted.out) & ~np.isnan(right)).any():
            attempt = (
                "A sum with inf is inf. Which line subtracts, or multiplies by more than one "
                "element, where a plain sum of products makes no nan?"
            )
    written(t, counted, right, attempt, mistakes, rtol=rtol, atol=atol, before=before)
    no_temporaries(t, counted)
    return counted


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a @ b, each product of two elements by itself, as for nan and inf."""
    return (a[:, :, None] * b[None]).sum(axis=1)


@k_matmul_blocked.check(points=2)
def values(t: Tester) -> None:
    """c is the product, whether or not the sizes are multiples of block; also when empty."""
    f4 = "float32"
    for (n, k, m), block in (
        ((2, 2, 2), 2), ((3, 3, 3), 2), ((4, 6, 5), 3), ((5, 4, 7), 100),
        ((2, 3, 70), 100), ((7, 5, 3), 1),
        ((1, 9, 1), 4), ((5, 4, 7), None), ((0, 3, 2), 2), ((2, 0, 3), 2), ((2, 3, 0), 2),
        ((2, 3, 2), 2**63 - 1),
    ):  # fmt: skip
        ask(t, samples.numbers(t.random, (n, k), f4), samples.numbers(t.random, (k, m), f4), block)


@k_matmul_blocked.check(points=2, only_with=("values",))
def any_strides(t: Tester) -> None:
    """It is right in float64, for views: reversed, every second element, transposed."""
    a, b = samples.numbers(t.random, (5, 4)), samples.numbers(t.random, (4, 6))
    for left, right in zip(laid_out(a), laid_out(b), strict=True):
        ask(t, left, right, 3)
    for before in (np.nan, np.inf):
        ask(t, a, b, 3, before)
    specials = with_specials(t, a), with_specials(t, b)
    left, right = (next(laid_out(x)) for x in specials)
    ask(t, left, right, 2)
    for left, right in ((0 * a, with_specials(t, b)), (with_specials(t, a), 0 * b)):
        ask(t, next(laid_out(left)), next(laid_out(right)), 3)


@k_matmul_blocked.check(points=4, only_with=("values",))
def lines(t: Tester) -> None:
    """Blocks of 8 fetch few lines, for square and for long matrices; blocks of 32 other lines."""
    for (n, k, m), most in (LEAST_OF | LEAST_OF_REST).items():
        a, b = (next(laid_out(samples.numbers(t.random, shape))) for shape in ((n, k), (k, m)))
        c = empty((n, m), a.dtype)
        counted = ask(t, a, b, 8)
        fetched = sum(counted.fetched.values())
        if fetched > most:
            per = ", ".join(f"{counted.fetched[name]} of {name}" for name in ("a", "b", "c"))
            attempt = (
                "Which array is fetched most? From one use of a line of it to the next: how many "
                "other lines come in between?"
            )
            t.fail("lines", f"{most:,} lines at most", f"{fetched:,} lines: {per}", attempt)
        if (n, k, m) not in LEAST_OF:
            continue
        if watch(t, {"a": a, "b": b, "c": c, "block": 32}).fetched == counted.fetched:
            attempt = "Nothing depends on block. Which number stands where block belongs?"
            got = f"{fetched:,} lines, as with block 8"
            t.fail("block", "with blocks of 32 other lines than with blocks of 8", got, attempt)
