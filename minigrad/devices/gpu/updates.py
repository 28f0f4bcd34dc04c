"""Runs optimizer steps on a GPU: one launch updates several parameters.

A kernel takes the pointers of MANY parameters, each of which has a range of blocks. If there are
fewer parameters, the unused ones have no blocks.
"""

import functools
import itertools
from typing import NamedTuple

from minigrad.array.dtypes import float64
from minigrad.devices import loader
from minigrad.devices.gpu.kernel import gpu_kernel
from minigrad.devices.gpu.kernel_text import GpuEmitter
from minigrad.devices.gpu.table import GpuTable
from minigrad.formulas.emitter import Operand
from minigrad.formulas.update import STEPS

MANY = 8  # parameters per launch
THREADS, EACH, MOST = 256, 4, 512  # per block; least elements per thread; most blocks per parameter


class UpdateForm(NamedTuple):
    """The parameters of a function; numbers have the type that elements are computed in.

    Attributes:
        arrays: each parameter's arrays, before (n, block, blocks).
        shared: pointers common to all parameters.
        own: each parameter's numbers.
        numbers: numbers common to all parameters.
        is_indexed: whether it gets the parameter's index in the launch.
        wide: those of the arrays that have the type that elements are computed in.
    """

    arrays: tuple
    shared: tuple = ()
    own: tuple = ()
    numbers: tuple = ()
    is_indexed: bool = False
    wide: tuple = ()


CLIPPING = {
    "squares": UpdateForm(("x",), ("sums",)),
    "scale": UpdateForm(("x",), own=("factor",)),
}


@functools.cache
def clipping_kernel(name, dtype):
    """Return the kernel of one of CLIPPING for arrays of a dtype; see `kernel`."""
    return kernel(name, CLIPPING[name], loader.source("gpu_clipping"), dtype)


@functools.cache
def update_kernel(update, dtype):
    """Return the kernel of a formulas.Update for parameters of a dtype; see `kernel`."""
    arrays, emitter, stores = update.elements(GpuEmitter, dtype)
    own = [f"n{k}" for k in update.of_steps]
    numbers = [f"n{k}" for k in range(len(update.numbers)) if k not in update.of_steps]
    shared, index = (["factors"], ["k"]) if own else ([], [])
    names = [*arrays, "n", "block", "blocks", *shared, *index, *numbers]
    lines = [
        "@exact_jit",
        f"def update({', '.join(names)}):",
        *(f"    {x} = factors[{len(own)} * k + {j}]" for j, x in enumerate(own)),
        *(f"    {x}" for x in emitter.row),
        "    first = block * cuda.blockDim.x + cuda.threadIdx.x",
        "    for i in range(first, n, blocks * cuda.blockDim.x):",
        *(f"        {x}" for x in (*emitter.lines, *stores)),
    ]
    form = UpdateForm(
        tuple(arrays), tuple(shared), (), tuple(numbers), is_indexed=bool(own), wide=arrays[2:]
    )
    includes = tuple(sorted(emitter.includes))
    return kernel("update", form, "\n".join(lines) + "\n", dtype, includes)


def kernel(name, form, text, dtype, includes=()):
    """Return the GpuKernel that calls a function for MANY parameters.

    Its arguments: the arrays of each parameter, the shared pointers; elements and first block of
    each parameter, and the number of blocks; own numbers of each parameter, common numbers.

    Args:
        name, form: the function's name and form.
        text: the source that defines it.
        dtype: of the elements; the source calls its type T.
    """
    every = range(MANY)
    arrays = [[f"{a}_{k}" for a in form.arrays] for k in every]
    own = [[f"{a}_{k}" for a in form.own] for k in every]
    names = [
        *(a for each in arrays for a in each), *form.shared,
        *(f"size{k}" for k in every), *(f"first{k}" for k in range(MANY + 1)),
        *(a for each in own for a in each), *form.numbers,
    ]  # fmt: skip
    code, real = dtype.code, dtype.arithmetic.code
    words = [
        *[f"{real if a in form.wide else code}*" for a in form.arrays] * MANY,
        *[f"{real}*"] * len(form.shared),
        *["i8"] * (2 * MANY + 1),
        *[real] * (MANY * len(form.own) + len(form.numbers)),
    ]
    lines = ["    b = I8(cuda.blockIdx.x)"]
    for k in every:
        place = [f"size{k}", f"b - first{k}", f"first{k + 1} - first{k}"]
        index = [f"I8({k})"] if form.is_indexed else []
        more = [*form.shared, *index, *own[k], *form.numbers]
        lines.append(f"    {'elif' if k else 'if'} b < first{k + 1}:")
        lines.append(f"        {name}({', '.join([*arrays[k], *place, *more])})")
    head = [f"T = {dtype.text}\n", text, f"\ndef kernel({', '.join(names)}):"]
    return gpu_kernel("\n".join([*head, *lines, ""]), " ".join(words), includes)


@functools.cache
def counting_kernel(update, code):
    """Return (kernel, names of its numbers); the kernel counts a step of up to MANY parameters.

    It also computes the Update's numbers that depend on steps, in float64 as on the CPU.
    """
    program, every = update.counting, range(MANY)
    operands = [
        Operand(n, float64, "0", False) if n == STEPS else Operand(n, "f", None, False)
        for n in program.inputs
    ]
    emitter = GpuEmitter(operands, "F8")
    emitter.registers[STEPS] = "steps[0]"
    values = [emitter.stored(e, float64) for e in program.outputs]
    count, numbers = len(update.of_steps), [n for n in program.inputs if n != STEPS]
    lines = [
        "@exact_jit",
        f"def count_step({', '.join(['steps', 'factors', 'k', *numbers])}):",
        *(f"    {x}" for x in emitter.row),
        f"    steps[0] = {values[0]}",
        *(f"    factors[{count} * k + {j}] = T({v})" for j, v in enumerate(values[1:])),
        "",
        "",
        f"def kernel({', '.join([*(f'steps{k}' for k in every), 'factors', *numbers, 'count'])}):",
        "    k = cuda.grid(1)",
        "    if k >= count:",
        "        return",
    ]
    for k in every:
        lines.append(f"    {'elif' if k else 'if'} k == {k}:")
        call = ", ".join([f"steps{k}", "factors", f"I8({k})", *numbers])
        lines.append(f"        count_step({call})")
    words = [*["f8*"] * MANY, f"{code}*", *["f8"] * len(numbers), "i8"]
    text = "\n".join([f"T = {code.upper()}\n", *lines, ""])
    kernel = gpu_kernel(text, " ".join(words), tuple(sorted(emitter.includes)))
    return kernel, numbers


def shares(sizes):
    """Return [first block of each, ..., all blocks] for parameters of these sizes."""
    firsts = [0]
    for n in sizes:
        blocks = max(1, min(MOST, -(-n // (THREADS * EACH)))) if n else 0
        firsts.append(firsts[-1] + blocks)
    return firsts


class Updates(GpuTable):
    """Runs updates of parameters of one dtype with the same hyperparameters."""

    def update(self, update, rows, values):
        dtype = rows[0][0].dtype
        kernel = update_kernel(update, dtype)
        every = range(len(update.numbers))
        numbers = [update.number(k, values) for k in every if k not in update.of_steps]
        for first in range(0, len(rows), MANY):
            part = rows[first : first + MANY]
            shared = (self._counted(update, dtype, part, values),) if update.of_steps else ()
            self._run(kernel, [(p, g, *slots) for p, g, slots, _ in part], shared, (), numbers)

    def _counted(self, update, dtype, rows, values):
        """Count a step; return an Array of each parameter's numbers that depend on the step."""
        kernel, names = counting_kernel(update, dtype.arithmetic.code)
        factors = self.empty((MANY, len(update.of_steps)), dtype.arithmetic)
        steps = [row[3] for row in rows]
        steps += [steps[0]] * (MANY - len(rows))
        self.launch(kernel, 1, 32, (*steps, factors, *(values[n] for n in names), len(rows)))
        return factors

    def squares(self, arrays):
        """Return sums of squares: each block's in the arrays' dtype, their totals in float64."""
        totals = []
        for first in range(0, len(arrays), MANY):
            part = arrays[first : first + MANY]
            firsts = shares([x.size for x in part])
            sums = self.empty((max(1, firsts[-1]),), part[0].dtype)
            kernel = clipping_kernel("squares", part[0].dtype)
            self._run(kernel, [(x,) for x in part], (sums,), (), ())
            whole = self.to_numpy(sums).astype(float64.numpy)
            totals += [float(whole[a:b].sum()) for a, b in itertools.pairwise(firsts)]
        return totals

    def scale(self, arrays, factors):
        for first in range(0, len(arrays), MANY):
            part = arrays[first : first + MANY]
            own = factors[first : first + MANY]
            kernel = clipping_kernel("scale", part[0].dtype)
            self._run(kernel, [(x,) for x in part], (), own, ())

    def _run(self, kernel, arrays, shared, own, common):
        """Launch once; arrays: a tuple per parameter, all of the size of its first."""
        sizes = [each[0].size for each in arrays]
        firsts = shares(sizes)
        if not firsts[-1]:
            return
        empty = MANY - len(arrays)
        operands = (
            *(a for each in arrays for a in each), *arrays[0] * empty, *shared,
            *sizes, *[0] * empty, *firsts, *firsts[-1:] * empty,
            *own, *[0.0] * (empty if own else 0), *common,
        )  # fmt: skip
        self.launch(kernel, firsts[-1], THREADS, operands)
