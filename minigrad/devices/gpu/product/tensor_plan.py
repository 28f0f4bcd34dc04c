"""Which products of halves tensor cores compute, and how: from layouts alone, so it is cached."""

import functools
from typing import Any, NamedTuple

from minigrad.array.layout import size_of
from minigrad.devices.gpu.kernel import gpu_kernel
from minigrad.devices.gpu.product.matmul_plan import LONG, is_whole, products
from minigrad.devices.gpu.product.tensor_text import (
    ACROSS,
    ALONG_K,
    EACH,
    SIDE,
    SINGLE,
    THREADS,
    signature,
    text,
)

SMALLEST = 16  # m, n and k: below, most of a tile would be zeros


class TensorCall(NamedTuple):
    """One launch; a_at, b_at, out_at: offsets of the operands in their Arrays, in elements."""

    a_at: int
    b_at: int
    out_at: int
    kernel: Any
    grid: tuple
    numbers: tuple
    threads: int = THREADS


@functools.cache
def kernel(dtype, a_way, b_way):
    """Return the GpuKernel for halves of a DType; a_way, b_way: see `tensor_text`."""
    includes = ("gpu_tensor", "rounding") if dtype.is_coded else ("gpu_tensor",)
    return gpu_kernel(text(dtype, a_way, b_way), signature(dtype.code), includes)


@functools.lru_cache(maxsize=4096)
def tensor_calls(a_layout, b_layout, out_layout, dtype, remainders, has_bias):
    """Return the TensorCalls of a product, or None: it is left to the other kernels.

    Args:
        a_layout, b_layout, out_layout: shape and strides of the Arrays.
        dtype: of all three, a half.
        remainders: the addresses of a and b modulo 16.
    """
    shape, strides = out_layout
    if min(a_layout[0][-2:] + shape[-1:]) < SMALLEST or strides[-1] != 1:
        return None
    calls = []
    for a_at, b_at, out_at, _, p in products(*a_layout, *b_layout, *out_layout):
        tiles = -(-p.m // SIDE), -(-p.n // SIDE)
        if p.folds > 1 or (p.k > LONG and tiles[0] * tiles[1] * size_of(p.batch) < SMALLEST):
            return None  # sums over a batch, or over a long k by few blocks, are split there
        places = [
            (r + at * dtype.itemsize) % 16 for r, at in zip(remainders, (a_at, b_at), strict=True)
        ]
        ways = (
            _way(places[0], p.m, p.a_m, p.k, p.a_k, p.a_batch),
            _way(places[1], p.n, p.b_n, p.k, p.b_k, p.b_batch),
        )
        ways = (SINGLE, SINGLE) if SINGLE in ways else ways
        many = (0,) * (2 - len(p.batch))
        outer, inner = zip(*((*many, *s) for s in (p.a_batch, p.b_batch, p.out_batch)), strict=True)
        numbers = (
            p.m, p.n, p.k, p.a_m, p.a_k, p.b_n, p.b_k, p.batch[-1] if p.batch else 1,
            *outer, *inner, p.out_m, tiles[0], int(has_bias),
        )  # fmt: skip
        grid = tiles[0] * tiles[1], 1, size_of(p.batch)
        calls.append(TensorCall(a_at, b_at, out_at, kernel(dtype, *ways), grid, numbers))
    return tuple(calls)


def _way(place, size, step, k, k_step, others):
    if not is_whole(place, size, step, k, k_step, others, EACH):
        return SINGLE
    return ALONG_K if k_step == 1 else ACROSS
