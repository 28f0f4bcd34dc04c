"""C = A B (+ bias) through the BLAS that NumPy has loaded, called by symbol.

The symbol is resolved at link time, so the machine code can be cached. Matrices are row-major with
a leading dimension, or transposed.

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
    for i in range(batch):
        SGEMM(
            ROW_MAJOR, left, right, m, n, k, F4(1), a + 4 * i * step_a, lda,
            b + 4 * i * step_b, ldb, beta, c + 4 * i * step_c, ldc,
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
