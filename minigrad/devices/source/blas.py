"""Compute C = A B (+ bias) with the BLAS that NumPy has loaded, called by symbol.

The symbol is resolved at link time, so the machine code can be cached. Matrices are row-major with
a leading dimension, or transposed. Needs sums.py.
"""

_DIMENSIONS = [types.int32] * 3 + [types.int64] * 3
_REAL = types.float32 if T is F4 else types.float64
GEMM = types.ExternalFunction(
    "minigrad_sgemm" if T is F4 else "minigrad_dgemm",
    types.void(
        *_DIMENSIONS, _REAL, types.int64, types.int64, types.int64, types.int64,
        _REAL, types.int64, types.int64,
    ),
)  # fmt: skip
ROW_MAJOR, PLAIN, TRANSPOSED = I4(101), I4(111), I4(112)
PIECE = 4096  # products that BLAS adds up by itself, in long sums whose C fits on the stack


@inline_jit
def long_product(left, right, m, n, k, a, lda, b, ldb, beta, c, ldc):
    """Run GEMM of float32, alpha 1, adding sums of pieces in float64. C has at most COLUMNS."""
    parts, totals, out = columns_f4(), columns_f8(), f4_at(c)
    for e in range(m * n):
        totals[e] = F8(0)
    for first in range(0, k, PIECE):
        GEMM(
            ROW_MAJOR, left, right, m, n, min(PIECE, k - first), F4(1),
            a + 4 * first * (lda if left == TRANSPOSED else 1), lda,
            b + 4 * first * (1 if right == TRANSPOSED else ldb), ldb,
            F4(0), address_of(parts), n,
        )  # fmt: skip
        for e in range(m * n):
            totals[e] += F8(parts[e])
    for i in range(m):
        for j in range(n):
            before = F8(out[i * ldc + j]) if beta != 0 else F8(0)
            out[i * ldc + j] = F4(before + totals[i * n + j])


@jit("void(i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8)")
def gemm_T(a, b, c, m, n, k, lda, ldb, ldc, ta, tb, bias, batch, step_a, step_b, step_c):
    """Multiply A (m, k) by B (k, n) into C (m, n), all addresses; ta, tb: stored transposed.

    bias: the address of (n,), 0 for none, or -1 to add to what C holds.
    """
    left, right = TRANSPOSED if ta else PLAIN, TRANSPOSED if tb else PLAIN
    beta = T(0) if bias == 0 else T(1)
    if bias > 0:
        row = T_at(bias)
        for b_index in range(batch):
            out = T_at(c + SIZE * b_index * step_c)
            for i in range(m):
                for j in range(n):
                    out[i * ldc + j] = row[j]
    is_long = k >= 4 * PIECE and m * n <= COLUMNS
    for i in range(batch):
        one, two, out_at = a + SIZE * i * step_a, b + SIZE * i * step_b, c + SIZE * i * step_c
        if SIZE == 4 and is_long:
            long_product(left, right, m, n, k, one, lda, two, ldb, beta, out_at, ldc)
        else:
            GEMM(
                ROW_MAJOR, left, right, m, n, k, T(1), one, lda, two, ldb, beta, out_at, ldc
            )  # fmt: skip
