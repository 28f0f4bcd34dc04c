"""Our own matrix product, blocked for the caches.

C[i, j] = start + sum_p A[i, p] B[p, j]. Strides count elements; rows of B and C are contiguous.
"""

PANEL = 256  # rows of B to use for all of A before the next ones, so that they stay in the cache


@jit("void(i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8)")
def blocked_T(a_at, b_at, c_at, m, n, k, lda, inc_a, ldb, ldc, row_at):
    """Compute four rows of C at a time, so that each loaded element of B is used four times.

    row_at: the address of the row that each row of C starts from; 0: zeros; -1: what C holds.
    """
    a, b, c, row = T_at(a_at), T_at(b_at), T_at(c_at), T_at(row_at)
    for i in range(m):
        for j in range(n):
            if row_at == 0:
                c[i * ldc + j] = T(0)
            elif row_at != -1:
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
