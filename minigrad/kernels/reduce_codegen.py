"""The text of a reduction: kept loops, reduced loops, and perhaps one kept loop innermost."""

import numpy as np

from minigrad.kernels.codegen import (
    Kernel,
    combine,
    index_text,
    operand_names,
    renamed_outputs,
    start_value,
    step,
    stored_as,
)
from minigrad.kernels.emitter import Emitter, Operand, real_type


def limits(dtype):
    """The smallest and the largest number of an integer dtype."""
    found = np.iinfo(dtype.numpy)
    return int(found.min), int(found.max)


BLOCK = 4096  # elements summed in the kernel's type before the sum moves on to float64


def reduce_text(program, how, kinds, n_kept, n_reduced, keeps_inner, inner):
    """Reduces one formula: kept outer loops, reduced loops, and perhaps one kept loop innermost.

    With a kept innermost loop partial results live in the output row; otherwise in a register, and
    sums of float32 go over to float64 every BLOCK elements.
    """
    kernel, (names, outs) = Kernel(), operand_names(program, 1)
    everything = [*names, *outs]
    kernel.operands(everything, kinds)
    arrays = [n for n, k in zip(everything, kinds, strict=True) if not isinstance(k, str)]
    kept, reduced = [f"i{d}" for d in range(n_kept)], [f"r{d}" for d in range(n_reduced)]
    if keeps_inner:
        loops, innermost = [*kept, *reduced], "j"
    else:
        loops, innermost = [*kept, *reduced[:-1]], reduced[-1]
    for i in (*loops, innermost):
        kernel.argument(f"n_{i}")
    classes = dict(zip(arrays, inner, strict=True))
    for name in arrays:
        mine = [*kept, "j"] if name == "out0" and keeps_inner else kept
        for i in mine if name == "out0" else (*loops, innermost):
            kernel.argument(step(i, name))
    where = {
        n: index_text(n, loops, innermost, classes[n])
        if n != "out0"
        else index_text(n, kept, "j" if keeps_inner else None, classes[n])
        for n in arrays
    }
    operands = [
        Operand(n, k, None, False)
        if isinstance(k, str)
        else Operand(n, k, where[n], n == "out0" or classes[n] != 0)
        for n, k in zip(everything, kinds, strict=True)
    ]
    emitter = Emitter(operands, real_type(program, kinds))
    emitter.start_pass()
    expression, out = renamed_outputs(program)[0], operands[-1]
    assert not isinstance(out.kind, str)
    kind = "b" if how in ("any", "all") else emitter.kind(expression)
    if kind == "b" and how in ("sum", "mean", "prod"):
        kind = "i"
    if how == "mean":
        kind = "f"
    value = emitter.value(expression, kind)
    start = start_value(how, kind, emitter.real)
    if keeps_inner and kind == "i" and how in ("max", "min") and out.kind.itemsize < 8:
        least, most = limits(out.kind)  # it is stored in the output, which may be a small int
        start = f"I8({least if how == 'max' else most})"
    finish = _finisher(how, kind, out.kind, emitter.real, reduced)
    for depth, i in enumerate(kept):
        kernel.loop(1 + depth, i, f"n_{i}")
    base = 1 + len(kept)
    target = f"out0[{out.index}]"
    if keeps_inner:
        load = f"{target} != U1(0)" if out.kind.kind == "b" else target
        kernel.loop(base, "j", "n_j")
        kernel.line(base + 1, f"{target} = {stored_as(start, out.kind, kind)}")
        for depth, i in enumerate(reduced):
            kernel.loop(base + depth, i, f"n_{i}")
        deep = base + len(reduced)
        for text in emitter.row:
            kernel.line(deep, text)
        kernel.loop(deep, "j", "n_j")
        for text in emitter.lines:
            kernel.line(deep + 1, text)
        if not value.isidentifier():
            kernel.line(deep + 1, f"value = {value}")
            value = "value"
        kernel.line(deep + 1, f"before = {load}")
        combined = combine(how, "before", value, kind)
        kernel.line(deep + 1, f"{target} = {stored_as(combined, out.kind, kind)}")
        if how == "mean":
            kernel.loop(base, "j", "n_j")
            kernel.line(base + 1, f"{target} = {finish(target)}")
        return kernel.text(emitter)
    wide = how in ("sum", "mean") and kind == "f"
    kernel.line(base, f"total = {'F8(0)' if wide else start}")
    for depth, i in enumerate(reduced[:-1]):
        kernel.loop(base + depth, i, f"n_{i}")
    deep = base + len(reduced) - 1
    for text in emitter.row:
        kernel.line(deep, text)
    last = reduced[-1]
    accumulator = "total"
    if wide:
        accumulator = "part"
        kernel.line(deep, f"for start in range(0, n_{last}, {BLOCK}):")
        kernel.line(deep + 1, f"part = {start}")
        kernel.line(deep + 1, f"for {last} in range(start, min(start + {BLOCK}, n_{last})):")
        deep += 1
    else:
        kernel.loop(deep, last, f"n_{last}")
    for text in emitter.lines:
        kernel.line(deep + 1, text)
    if not value.isidentifier():
        kernel.line(deep + 1, f"value = {value}")
        value = "value"
    kernel.line(deep + 1, f"{accumulator} = {combine(how, accumulator, value, kind)}")
    if wide:
        kernel.line(deep, "total += part")
    kernel.line(base, f"{target} = {finish('total')}")
    return kernel.text(emitter)


def _finisher(how, kind, dtype, real, reduced):
    def finish(text):
        if how == "mean":
            text = f"{text} / F8({' * '.join(f'n_{i}' for i in reduced) or '1'})"
        return stored_as(text, dtype, kind)

    return finish
