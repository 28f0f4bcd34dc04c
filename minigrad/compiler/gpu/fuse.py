"""Fuses for GPUs: what one kernel of the device table can run becomes one Loop.

A GPU has three forms of kernel: formulas per element, formulas with row reductions and sums of
columns, and one reduction of another kind. So a Loop may hold formulas, row reductions and sums of
columns together; a reduction over everything stays alone, since it needs its own order of blocks.
"""

from dataclasses import replace

from minigrad.array.layout import collapse
from minigrad.compiler.fuse.fuse import items_of
from minigrad.compiler.fuse.fused_loop import Loop
from minigrad.compiler.fuse.hoist import hoist
from minigrad.compiler.program.items import MatMul
from minigrad.compiler.program.program import Instruction
from minigrad.formulas.expression import (
    COMPARISONS,
    ROW_REDUCTIONS,
    Program,
    call,
    symbol,
    walk,
    where,
)

ROW_FORMS = {"row_sum", "row_max", "row_mean"}  # the reductions of floats in row kernels
_i, _n = symbol("i"), symbol("n")
WRAP = Program(["i", "n"], [where(call("less", _i, 0), _i + _n, _i)])


def fuse_for_gpu(recording):
    """Fuse a recording; return its items in an order in which they can run."""
    return hoist(items_of(recording, _place_product, fits_one_kernel))


def _place_product(i, items):
    (a, b), (out,) = i.inputs, i.outputs
    if out.size:
        items.append(MatMul(i, a, b, out, bool(i.attributes.get("accumulate"))))


def without_wraps(recording):
    """Replace wrap_index by a check, which may move to the front, and a formula, which fuses."""
    plain = []
    for i in recording.instructions:
        if i.op != "wrap_index":
            plain.append(i)
            continue
        n = i.attributes["n"]
        within = {"what": "within", "low": -n, "high": n - 1, "error": i.attributes["error"]}
        wrap = {"program": WRAP}
        plain.append(Instruction("check", i.inputs, (), within, i.name, i.place))
        plain.append(Instruction("elementwise", (*i.inputs, n), i.outputs, wrap, i.name, i.place))
    return replace(recording, instructions=plain)


def is_by_rows(loop):
    """Return whether a Loop needs a row kernel, which knows each element's place in its row."""
    if any(o.mode != "store" for o in loop.outputs):
        return True
    return any(e.op in ROW_REDUCTIONS or e.op == "column_of" for e in _formulas(loop))


def fits_one_kernel(loop):
    """Return whether one kernel of the table can run a Loop of several pieces."""
    if not is_by_rows(loop):
        return True
    if loop.rows is None or not all(_is_row_output(loop, o) for o in loop.outputs):
        return False
    formulas = _formulas(loop)
    for e in formulas:
        if e.op in ROW_REDUCTIONS and (e.op not in ROW_FORMS or loop.kinds.of(e.args[0]) != "f"):
            return False
    return not _is_compared(loop, formulas) and _has_one_column_axis(loop)


def _is_compared(loop, formulas):
    """Return whether a row maximum of computed values is compared with them, here or later.

    A kernel may recompute a value in each pass over a row, and round it differently: then no value
    would equal the maximum. Values read from memory are the same in every pass.
    """
    largest = {e for e in formulas if e.op == "row_max" and e.args[0].op != "symbol"}
    return any(o.formula in largest for o in loop.outputs) or any(
        e.op in COMPARISONS and not largest.isdisjoint(e.args) for e in formulas
    )


def _is_row_output(loop, o):
    """Return whether row kernels support an output."""
    if o.mode != "columns":
        return o.mode in ("store", "row")
    return o.how == "sum" and o.value.dtype.is_float and loop.kinds.of(o.formula) == "f"


def _has_one_column_axis(loop):
    """Return whether the columns collapse to one axis for all loads and writes of a Loop."""
    places = [s for _, _, s in loop.loads] + [o.strides for o in loop.outputs]
    return len(collapse(loop.dims[loop.rows :], [s[loop.rows :] for s in places])[0]) < 2


def _formulas(loop):
    return walk([o.formula for o in loop.outputs])


def is_alone(item):
    """Return whether an item is one whole instruction, which the device table can run."""
    if type(item) is not Loop:
        return True
    if len(item.pieces) != 1 or len(item.pieces[0].outputs) != len(item.outputs):
        return False
    is_reduction = item.pieces[0].instruction.op == "reduce"
    return not (is_reduction and item.outputs[0].mode == "store")  # over axes of size 1: a copy
