"""A matrix product split among threads, of eager code and of compiled steps."""

# pyright: reportUndefinedVariable=false


@jit("void(i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8,i8)")
def product_T(t, count, a, b, c, m, n, k, lda, ldb, ldc, ta, tb, more, batch, sa, sb, sc):
    """Compute the part of thread t of `count`: some of the batches, or of C's rows or columns.

    more: as the bias of `gemm_T`. A batch without a stride in C is summed, and not split.
    """
    if batch >= count and sc != 0:
        low, high = batch * t // count, batch * (t + 1) // count
        a, b, c = a + SIZE * low * sa, b + SIZE * low * sb, c + SIZE * low * sc
        batch = high - low
    elif m >= n:
        low, high = first(m, 16, t, count), first(m, 16, t + 1, count)
        a, c, m = a + SIZE * low * (1 if ta else lda), c + SIZE * low * ldc, high - low
    else:
        low, high = first(n, 16, t, count), first(n, 16, t + 1, count)
        b, c, n = b + SIZE * low * (ldb if tb else 1), c + SIZE * low, high - low
        more += SIZE * low if more > 0 else 0
    if high > low:
        gemm_T(a, b, c, m, n, k, lda, ldb, ldc, ta, tb, more, batch, sa, sb, sc)
