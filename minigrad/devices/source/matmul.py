"""Our own matrix product, blocked for the caches.

C[i, j] = start + sum_p A[i, p] B[p, j]. Strides count elements; rows of B and C are contiguous.
"""

PANEL = 256  # rows of B that are used for all of A before the next ones: they stay in the cache


@inline_jit
def blocked(a, b, c, row, zero, start, m, n, k, lda, inc_a, ldb, ldc):
    """Four rows of C at a time: each loaded element of B is used four times.

    start: 0: C starts from zero; 1: each of its rows from `row`; 2: from what C holds.
    """
    for i in range(m):
        for j in range(n):
            if start == 0:
                c[i * ldc + j] = zero
            elif start == 1:
                c[i * ldc + j] = row[j]
    whole = m - m % 4
    for first in range(0, k, PANEL):
        last = min(first + PANEL, k)
        for i in range(0, whole, 4):
            for p in range(first, last):
                a0, a1 = a[i * lda + p * inc_a], a[(i + 1) * lda + p * inc_a]
                a2, a3 = a[(i + 2) * lda + p * inc_a], a[(i + 3) * lda + p * inc_a]
                for j in range(n):
                    value = b[p * ldb + j]
                    c[i * ldc + j] += a0 * value
                    c[(i + 1) * ldc + j] += a1 * value
                    c[(i + 2) * ldc + j] += a2 * value
                    c[(i + 3) * ldc + j] += a3 * value
        for i in range(whole, m):
            for p in range(first, last):
                a0 = a[i * lda + p * inc_a]
                for j in range(n):
                    c[i * ldc + j] += a0 * b[p * ldb + j]


@jit("void(i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8)")
def blocked_f4(a_at, b_at, c_at, m, n, k, lda, inc_a, ldb, ldc, row):
    """float32. row: the address of what each row of C starts from; 0: zeros; -1: what C holds."""
    start = 0 if row == 0 else 2 if row == -1 else 1
    a, b, c, r = f4_at(a_at), f4_at(b_at), f4_at(c_at), f4_at(row)
    blocked(a, b, c, r, F4(0), start, m, n, k, lda, inc_a, ldb, ldc)


@jit("void(i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8)")
def blocked_f8(a_at, b_at, c_at, m, n, k, lda, inc_a, ldb, ldc, row):
    """float64, as blocked_f4."""
    start = 0 if row == 0 else 2 if row == -1 else 1
    a, b, c, r = f8_at(a_at), f8_at(b_at), f8_at(c_at), f8_at(row)
    blocked(a, b, c, r, F8(0), start, m, n, k, lda, inc_a, ldb, ldc)
