"""The text of products of halves by tensor cores: each warp computes 32 x 32 elements.

A block of four warps computes 64 x 64 elements and walks along k in steps of 32. There are two
buffers in shared memory: while one is multiplied, asynchronous copies fill the other one. Sums are
float32 in registers, and each is rounded once, when it is written.

An operand comes to shared memory in one of three ways: ALONG_K, in vectors along k; ACROSS, in
vectors along its other axis, where `ldmatrix_trans` transposes; SINGLE, element by element, with
any strides. Rows of the shared tiles are eight elements longer than needed, so that the eight rows
of a matrix that `ldmatrix` loads lie in different banks.
"""

SIDE, DEPTH, THREADS = 64, 32, 128  # rows and columns of a block's tile; its k; its threads
EACH = 8  # elements of one copy
ALONG_K, ACROSS, SINGLE = "along k", "across", "single elements"
ARGUMENTS = (
    "a", "b", "bias", "out",
    "m", "n", "k", "a_m", "a_k", "b_n", "b_k",
    "inner", "a_outer", "b_outer", "out_outer", "a_inner", "b_inner", "out_inner",
    "out_m", "tiles_m", "has_bias",
)  # fmt: skip


def signature(code):
    """Return the types of ARGUMENTS for an element code: f2 or b2."""
    return " ".join([f"{code}*"] * 4 + ["i8"] * (len(ARGUMENTS) - 4))


_VECTORS = """
@exact_jit
def load_{name}(x, shared, buffer, start, first, count, deep, k, x_step, k_step):
    \"\"\"Begin to copy a step of one operand; beyond its edges there are zeros.\"\"\"
    for p in range({copies}):
        copy = I4(cuda.threadIdx.x + {threads} * p)
        row, column = I4(copy // {per_row}), I4(copy % {per_row} * {each})
        place = I4((buffer * {rows} + row) * {pitch} + column)
        if {inside}:
            cp_async(shared, place, x, start + {source})
        else:
            for e in range({each}):
                shared[place + e] = {kind}(0)
"""
_SINGLE = """
@exact_jit
def load_{name}(x, shared, buffer, start, first, count, deep, k, x_step, k_step):
    \"\"\"Copy a step of one operand; with zeros beyond its edges. Neighbours read neighbours.\"\"\"
    for p in range({copies}):
        e = I4(cuda.threadIdx.x + {threads} * p)
        row, column = (e // {depth}, e % {depth}) if k_step == 1 else (e % {side}, e // {side})
        value = {kind}(0)
        if first + row < count and deep + column < k:
            value = x[start + (first + row) * x_step + (deep + column) * k_step]
        shared[I4((buffer * {rows} + row) * {pitch} + column)] = value
"""
_PUT = """
@exact_jit
def put(bias, out, row, column, m, n, start, out_m, has_bias, total):
    \"\"\"Round a sum and write it, if it is within the output; with the bias of its column.\"\"\"
    if row < m and column < n:
        if has_bias:
            total += {bias}
        out[start + row * out_m + column] = {total}
"""


def rows_of(way):
    """Return (rows, elements per row) of an operand's shared tile."""
    return (DEPTH, SIDE) if way == ACROSS else (SIDE, DEPTH)


def _load(name, way, kind):
    rows, columns = rows_of(way)
    numbers = {
        "name": name, "kind": kind, "threads": THREADS, "each": EACH, "side": SIDE, "depth": DEPTH,
        "rows": rows, "pitch": columns + EACH, "per_row": columns // EACH,
    }  # fmt: skip
    if way == SINGLE:
        return _SINGLE.format(copies=SIDE * DEPTH // THREADS, **numbers)
    at_k = "row" if way == ACROSS else "column"
    at_x = "column" if way == ACROSS else "row"
    return _VECTORS.format(
        copies=SIDE * DEPTH // EACH // THREADS,
        inside=f"first + {at_x} < count and deep + {at_k} < k",
        source=f"(first + {at_x}) * x_step + (deep + {at_k}) * k_step",
        **numbers,
    )


def _fragments(name, way, own):
    """Return the lines that load the fragments of 32 rows or columns from k = `at` on.

    x0 and x1 are a's, of 16 rows each; y0 and y1 are two of b's each, of 8 columns each.
    """
    rows, columns = rows_of(way)
    value = {"a": "x", "b": "y"}[name]
    # which lanes give rows of a matrix: those of k 8 higher are the last two for a, for b 1 and 3
    deep, beside = ("lane // 16", "lane // 8 % 2")[:: 1 if name == "a" else -1]
    if way == ACROSS:
        row, column = f"at + lane % 8 + {deep} * 8", f"{own} + 16 * {{}} + {beside} * 8"
    else:
        row, column = f"{own} + 16 * {{}} + lane % 8 + {beside} * 8", f"at + {deep} * 8"
    call = "ldmatrix_trans" if way == ACROSS else "ldmatrix"
    return [
        f"{value}{i} = {call}({name}_shared, "
        f"I4((buffer * {rows} + {row.format(i)}) * {columns + EACH} + {column.format(i)}))"
        for i in (0, 1)
    ]


def text(dtype, a_way, b_way):
    """Return the kernel for halves of a DType: out[z] = a[z] @ b[z] + bias.

    z counts blocks along the grid's z; its last axis is `inner` long.
    """
    kind, word, wide = dtype.text, dtype.name.replace("loat", ""), dtype.arithmetic
    number, cell = f"{wide.text}(bias[column])", f"{kind}(total)"
    if dtype.is_coded:
        number = f"{wide.code}_of_{dtype.code}(bias[column])"
        cell = f"{kind}({dtype.code}_of_{wide.code}(total))"
    sums = [f"c{i}{j}" for i in range(2) for j in range(4)]
    shared = [
        f"{name}_shared = cuda.shared.array({2 * rows * (columns + EACH)}, {kind}, 16)"
        for name, (rows, columns) in (("a", rows_of(a_way)), ("b", rows_of(b_way)))
    ]
    load = [
        "load_a(a, a_shared, {}, a_start, m_first, m, I8({}), k, a_m, a_k)",
        "load_b(b, b_shared, {}, b_start, n_first, n, I8({}), k, b_n, b_k)",
        "cp_async_commit()",
    ]
    products = [
        f"{c} = mma_{word}(x{c[1]}, y{int(c[2]) // 2}[{'4:' if int(c[2]) % 2 else ':4'}], {c})"
        for c in sums
    ]
    writes = [
        f"put(bias, out, m_first + own_m + {16 * i + 8 * (e // 2)} + lane // 4, "
        f"n_first + own_n + {8 * j + e % 2} + lane % 4 * 2, m, n, out_start, out_m, has_bias, "
        f"c{i}{j}[{e}])"
        for i in range(2) for j in range(4) for e in range(4)
    ]  # fmt: skip
    body = [
        "warp, lane = I4(cuda.threadIdx.x // 32), I4(cuda.threadIdx.x % 32)",
        "own_m, own_n = I4(warp // 2 * 32), I4(warp % 2 * 32)",
        f"m_first = I8(cuda.blockIdx.x) % tiles_m * {SIDE}",
        f"n_first = I8(cuda.blockIdx.x) // tiles_m * {SIDE}",
        "z = I8(cuda.blockIdx.z)",
        "outer = z // inner",
        "z = z - outer * inner",
        "a_start = outer * a_outer + z * a_inner",
        "b_start = outer * b_outer + z * b_inner",
        "out_start = outer * out_outer + z * out_inner",
        *shared,
        *(f"{c} = (F4(0), F4(0), F4(0), F4(0))" for c in sums),
        *(line.format("I4(0)", "0") for line in load),
        f"steps = I4((k + {DEPTH - 1}) // {DEPTH})",
        "for step in range(steps):",
        "    buffer = I4(step % 2)",
        "    if step + 1 < steps:",
        *(f"        {x.format('I4(1 - buffer)', f'(step + 1) * {DEPTH}')}" for x in load[:2]),
        "    cp_async_commit()",
        "    cp_async_wait(1)",
        "    cuda.syncthreads()",
        f"    for at in range(0, {DEPTH}, 16):",
        *(f"        {x}" for x in _fragments("a", a_way, "own_m")),
        *(f"        {x}" for x in _fragments("b", b_way, "own_n")),
        *(f"        {x}" for x in products),
        "    cuda.syncthreads()",
        *writes,
    ]
    head = [f"MOST_THREADS = ({THREADS}, 2)  # and two blocks at once"]
    head += [_load("a", a_way, kind), _load("b", b_way, kind)]
    head += [_PUT.format(bias=number, total=cell), f"def kernel({', '.join(ARGUMENTS)}):"]
    about = f'    """Tiles of {SIDE} x {SIDE}; a is read {a_way}, b {b_way}."""'
    return "\n".join([*head, about, *("    " + line for line in body), ""])
