"""How a matrix product runs on a GPU: operand layouts, kernel, division into blocks.

Operands with any strides are read without copies: broadcast batches have strides of 0, transposed
operands have their strides swapped. All of this depends on layouts alone, so it is cached.
"""

import functools
import itertools
from typing import Any, NamedTuple

from minigrad.array.dtypes import float32
from minigrad.array.layout import collapse, expand_strides, size_of
from minigrad.devices.gpu.kernel import gpu_kernel
from minigrad.devices.gpu.product.matmul_text import (
    ACCUMULATE,
    BIAS,
    WIDE,
    ProductTile,
    signature,
    text,
)

LARGE = ProductTile(128, 128, 8, 8, 8)  # reads 16 elements for 64 multiplications
SMALL = ProductTile(64, 64, 16, 4, 4)
SMALL_8 = ProductTile(64, 64, 8, 4, 4)  # for elements of 8 bytes
BUSY = 128  # blocks that keep a GPU busy: about its number of multiprocessors
LEAST = 8  # fewest steps along k that get a block of their own
LONG = 4096  # products added in one sum, if there are few pieces
MOST_PIECES = 1024  # pieces that one thread adds
MOST_BLOCKS = 65535  # along the second and third axis of the grid


class Product(NamedTuple):
    """A batched product, its axes merged as far as strides allow; strides count elements.

    out[z] (m, n) = the sum over f of a[z, f] (m, k) @ b[z, f] (k, n).

    Attributes:
        batch: sizes of z's axes, at most two; a_batch, b_batch, out_batch: strides of each.
        folds: the size of f; a_fold, b_fold: strides.
    """

    m: int
    n: int
    k: int
    a_m: int
    a_k: int
    b_n: int
    b_k: int
    out_m: int
    batch: tuple
    a_batch: tuple
    b_batch: tuple
    out_batch: tuple
    folds: int
    a_fold: int
    b_fold: int


class ProductPlan(NamedTuple):
    """How a Product is computed: the tile, whether operands are read in vectors, pieces of k."""

    tile: ProductTile
    whole: bool
    splits: int
    per_split: int


@functools.cache
def kernel(tile, code, whole):
    """Return the GpuKernel of a tile and an element type; whole: see `matmul_text`."""
    return gpu_kernel(text(tile, code, whole), signature(code))


def products(a_shape, a_strides, b_shape, b_strides, shape, strides):
    """Return [(offset of a, of b, of out, is first, Product)], one per launch.

    There is usually one. There are more if after merging more than two batch axes or more than one
    summed axis remain, or if a grid would be too large. is first: whether it is the first launch
    for that part of out.
    """
    (m, k), n, batch = a_shape[-2:], b_shape[-1], shape[:-2]
    steps = [
        expand_strides(x[:-2], s[:-2], batch)
        for x, s in ((a_shape, a_strides), (b_shape, b_strides))
    ]
    kept = [d for d, s in enumerate(strides[:-2]) if s or batch[d] == 1]
    summed = [d for d in range(len(batch)) if d not in kept]
    dims, each = collapse(
        [batch[d] for d in kept],
        [[s[d] for d in kept] for s in (*steps, strides[:-2])],
    )
    folds, fold_steps = collapse(
        [batch[d] for d in summed], [[s[d] for d in summed] for s in steps]
    )
    a_m, a_k = (0 if size == 1 else s for size, s in zip(a_shape[-2:], a_strides[-2:], strict=True))
    b_k, b_n = (0 if size == 1 else s for size, s in zip(b_shape[-2:], b_strides[-2:], strict=True))
    out_m = strides[-2]
    while dims and each[-1][1] == 0:  # one b for many a: stack the a's as rows of one product
        of_a, _, of_out = each[-1]
        if m > 1 and (of_a != m * a_m or of_out != m * out_m):
            break
        if m == 1:
            a_m, out_m = of_a, of_out
        m *= dims.pop()
        each.pop()
    while folds and fold_steps[-1][0] == k * a_k and fold_steps[-1][1] == k * b_k:
        k *= folds.pop()
        fold_steps.pop()
    a_fold, b_fold = fold_steps.pop() if folds else (0, 0)
    count = folds.pop() if folds else 1
    launches = []
    for offsets, sizes, inner in _cut(dims, each):
        by_operand = zip(*inner, strict=True) if inner else ((), (), ())
        a_batch, b_batch, out_batch = map(tuple, by_operand)
        product = Product(
            m, n, k, a_m, a_k, b_n, b_k, out_m, tuple(sizes), a_batch, b_batch, out_batch,
            count, a_fold, b_fold,
        )  # fmt: skip
        of_a, of_b, of_out = offsets
        for index in itertools.product(*map(range, folds)):  # over the remaining folds
            more_a, more_b = (
                sum(i * steps[operand] for i, steps in zip(index, fold_steps, strict=True))
                for operand in (0, 1)
            )
            launches.append((of_a + more_a, of_b + more_b, of_out, not any(index), product))
    return launches


def _cut(dims, each):
    """Return (offsets, sizes, strides) of parts of a batch, each of which fits into one grid."""
    if len(dims) <= 2 and size_of(dims) <= MOST_BLOCKS:
        return [((0, 0, 0), dims, each)]
    if len(dims) <= 2 or dims[0] == 1:  # in halves
        first = dims[0] // 2
        parts = [(0, [first, *dims[1:]], each), (first, [dims[0] - first, *dims[1:]], each)]
        if dims[0] == 1:
            parts = [(0, dims[1:], each[1:])]
    else:
        parts = [(i, dims[1:], each[1:]) for i in range(dims[0])]
    return [
        (tuple(i * s + o for s, o in zip(each[0], offsets, strict=True)), sizes, inner)
        for i, rest, steps in parts
        for offsets, sizes, inner in _cut(rest, steps)
    ]


def is_whole(address, size, s, k, s_k, others, each=4):
    """Return whether an operand (size, k) with strides s and s_k can be read in vectors."""
    if address % 16 or any(x % each for x in others):
        return False
    return (s_k == 1 and k % each == 0 and s % each == 0) or (
        s == 1 and s_k != 1 and size % each == 0 and s_k % each == 0
    )


def plan(p, dtype, a_remainder, b_remainder):
    """Return the ProductPlan of a Product; remainders: the operands' addresses modulo 16."""
    whole = (
        dtype is float32
        and is_whole(a_remainder, p.m, p.a_m, p.k, p.a_k, (*p.a_batch, p.a_fold))
        and is_whole(b_remainder, p.n, p.b_n, p.k, p.b_k, (*p.b_batch, p.b_fold))
    )
    tile = SMALL if dtype is float32 else SMALL_8
    if whole and min(p.m, p.n) > SMALL.rows and _blocks(p, LARGE) >= BUSY // 2:
        tile = LARGE
    steps = p.folds * -(-p.k // tile.depth)
    return ProductPlan(tile, whole, *pieces_of(steps, tile.depth, _blocks(p, tile)))


def pieces_of(steps, depth, blocks):
    """Return (pieces, steps per piece) of a sum of `steps` steps in a launch of `blocks` blocks.

    Few blocks leave a GPU idle, and a long sum in float32 loses accuracy.
    """
    long = min(steps * depth // LONG, MOST_PIECES // blocks)
    pieces = max(1, min(BUSY // blocks, steps // LEAST), long)
    each = -(-steps // pieces)
    return -(-steps // each), each


def _blocks(p, tile):
    return -(-p.m // tile.rows) * -(-p.n // tile.columns) * size_of(p.batch)


class ProductCall(NamedTuple):
    """One launch, and the addition of its pieces if k was split; offsets count elements.

    Attributes:
        a_at, b_at, out_at: offsets of the operands in their Arrays.
        mode: ACCUMULATE, BIAS or 0.
        kernel, grid, threads: of the launch; numbers: its arguments after the four pointers.
        splits, piece: count and size of pieces; second: the numbers of `add_splits`.
    """

    a_at: int
    b_at: int
    out_at: int
    mode: int
    kernel: Any
    grid: tuple
    threads: int
    numbers: tuple
    splits: int
    piece: int
    second: tuple


@functools.lru_cache(maxsize=4096)
def calls(a_layout, b_layout, out_layout, dtype, remainders, bias_remainder, accumulate):
    """Return the ProductCalls of a product.

    Args:
        a_layout, b_layout, out_layout: shape and strides of the Arrays.
        dtype: of all three.
        remainders: their addresses modulo 16.
        bias_remainder: the bias's address modulo 16, or None without a bias.
        accumulate: whether to add to what out holds.
    """
    launches = []
    for *offsets, is_first, p in products(*a_layout, *b_layout, *out_layout):
        places = [(r + at * dtype.itemsize) % 16 for r, at in zip(remainders, offsets, strict=True)]
        mode = BIAS if bias_remainder is not None else 0
        mode = ACCUMULATE if accumulate or not is_first else mode
        launches.append(_call(offsets, p, dtype, places, mode, bias_remainder or 0))
    return tuple(launches)


def _call(offsets, p, dtype, places, mode, bias_place):
    how = plan(p, dtype, *places[:2])
    tile, splits = how.tile, how.splits
    count, inner = size_of(p.batch), p.batch[-1] if p.batch else 1
    out_m, out_batch, piece, out_place = p.out_m, p.out_batch, 0, places[2]
    if splits > 1:  # pieces are contiguous, in memory that the pool aligns
        piece, out_m, out_place = count * p.m * p.n, p.n, 0
        out_batch = tuple(p.m * p.n * size_of(p.batch[d + 1 :]) for d in range(len(p.batch)))
    many = (0,) * (2 - len(p.batch))
    outer_steps, inner_steps = zip(
        *((*many, *s) for s in (p.a_batch, p.b_batch, out_batch)), strict=True
    )
    at_once = mode if splits == 1 else 0
    multiples = (p.n, out_m, piece, *out_batch)
    is_wide = out_place == 0 and all(x % 4 == 0 for x in multiples)
    is_wide &= at_once != BIAS or bias_place == 0
    tiles = -(-p.m // tile.rows), -(-p.n // tile.columns)
    numbers = (
        p.m, p.n, p.k, p.a_m, p.a_k, p.b_n, p.b_k, p.folds, p.a_fold, p.b_fold,
        inner, *outer_steps, *inner_steps,
        out_m, piece, *tiles, how.per_split, at_once | (WIDE if is_wide else 0),
    )  # fmt: skip
    a_at, b_at, out_at = offsets
    return ProductCall(
        a_at, b_at, out_at, mode,
        kernel=kernel(tile, dtype.code, how.whole),
        grid=(tiles[0] * tiles[1], splits, count),
        threads=tile.threads,
        numbers=numbers,
        splits=splits,
        piece=piece,
        second=(p.m, p.n, inner, *many, *p.out_batch, p.out_m, mode),
    )  # fmt: skip
