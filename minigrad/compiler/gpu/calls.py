"""Turns a plan's items into calls of the device table, which eager execution also uses.

An item of one instruction becomes the call that was traced. A Loop of several instructions becomes
one call of `elementwise` or `rows` with a program of all their formulas.
"""

from typing import Any, NamedTuple

from minigrad.array.layout import size_of
from minigrad.compiler.fuse.fused_loop import Loop
from minigrad.compiler.gpu.bundle import THREADS, Bundle, BundlePart, kernel_of
from minigrad.compiler.gpu.fuse import is_alone, is_by_rows
from minigrad.compiler.program.items import MatMul
from minigrad.compiler.program.program import Ref
from minigrad.formulas.expression import (
    Program,
    absolute,
    call,
    logical_and,
    logical_not,
    symbol,
)

_x, _low, _high = map(symbol, ("x", "low", "high"))
_within = logical_and(call("less_equal", _low, _x), call("less_equal", _x, _high))
OUTSIDE = Program(["x", "low", "high"], [logical_not(_within)])
NOT_FINITE = Program(["x", "most"], [logical_not(call("less_equal", absolute(_x), symbol("most")))])


class TableCall(NamedTuple):
    """One call of the device table.

    name: the function; run(device, at): makes the call, where at(Ref) is the Array of a Ref and
    at.status(k) that of the k-th check; text: equal for two calls that run the same kernel.
    """

    name: str
    text: str
    run: Any


def call_of(item, check=0):
    """Return the TableCall of an item; check: its number, from 1, if it is a check."""
    if type(item) is Bundle:
        return _bundle(item)
    if type(item) is Loop and not is_alone(item):
        return _by_rows(item) if is_by_rows(item) else _by_elements(item)
    if type(item) is MatMul:
        return _product(item)
    instruction = item.instructions[0]
    return _CALLS[instruction.op](instruction, check)


# -- several instructions at once ----------------------------------------------------------------


def _program(loop):
    """Return (Program of a Loop's formulas, places of its inputs in order)."""
    loads, formulas = loop.used_loads(), [o.formula for o in loop.outputs]
    return Program([e.args[0] for e in loads.values()], formulas, loop.real), list(loads)


def _by_elements(loop):
    program, places = _program(loop)
    return _elementwise([Ref(v, loop.dims, s, o) for v, o, s in places], loop.writes, program)


def _by_rows(loop):
    program, places = _program(loop)
    columns = size_of(loop.dims[loop.rows :])
    n = loop.rows
    head = loop.dims[:n]
    shape = (*head, columns)

    def along(strides):
        """Return the stride along the columns, which collapse to one axis: the innermost one's."""
        kept = [s for d, s in zip(loop.dims[n:], strides[n:], strict=True) if d != 1]
        return kept[-1] if kept else 0

    def seen(value, offset, strides, is_row):
        """Return a Ref over (*head, columns), or over (*head, 1) if there is one value per row."""
        step = along(strides)
        if is_row:
            return Ref(value, (*head, 1), (*strides[:n], 0), offset)
        return Ref(value, shape, (*strides[:n], step), offset)

    inputs = [seen(v, o, s, not along(s)) for v, o, s in places]
    outputs, modes = [], tuple(o.mode for o in loop.outputs)
    for o in loop.outputs:
        if o.mode == "columns":
            outputs.append(Ref(o.value, (columns,), (along(o.strides),), o.offset))
        else:
            outputs.append(seen(o.value, o.offset, o.strides, o.mode == "row"))
    return _rows(inputs, outputs, program, modes, shape)


def _bundle(item):
    parts = [BundlePart(loop) for loop in item.loops]
    kernel, numbers, blocks = kernel_of(parts)
    refs = [r for part in parts for r in part.refs]

    def run(device, at):
        if device.has_kernels:
            device.launch(kernel, blocks, THREADS, (*map(at, refs), *numbers))
        else:
            for loop in item.loops:
                call_of(loop).run(device, at)

    return TableCall("bundle", f"bundle {kernel.signature} {kernel.text}", run)


# -- one instruction -----------------------------------------------------------------------------


def _product(item):
    a, b, out, accumulate = item.a, item.b, item.out, item.accumulate

    def run(device, at):
        device.matmul(at(a), at(b), at(out), None, accumulate)

    return TableCall("matmul", f"matmul {out.dtype} {accumulate}", run)


def _elementwise(inputs, outputs, program):
    def run(device, at):
        device.elementwise(program, tuple(map(at, inputs)), tuple(map(at, outputs)))

    return TableCall("elementwise", _text("elementwise", program, inputs, outputs), run)


def _rows(inputs, outputs, program, modes, shape):
    def run(device, at):
        device.rows(program, modes, tuple(map(at, inputs)), tuple(map(at, outputs)), shape)

    return TableCall("rows", _text(f"rows {modes}", program, inputs, outputs), run)


def _reduce(inputs, outputs, program, how, shape, axes):
    def run(device, at):
        device.reduce(program, how, tuple(map(at, inputs)), at(outputs[0]), shape, axes)

    return TableCall("reduce", _text(f"reduce {how}", program, inputs, outputs), run)


def _formulas(make):
    """Return a function that makes the TableCall of an instruction with formulas."""
    return lambda i, check: make(i.inputs, i.outputs, **i.attributes)


def _plain(name, *attributes):
    """Return a maker of calls whose arguments are the inputs, the output, then attributes."""

    def make(i, check):
        def run(device, at):
            values = (i.attributes[key] for key in attributes)
            getattr(device, name)(*map(at, i.inputs), at(i.outputs[0]), *values)

        return TableCall(name, f"{name} {i.outputs[0].dtype}", run)

    return make


def _random(i, check):
    a = i.attributes

    def run(device, at):
        out = at(i.outputs[0])
        device.random(out, a["kind"], at.state, a["counter"], a["low"], a["high"])

    return TableCall("random", f"random {a['kind']} {i.outputs[0].dtype}", run)


def _solve(i, check):
    def run(device, at):
        device.solve(*map(at, (*i.inputs, *i.outputs)))

    return TableCall("solve", "solve", run)


def _check(i, check):
    (x,), a = i.inputs, i.attributes
    if a["what"] == "within":
        program, numbers = OUTSIDE, (int(a["low"]), int(a["high"]))
    else:
        program, numbers = NOT_FINITE, (x.dtype.limits[1],)

    def run(device, at):
        out, axes = at.status(check), tuple(range(len(x.shape)))
        if x.size == 1:
            one = Ref(x.value, (), (), x.offset)
            device.elementwise(program, (at(one), *numbers), (out,))
        else:
            device.reduce(program, "any", (at(x), *numbers), out, x.shape, axes)

    return TableCall("check", _text("check", program, (x,), ()), run)


def _text(form, program, inputs, outputs):
    """Return what selects the kernel: the formulas, and dtype and axes of each operand."""
    kinds = [
        f"{x.dtype}{[0 if not s else 1 if s == 1 else 2 for s in x.strides]}"
        if isinstance(x, Ref)
        else type(x).__name__
        for x in (*inputs, *outputs)
    ]
    return f"{form}: {program.outputs} of {program.inputs} over {kinds} in {program.real}"


_CALLS = {
    "elementwise": _formulas(_elementwise),
    "rows": _formulas(_rows),
    "reduce": _formulas(_reduce),
    "gather": _plain("gather"),
    "scatter_add": _plain("scatter_add"),
    "put": _plain("put"),
    "cumsum": _plain("cumsum", "axis"),
    "arg_reduce": _plain("arg_reduce", "axis", "is_max"),
    "argsort": _plain("argsort", "descending"),
    "solve": _solve,
    "cholesky": _plain("cholesky"),
    "unfold": _plain("unfold", "window"),
    "fold": _plain("fold", "window"),
    "largest": _plain("largest", "window"),
    "random": _random,
    "check": _check,
}
