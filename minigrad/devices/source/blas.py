"""C = A B (+ bias) through the BLAS that NumPy has loaded, called by symbol.

The symbol is resolved at link time, so the machine code can be cached. Matrices are row-major with
a leading dimension, or transposed. Needs sums.py.
"""

_DIMENSIONS = [types.int32] * 3 + [types.int64] * 3
SGEMM = types.ExternalFunction(
    "minigrad_sgemm",
    types.void(
        *_DIMENSIONS, types.float32, types.int64, types.int64, types.int64, types.int64,
        types.float32, types.int64, types.int64,
    ),
)  # fmt: skip
DGEMM = types.ExternalFunction(
    "minigrad_dgemm",
    types.void(
        *_DIMENSIONS, types.float64, types.int64, types.int64, types.int64, types.int64,
        types.float64, types.int64, types.int64,
    ),
)  # fmt: skip
ROW_MAJOR, PLAIN, TRANSPOSED = I4(101), I4(111), I4(112)
PIECE = 4096  # products that BLAS adds up by itself, in long sums of which all fit on the stack


@inline_jit
def long_product(left, right, m, n, k, a, lda, b, ldb, beta, c, ldc):
    """As SGEMM with alpha 1: the sums of pieces are added in float64. C has at most COLUMNS."""
    parts, totals, out = columns_f4(), columns_f8(), f4_at(c)
    for e in range(m * n):
        totals[e] = F8(0)
    for first in range(0, k, PIECE):
        SGEMM(
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
def gemm_f4(a, b, c, m, n, k, lda, ldb, ldc, ta, tb, bias, batch, step_a, step_b, step_c):
    """Addresses of A (m, k), B (k, n), C (m, n); ta, tb: stored transposed.

    bias: the address of (n,), 0 for none, or -1 to add to what C holds.
    """
    left, right = TRANSPOSED if ta else PLAIN, TRANSPOSED if tb else PLAIN
    beta = F4(0) if bias == 0 else F4(1)
    if bias > 0:
        row = f4_at(bias)
        for b_index in range(batch):
            out = f4_at(c + 4 * b_index * step_c)
            for i in range(m):
                for j in range(n):
                    out[i * ldc + j] = row[j]
    is_long = k >= 4 * PIECE and m * n <= COLUMNS
    for i in range(batch):
        one, two, out_at = a + 4 * i * step_a, b + 4 * i * step_b, c + 4 * i * step_c
        if is_long:
            long_product(left, right, m, n, k, one, lda, two, ldb, beta, out_at, ldc)
        else:
            SGEMM(
                ROW_MAJOR, left, right, m, n, k, F4(1), one, lda, two, ldb, beta, out_at, ldc
            )  # fmt: skip


@jit("void(i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8)")
def gemm_f8(a, b, c, m, n, k, lda, ldb, ldc, ta, tb, bias, batch, step_a, step_b, step_c):
    """As gemm_f4, in float64."""
    left, right = TRANSPOSED if ta else PLAIN, TRANSPOSED if tb else PLAIN
    beta = F8(0) if bias == 0 else F8(1)
    if bias > 0:
        row = f8_at(bias)
        for b_index in range(batch):
            out = f8_at(c + 8 * b_index * step_c)
            for i in range(m):
                for j in range(n):
                    out[i * ldc + j] = row[j]
    for i in range(batch):
        DGEMM(
            ROW_MAJOR, left, right, m, n, k, F8(1), a + 8 * i * step_a, lda,
            b + 8 * i * step_b, ldb, beta, c + 8 * i * step_c, ldc,
        )  # fmt: skip
