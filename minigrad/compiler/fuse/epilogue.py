"""Attaches epilogues: formulas on a matrix product's rows, computed while these are in cache.

Examples are bias and activation after a linear layer, the norm after a residual, and the update
after a weight's gradient. Each thread multiplies a block of rows and immediately runs the formulas
on it, with no barrier in between.
"""

from minigrad.compiler.fuse.fused_loop import Loop
from minigrad.compiler.program.domain import rows_of, spread
from minigrad.compiler.program.items import MatMul, conflict, touch

WORTH = 1 << 14  # minimum elements of a product for blocks to pay off
FEWEST = 64  # rows of a product or block
REACH = 8  # how many items a Loop may move up
BLOCK = 1 << 18  # elements of a block, roughly: smaller ones cost BLAS more than the cache saves


def attach(items):
    """Turn Loops that follow a product row by row into its epilogue; return the items."""
    order = []
    for item in items:
        if type(item) is Loop:
            product = _product_for(item, order)
            if product is not None:
                product.epilogue = item
                continue
        order.append(item)
    return order


def _product_for(loop, order):
    """Return the nearest earlier product that can take the Loop as its epilogue, or None."""
    for earlier in order[: -REACH - 1 : -1]:
        if type(earlier) is MatMul and follows(loop, earlier):
            return earlier
        if conflict(earlier, loop):
            return None
    return None


def follows(loop, product):
    """Return whether a Loop can run on rows [b, e) of a product once they are computed."""
    out = product.out
    if product.epilogue is not None or product.accumulate or len(out.shape) != 2:
        return False
    m, n = out.shape
    if m < FEWEST or m * n < WORTH or loop.size != m * n:
        return False
    rows = rows_of(loop.dims, n)
    if rows is None or loop.rows not in (None, rows):
        return False
    if any(o.mode not in ("store", "row") for o in loop.outputs):
        return False
    if touch(loop.writes, (product.a, product.b)):
        return False
    head, tail = loop.dims[:rows], loop.dims[rows:]
    natural = (*spread((m,), out.strides[:1], head), *spread((n,), out.strides[1:], tail))
    mine = [place for place in loop.loads if place[0] is out.value]
    return mine == [(out.value, out.offset, natural)]


def rows_of_block(n):
    """Return the rows per block, for rows of n elements."""
    return max(FEWEST, BLOCK // n // 16 * 16)


def tile_text(kernel, kernel_name, dtype, per_row):
    """Return the source of a function that multiplies in blocks, each followed by a kernel.

    per_row: elements of the kernel's range for each row of the product.
    """
    count = kernel.text[: kernel.text.index(":")].count(",") - 1  # without b and e
    more = [f"x{k}" for k in range(count)]
    kind, size = dtype.code, dtype.itemsize
    arguments = ["a", "b", "c", "n", "k", "lda", "ldb", "ldc", "ta", "tb", "rows", *more]
    scale = "" if per_row == 1 else " * n"
    return f"""def {{name}}({", ".join(arguments)}, low, high):
    for r in range(low, high, rows):
        s = min(r + rows, high)
        gemm_{kind}(a + {size} * r * (1 if ta else lda), b, c + {size} * r * ldc, s - r, n, k, lda,
                ldb, ldc, ta, tb, 0, 1, 0, 0, 0)
        {kernel_name}({", ".join([*more, f"r{scale}", f"s{scale}"])})
"""
