"""The text of matrix product kernels: each block computes a tile, each thread a small tile.

A block of threads computes `rows` x `columns` elements of the product. It walks along k in steps of
`depth`. A step copies its parts of both operands to shared memory, one row per k. Each thread
then reads columns of a and rows of b as vectors of four and multiplies them in registers. There
are two such buffers: while one is multiplied, the next step is loaded from global memory to
registers, and one barrier per step is enough.

A warp computes 4 x 8 small tiles. Small tiles larger than 4 x 4 are several pieces of 4 x 4, 16
rows or 32 columns apart: so eight neighbouring threads read 128 neighbouring bytes of b and one
vector of a, without bank conflicts. (With elements of 8 bytes two vectors of b share banks.) Rows
of the shared tiles are four elements longer than needed (`pitch`), so that a copy that transposes
has no bank conflicts either.
"""

from typing import NamedTuple

from minigrad.devices.gpu.product.matmul_operand import ProductOperand

TOGETHER = 2  # rows of the shared tiles per iteration of the innermost loop


class ProductTile(NamedTuple):
    """The tile that a block computes: see the module docstring. Sizes are powers of two.

    Attributes:
        rows, columns: of the part of the product that a block computes.
        depth: elements of k in one step.
        tall, wide: rows and columns that a thread computes; multiples of 4.
    """

    rows: int
    columns: int
    depth: int
    tall: int
    wide: int

    @property
    def threads(self):
        """Return the number of threads per block: whole warps of 4 x 8."""
        return self.rows // self.tall * (self.columns // self.wide)


ARGUMENTS = (
    "a", "b", "added", "out",
    "m", "n", "k", "a_m", "a_k", "b_n", "b_k",
    "folds", "a_fold", "b_fold",
    "inner", "a_outer", "b_outer", "out_outer", "a_inner", "b_inner", "out_inner",
    "out_m", "out_split", "tiles_m", "tiles_n", "per_split", "mode",
)  # fmt: skip
BIAS, ACCUMULATE, WIDE = 1, 2, 4  # bits of mode: `added` is a bias (n,), or the output itself;
# rows of the output, and of `added`, begin at multiples of four, and n is one: vectors are written


def signature(code):
    """Return the types of ARGUMENTS for an element code: f4, f8 or i8."""
    return " ".join([f"{code}*"] * 4 + ["i8"] * (len(ARGUMENTS) - 4))


def _products(tile, a, b):
    """Return the lines that add one step of `depth` shared rows to the sums in registers.

    An iteration handles two rows, so that reading the second overlaps multiplying the first.
    """
    lines = [
        f"a_read = I4(buffer * {tile.depth * a.pitch} + own_m)",
        f"b_read = I4(buffer * {tile.depth * b.pitch} + own_n)",
        f"for _ in range({tile.depth // TOGETHER}):",
    ]
    for d in range(TOGETHER):
        for g in range(tile.tall // 4):
            x = ", ".join(f"x{4 * g + e}" for e in range(4))
            lines.append(f"    {x} = load4(a_shared, I4(a_read + {d * a.pitch + 16 * g}))")
        for g in range(tile.wide // 4):
            y = ", ".join(f"y{4 * g + e}" for e in range(4))
            lines.append(f"    {y} = load4(b_shared, I4(b_read + {d * b.pitch + 32 * g}))")
        for i in range(tile.tall):
            lines += [f"    c{i}_{j} += x{i} * y{j}" for j in range(tile.wide)]
    return [
        *lines,
        f"    a_read = I4(a_read + {TOGETHER * a.pitch})",
        f"    b_read = I4(b_read + {TOGETHER * b.pitch})",
    ]


def _write(tile):
    """Return the lines that write the sums in registers to the output."""
    lines = []
    for i in range(tile.tall):
        lines.append(f"if m_left > {i // 4 * 16 + i % 4}:")
        lines.append(f"    at = out_at + {i // 4 * 16 + i % 4} * out_m")
        for g in range(tile.wide // 4):
            sums = ", ".join(f"c{i}_{4 * g + e}" for e in range(4))
            lines.append(f"    put4(added, out, at + {32 * g}, n, n_left - {32 * g}, mode, {sums})")
    return lines


_PUT = """
@exact_jit
def put(added, out, at, n, left, mode, c):
    \"\"\"One element, as put4.\"\"\"
    if left > 0:
        if mode & 3:
            c += added[n - left if mode & 1 else at]
        out[at] = c


@exact_jit
def put4(added, out, at, n, left, mode, c0, c1, c2, c3):
    \"\"\"Writes four sums from out[at] on, with what mode asks for; no more than `left` of them.

    mode: 1 adds a bias, added[n - left], 2 what the output holds, which `added` is then; 4: all
    rows begin at multiples of four and n is one, so that vectors can be written.
    \"\"\"
    if mode & 4:
        if left > 0:
            if mode & 3:
                b0, b1, b2, b3 = load4(added, n - left if mode & 1 else at)
                c0, c1, c2, c3 = c0 + b0, c1 + b1, c2 + b2, c3 + b3
            store4(out, at, c0, c1, c2, c3)
    else:
        put(added, out, at, n, left, mode, c0)
        put(added, out, at + 1, n, left - 1, mode, c1)
        put(added, out, at + 2, n, left - 2, mode, c2)
        put(added, out, at + 3, n, left - 3, mode, c3)
"""
_START = """
t = I4(cuda.threadIdx.x)
x = I8(cuda.blockIdx.x)
group = x // (8 * tiles_n)
in_group = x - group * 8 * tiles_n
high = min(tiles_m - group * 8, I8(8))
m_first, n_first = (group * 8 + in_group % high) * {rows}, in_group // high * {columns}
split, z = I8(cuda.blockIdx.y), I8(cuda.blockIdx.z)
outer = z // inner
z = z - outer * inner
a_start = outer * a_outer + z * a_inner
b_start = outer * b_outer + z * b_inner
warp, lane = I4(t >> 5), I4(t & 31)
own_m = I4(warp // {warps} * {warp_rows} + (lane >> 3) * 4)
own_n = I4(warp % {warps} * {warp_columns} + (lane & 7) * 4)
m_left, n_left = I4(m - m_first - own_m), I4(n - n_first - own_n)
out_at = split * out_split + outer * out_outer + z * out_inner
out_at += (m_first + own_m) * out_m + n_first + own_n
"""
_STEPS = """
length = I4(k)
steps = (k + {last}) // {depth}
first = split * per_split
left = I4(min(per_split, folds * steps - first))
fold = first // steps
deep = I4((first - fold * steps) * {depth})
"""


def _indented(lines, by):
    return [" " * by + line for line in lines]


def text(tile, code, whole):
    """Return the kernel for a ProductTile of f4, f8 or i8; whole: see ProductOperand, for both.

    out[z, m, n] = the sum over fold and k of a[z, fold, m, k] b[z, fold, k, n]; z counts blocks
    (its last axis is `inner` long), and split s of k's steps goes to out + s * out_split.
    """
    kind = code.upper()
    a = ProductOperand("a", tile, tile.rows, "m", whole, kind)
    b = ProductOperand("b", tile, tile.columns, "n", whole, kind)
    sums = [f"c{i}_{j} = {kind}(0)" for i in range(tile.tall) for j in range(tile.wide)]
    how = "vectors" if whole else "single elements"
    return assembled(tile, a, b, sums, ARGUMENTS, f"operands are read as {how}")


def assembled(tile, a, b, sums, arguments, about):
    """Return the text of the kernel for two operands.

    Args:
        tile: the ProductTile.
        a, b: ProductOperands.
        sums: lines that initialize c0_0, c0_1, ...
        arguments: names of the kernel's arguments: all of ARGUMENTS and others.
        about: for its docstring.
    """
    numbers = {
        "rows": tile.rows, "columns": tile.columns, "depth": tile.depth, "last": tile.depth - 1,
        "warps": tile.columns // (8 * tile.wide), "warp_rows": 4 * tile.tall,
        "warp_columns": 8 * tile.wide,
    }  # fmt: skip
    start, steps = (part.format(**numbers).strip().splitlines() for part in (_START, _STEPS))
    body = [
        *start,
        *steps,
        *a.places(), *b.places(),
        *a.fetch(), *b.fetch(),
        *a.keep("0"), *b.keep("0"),
        "cuda.syncthreads()",
        "buffer = I4(0)",
        *sums,
        "while left > 0:",
        "    left = I4(left - 1)",
        "    if left > 0:",
        f"        deep = I4(deep + {tile.depth})",
        *_indented([*a.following(), *b.following()], 8),
        "        if deep >= length:",
        "            deep = I4(0)",
        *_indented([*a.fetch(), *b.fetch()], 8),
        *_indented(_products(tile, a, b), 4),
        "    buffer = I4(1 - buffer)",
        "    if left > 0:",
        *_indented([*a.keep("buffer"), *b.keep("buffer")], 8),
        "    cuda.syncthreads()",
        *_write(tile),
    ]  # fmt: skip
    head = [f"MOST_THREADS = ({tile.threads}, 2)  # and two blocks at once", _PUT, ""]
    head += [f"def kernel({', '.join(arguments)}):"]
    head += [f'    """Tiles of {tile.rows} x {tile.columns}; {about}."""']
    return "\n".join([*head, *_indented(body, 4), ""])
