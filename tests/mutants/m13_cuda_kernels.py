"""Wrong solutions of lesson 13 that people really write."""

from pathlib import Path

from minigrad.course.mutants import Mutant

SOLUTION = (Path(__file__).parents[2] / "solutions" / "13_cuda_kernels.py").read_text(
    encoding="utf-8"
)


def changed(name: str, *changes: tuple[str, str]) -> str:
    """Return a kernel of the solution, with pieces replaced of what follows its docstring."""
    start = SOLUTION.index(f"def {name}(")
    ends = [SOLUTION.find(mark, start + 1) for mark in ("\n\n\ndef ", "\n\n\n# ")]
    text = SOLUTION[start : min([end for end in ends if end > 0], default=None)]
    head, quotes, body = text.rpartition('"""\n')
    for old, new in changes:
        assert old in body, old
        body = body.replace(old, new)
    return head + quotes + body


def mutant(name: str, key: str, *changes: tuple[str, str]) -> Mutant:
    """Return the mutant of these changes."""
    return Mutant(name, key, changed(name, *changes))


MAP, BLOCK, WARPS, SOFTMAX = "k_map_guarded", "k_block_sum", "k_warp_sum", "k_softmax_row"
MATMUL, TRANSPOSE, HISTOGRAM = "k_matmul_tiled", "k_transpose", "k_histogram"

BARRIER = "    cuda.syncthreads()\n"
FIRST_BARRIER = BARRIER + "    half = THREADS // 2"
ROUND_BARRIER = "        cuda.syncthreads()\n        half //= 2"
ADD = "        if t < half:\n            s[t] += s[t + half]\n"
LOAD = "    if i < x.size:\n        s[t] = x[i]\n    else:\n        s[t] = np.float32(0)\n"
SHUFFLE = "            total += cuda.shfl_down_sync(EVERYONE, total, step)\n"
COLUMNS = "for column in range(lane, x.shape[1], WARP):"
MIDDLE = "    cuda.syncthreads()  # everyone has read s[0]: now it may be overwritten\n"
PRODUCTS = "            total += tile_a[ty, k] * tile_b[k, tx]\n"
WRITE_OUT = (
    "    if left + ty < x.shape[1] and top + tx < x.shape[0]:\n"
    "        out[left + ty, top + tx] = tile[tx, ty]\n"
)
COUNT = "        cuda.atomic.add(mine, values[i], 1)  # G\n"
AFTER = "    ### BEGIN SOLUTION\n    cuda.syncthreads()\n"
NAIVE = (
    "def k_matmul_tiled(a, b, c):\n"
    "    column, row = cuda.grid(2)\n"
    "    if row < c.shape[0] and column < c.shape[1]:\n"
    "        total = np.float32(0)\n"
    "        for k in range(a.shape[1]):\n"
    "            total += a[row, k] * b[k, column]\n"
    "        c[row, column] = total\n"
)
STRAIGHT = (
    "def k_transpose(x, out):\n"
    "    j, i = cuda.grid(2)\n"
    "    if i < x.shape[0] and j < x.shape[1]:\n"
    "        out[j, i] = x[i, j]\n"
)
SERIAL = (
    "def k_block_sum(x, out):\n"
    "    s = cuda.shared.array(THREADS, np.float32)\n"
    "    t = cuda.threadIdx.x\n"
    "    i = cuda.grid(1)\n" + LOAD + BARRIER + "    if t == 0:\n"
    "        total = np.float32(0)\n"
    "        for k in range(THREADS):\n"
    "            total += s[k]\n"
    "        out[cuda.blockIdx.x] = total\n"
)
ATOMIC = (
    "def k_block_sum(x, out):\n"
    "    s = cuda.shared.array(1, np.float32)\n"
    "    i = cuda.grid(1)\n"
    "    if cuda.threadIdx.x == 0:\n"
    "        s[0] = np.float32(0)\n" + BARRIER + "    if i < x.size:\n"
    "        cuda.atomic.add(s, 0, x[i])\n" + BARRIER + "    if cuda.threadIdx.x == 0:\n"
    "        out[cuda.blockIdx.x] = s[0]\n"
)

MUTANTS = [
    mutant(MAP, "bounds", ("    if i < n:\n", "    if i >= 0:\n")),
    mutant(MAP, "bounds", ("i < n", "i <= n")),
    mutant(MAP, "race", ("cuda.grid(1)", "cuda.threadIdx.x")),
    mutant(MAP, "float64", ("np.float32(0.01)", "0.01")),
    mutant(
        MAP,
        "float64",
        ("            out[i] = np.float32(0.01) * value\n", "            out[i] = value / 100\n"),
    ),
    mutant(MAP, "unwritten", ("cuda.grid(1)", "cuda.grid(1) + 1")),
    mutant(
        MAP,
        "race",
        ("    i = cuda.grid(1)\n    if i < n:\n", "    for i in range(n):\n"),
    ),
    mutant(MAP, "relu", ("np.float32(0.01) * value", "np.float32(0)")),
    mutant(MAP, "swapped", ("value > np.float32(0)", "value < np.float32(0)")),
    mutant(
        MAP,
        "unwritten",
        (
            "        if value > np.float32(0):\n            out[i] = value\n"
            "        else:\n            out[i] = np.float32(0.01) * value\n",
            "        if value < np.float32(0):\n            out[i] = np.float32(0.01) * value\n",
        ),
    ),
    mutant(BLOCK, "race", (FIRST_BARRIER, "    half = THREADS // 2")),
    mutant(BLOCK, "race", (ROUND_BARRIER, "        half //= 2")),
    mutant(BLOCK, "race", ("cuda.syncthreads()", "cuda.syncwarp()")),
    mutant(
        BLOCK,
        "divergent",
        (ADD + "        cuda.syncthreads()\n", ADD + "            cuda.syncthreads()\n"),
    ),
    mutant(
        BLOCK,
        "uninitialised",
        (LOAD, "    if i >= x.size:\n        return\n    s[t] = x[i]\n"),
    ),
    mutant(BLOCK, "uninitialised", (LOAD, "    if i < x.size:\n        s[t] = x[i]\n")),
    mutant(BLOCK, "bounds", ("half = THREADS // 2", "half = THREADS")),
    mutant(BLOCK, "half", ("half = THREADS // 2", "half = THREADS // 4")),
    Mutant(BLOCK, "serial", SERIAL),
    Mutant(BLOCK, "atomic", ATOMIC),
    mutant(WARPS, "lane", (SHUFFLE, "            pass\n")),
    mutant(WARPS, "rounds", ("step = WARP // 2", "step = WARP // 4")),
    mutant(WARPS, "value", ("step = WARP // 2", "step = WARP")),
    mutant(WARPS, "inactive", (SHUFFLE, "            if lane < step:\n    " + SHUFFLE)),
    mutant(
        WARPS,
        "inactive",
        (
            "        total = np.float32(0)\n",
            "        if lane >= x.shape[1]:\n            return\n        total = np.float32(0)\n",
        ),
    ),
    mutant(
        WARPS,
        "coalesced",
        (
            COLUMNS,
            "each = (x.shape[1] + WARP - 1) // WARP\n        for column in "
            "range(lane * each, min(lane * each + each, x.shape[1])):",
        ),
    ),
    mutant(WARPS, "race", ("if lane == 0:", "if lane < 2:")),
    mutant(WARPS, "another_lane", ("if lane == 0:", "if lane == WARP - 1:")),
    mutant(WARPS, "race", ("row = cuda.grid(1) // WARP", "row = cuda.threadIdx.x // WARP")),
    mutant(WARPS, "bounds", ("    if row < x.shape[0]:\n", "    if row >= 0:\n")),
    mutant(SOFTMAX, "race", (MIDDLE, "")),
    mutant(SOFTMAX, "race", (ROUND_BARRIER, "        half //= 2")),
    mutant(
        SOFTMAX,
        "divergent",
        (
            "        largest = max(largest, x[row, column])\n",
            "        largest = max(largest, x[row, column])\n        cuda.syncthreads()\n",
        ),
    ),
    mutant(SOFTMAX, "nan", ("    largest = s[0]\n", "    largest = np.float32(0)\n")),
    mutant(SOFTMAX, "float64", ("    total = np.float32(0)", "    total = 0.0")),
    mutant(SOFTMAX, "not_divided", (" - largest) / total", " - largest)")),
    mutant(
        SOFTMAX,
        "alone",
        (
            "    total = s[0]\n",
            "    if t == 0:\n        s[0] = total\n    cuda.syncthreads()\n    total = s[0]\n",
        ),
        ("            s[t] += s[t + half]\n", "            s[t] = s[t]\n"),
    ),
    mutant(
        SOFTMAX,
        "unwritten",
        (
            "    for column in range(t, columns, THREADS):\n        out",
            "    column = t\n    if column < columns:\n        out",
        ),
    ),
    mutant(
        SOFTMAX,
        "reads",
        (
            "    largest = np.float32(-math.inf)\n    for column in range(t, columns, THREADS):\n",
            "    largest = np.float32(-math.inf)\n    for column in range(columns):\n",
        ),
    ),
    mutant(
        SOFTMAX,
        "uninitialised",
        ("    s[t] = largest\n", "    if t < columns:\n        s[t] = largest\n"),
    ),
    Mutant(MATMUL, "naive", NAIVE),
    mutant(MATMUL, "race", ("        cuda.syncthreads()\n        for k in", "        for k in")),
    mutant(MATMUL, "race", (PRODUCTS + "        cuda.syncthreads()\n", PRODUCTS)),
    mutant(
        MATMUL,
        "bounds",
        ("row < a.shape[0] and start + tx < a.shape[1]", "start >= 0"),
    ),
    mutant(
        MATMUL,
        "uninitialised",
        ("        else:\n            tile_a[ty, tx] = np.float32(0)\n", ""),
        ("        else:\n            tile_b[ty, tx] = np.float32(0)\n", ""),
    ),
    mutant(
        MATMUL,
        "uninitialised",
        (
            "    total = np.float32(0)\n",
            "    if row >= c.shape[0] or column >= c.shape[1]:\n        return\n"
            "    total = np.float32(0)\n",
        ),
    ),
    mutant(MATMUL, "transposed", ("c[row, column] = total", "c[column, row] = total")),
    mutant(MATMUL, "value", ("tile_b[k, tx]", "tile_b[tx, k]")),
    mutant(
        MATMUL,
        "last_tile",
        (
            "        for k in range(TILE):",
            "        total = np.float32(0)\n        for k in range(TILE):",
        ),
    ),
    mutant(
        MATMUL,
        "stores",
        (
            "        cuda.syncthreads()\n    if row < c.shape[0] and column < c.shape[1]:\n"
            "        c[row, column] = total\n",
            "        cuda.syncthreads()\n        if row < c.shape[0] and column < c.shape[1]:\n"
            "            c[row, column] = total\n"
            "    if row < c.shape[0] and column < c.shape[1]:\n"
            "        c[row, column] = total\n",
        ),
    ),
    Mutant(TRANSPOSE, "coalesced", STRAIGHT),
    mutant(TRANSPOSE, "conflicts", ("(SQUARE, 33)", "(SQUARE, SQUARE)")),
    mutant(TRANSPOSE, "race", (BARRIER, "")),
    mutant(
        TRANSPOSE,
        "coalesced",
        (
            WRITE_OUT,
            "    if top + ty < x.shape[0] and left + tx < x.shape[1]:\n"
            "        out[left + tx, top + ty] = tile[ty, tx]\n",
        ),
    ),
    mutant(TRANSPOSE, "not_a_kernel", ("(SQUARE, 33)", "(SQUARE, SQUARE + 1)")),
    mutant(
        TRANSPOSE,
        "bounds",
        ("    if top + ty < x.shape[0] and left + tx < x.shape[1]:\n        tile", "    tile"),
    ),
    mutant(
        TRANSPOSE,
        "uninitialised",
        (WRITE_OUT, "    out[left + ty, top + tx] = tile[tx, ty]\n"),
    ),
    mutant(
        TRANSPOSE,
        "uninitialised",
        (
            "    if left + ty < x.shape[1] and top + tx < x.shape[0]:\n        out",
            "    if top + ty < x.shape[0] and left + tx < x.shape[1]:\n        out",
        ),
    ),
    mutant(
        TRANSPOSE,
        "tile_in_place",
        (
            WRITE_OUT,
            "    if top + ty < x.shape[0] and left + tx < x.shape[1]:\n"
            "        out[top + ty, left + tx] = tile[tx, ty]\n",
        ),
    ),
    mutant(TRANSPOSE, "value", ("tile[tx, ty]", "tile[ty, tx]")),
    Mutant(HISTOGRAM, "form", 'BUG = {"kind": "lock", "write": "G", "read": "I"}'),
    Mutant(HISTOGRAM, "not_it", 'BUG = {"kind": "atomic", "write": "G", "read": "I"}'),
    Mutant(HISTOGRAM, "not_it", 'BUG = {"kind": "barrier", "write": "D", "read": "G"}'),
    Mutant(HISTOGRAM, "untouched", 'BUG = {"kind": "barrier", "write": "G", "read": None}'),
    mutant(HISTOGRAM, "divergent", (COUNT, COUNT + "        cuda.syncthreads()\n"), (AFTER, "")),
    mutant(
        HISTOGRAM,
        "divergent",
        (AFTER, ""),
        ("    if t < GREYS:  # H\n", "    if t < GREYS:  # H\n        cuda.syncthreads()\n"),
    ),
    mutant(HISTOGRAM, "race", (AFTER, "    cuda.syncwarp()\n")),
    mutant(HISTOGRAM, "race", (AFTER, "    cuda.threadfence()\n")),
    mutant(
        HISTOGRAM,
        "lost",
        (AFTER, ""),
        ("mine[t])  # I", "cuda.atomic.add(mine, t, 0))  # I"),
    ),
    mutant(HISTOGRAM, "race", (COUNT, "        mine[values[i]] += 1  # G\n")),
]
