"""Bundles small independent Loops into one launch, such as the updates of many parameters.

A launch costs a GPU microseconds, however small its work. Each Loop of a Bundle has its own blocks;
a block finds its Loop by the block index. The Loops of a Bundle compute in one float type: step
counts in float64 stay apart from updates in float32.
"""

from minigrad.array.layout import contiguous_strides
from minigrad.compiler.fuse.fused_loop import Loop
from minigrad.compiler.gpu.fuse import is_by_rows
from minigrad.compiler.program.items import conflict
from minigrad.compiler.program.program import Ref
from minigrad.devices.gpu.kernel import gpu_kernel
from minigrad.devices.gpu.kernel_text import GpuEmitter
from minigrad.formulas.emitter import Operand

MANY = 8  # Loops per launch
SMALL = 1 << 16  # elements of a Loop: a larger one should run early, once its gradient is complete
REACH = 64  # how many items a Loop may move down
THREADS = 256


class Bundle:
    """Loops that run side by side in one launch."""

    stops = False

    def __init__(self, loops):
        self.loops = loops

    @property
    def reads(self):
        return [r for loop in self.loops for r in loop.reads]

    @property
    def writes(self):
        return [r for loop in self.loops for r in loop.writes]

    @property
    def size(self):
        return sum(loop.size for loop in self.loops)

    @property
    def instructions(self):
        return [i for loop in self.loops for i in loop.instructions]


def bundled(items):
    """Bundle small Loops with later ones that they can run beside; return the items.

    Loops with equal formulas are joined first, such as the updates of all parameters.
    """
    for is_alike in (_formulas_alike, lambda loop, members: True):
        items = list(items)
        for t in range(len(items) - 2, -1, -1):
            if _may_join(items[t]):
                _join_later(items, t, is_alike)
        items = [x for x in items if x is not None]
    return items


def _formulas_alike(loop, members):
    """Return whether a Loop has the same formulas as the members of a Bundle."""
    formulas = [o.formula for o in loop.outputs]
    return all([o.formula for o in x.outputs] == formulas for x in members)


def _join_later(items, t, is_alike):
    loop = items[t]
    for u in range(t + 1, min(len(items), t + REACH)):
        other = items[u]
        if other is None:
            continue
        if conflict(loop, other):
            return
        members = other.loops if type(other) is Bundle else [other] if _may_join(other) else []
        if not members or len(members) == MANY or members[0].real != loop.real:
            continue
        if is_alike(loop, members):
            items[t], items[u] = None, Bundle([loop, *members])
            return


def _may_join(item):
    """Return whether an item is a small Loop whose operands are contiguous or single numbers."""
    if type(item) is not Loop or item.size > SMALL or is_by_rows(item):
        return False
    plain = contiguous_strides(item.dims)
    places = [(s, False) for _, _, s in item.loads] + [(o.strides, True) for o in item.outputs]
    return all(s == plain or not (is_output or any(s)) for s, is_output in places)


class BundlePart:
    """One Loop of a Bundle: its Refs in the order of the arguments of `text`, a device function.

    text has `{name}` as its name; kinds: words of the signature; includes: files that it needs.
    """

    def __init__(self, loop):
        operands, self.refs = [], []
        for (value, offset, strides), e in loop.used_loads().items():
            varies = any(strides) or loop.size == 1  # size 1: only the writing thread reads
            operands.append(Operand(e.args[0], value.dtype, "i" if varies else "0", varies))
            self.refs.append(Ref(value, loop.dims, strides, offset))
        emitter = GpuEmitter(operands, loop.real.text)
        stores = [
            f"o{k}[i] = {emitter.stored(o.formula, o.value.dtype)}"
            for k, o in enumerate(loop.outputs)
        ]
        self.refs += loop.writes
        names = [o.name for o in operands] + [f"o{k}" for k in range(len(loop.outputs))]
        lines = [
            f"def {{name}}({', '.join(names)}, n, block, blocks):",
            *(f"    {x}" for x in emitter.row),
            f"    i = I4(block * {THREADS} + cuda.threadIdx.x)",
            "    while i < n:",
            *(f"        {x}" for x in (*emitter.lines, *stores)),
            f"        i = I4(i + blocks * {THREADS})",
        ]
        self.text = "@exact_jit\n" + "\n".join(lines) + "\n"
        self.kinds = [f"{r.dtype.code}*" for r in self.refs]
        self.includes, self.size = emitter.includes, loop.size


def kernel_of(parts):
    """Return (GpuKernel, numbers after the pointers, blocks) for BundleParts.

    The kernel's arguments: the pointers, then the element counts, then the end blocks of all parts.
    """
    functions, calls, names, words, end = {}, [], [], [], 0
    ends = []
    for k, part in enumerate(parts):
        name = functions.setdefault(part.text, f"part{len(functions)}")
        mine = [f"p{k}_{j}" for j in range(len(part.refs))]
        names += mine
        words += part.kinds
        start = f"end{k - 1}" if k else "0"
        calls.append(f"    {'elif' if k else 'if'} b < end{k}:")
        calls.append(f"        {name}({', '.join(mine)}, n{k}, b - {start}, end{k} - {start})")
        end += -(-part.size // THREADS)
        ends.append(end)
    every = range(len(parts))
    names += [f"n{k}" for k in every] + [f"end{k}" for k in every]
    words += ["i4"] * (2 * len(parts))
    head = f"def kernel({', '.join(names)}):\n    b = I4(cuda.blockIdx.x)"
    texts = [text.replace("{name}", name) for text, name in functions.items()]
    includes = set().union(*(part.includes for part in parts))
    kernel = gpu_kernel(
        "\n\n".join([*texts, "\n".join([head, *calls]) + "\n"]),
        " ".join(words),
        tuple(sorted(includes)),
    )
    return kernel, [*(part.size for part in parts), *ends], end
