"""Our own matrix products: a blocked one to read beside BLAS, and the one for integers.

C[i, j] = sum_p A[i, p] B[p, j]. Strides count elements; B and C have unit stride along j.
"""


@jit("void(i8,i8,i8,i8,i8,i8,i8,i8,i8,i8)")
def blocked_f4(a_at, b_at, c_at, m, n, k, lda, inc_a, ldb, ldc):
    """Four rows of C at a time: each loaded element of B is used four times."""
    a, b, c = f4_at(a_at), f4_at(b_at), f4_at(c_at)
    for i in range(m):
        for j in range(n):
            c[i * ldc + j] = F4(0)
    whole = m - m % 4
    for first in range(0, k, 256):  # a panel of B that stays in the second-level cache
        last = min(first + 256, k)
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


@jit("void(i8,i8,i8,i8,i8,i8,i8,i8,i8,i8)")
def blocked_f8(a_at, b_at, c_at, m, n, k, lda, inc_a, ldb, ldc):
    """As blocked_f4, in float64, row by row."""
    a, b, c = f8_at(a_at), f8_at(b_at), f8_at(c_at)
    for i in range(m):
        for j in range(n):
            c[i * ldc + j] = F8(0)
        for p in range(k):
            a0 = a[i * lda + p * inc_a]
            for j in range(n):
                c[i * ldc + j] += a0 * b[p * ldb + j]


@jit("void(i8,i8,i8,i8,i8,i8,i8,i8,i8,i8)")
def integer_i8(a_at, b_at, c_at, m, n, k, lda, inc_a, ldb, ldc):
    """int64, wrapping around on overflow as NumPy does."""
    a, b, c = i8_at(a_at), i8_at(b_at), i8_at(c_at)
    for i in range(m):
        for j in range(n):
            c[i * ldc + j] = I8(0)
        for p in range(k):
            a0 = a[i * lda + p * inc_a]
            for j in range(n):
                c[i * ldc + j] += a0 * b[p * ldb + j]
