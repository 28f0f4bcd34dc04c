"""The methods behind operators, and the fast path of elementwise ops.

Contiguous operands of one shape and dtype take the fast path. Small eager operations spend their
time here, so calls are inlined. All other cases (other layouts, numbers, subclasses, observers)
take `op.apply`.
"""

import sys
from typing import Any

import numpy as np

from minigrad.array.array import Array
from minigrad.errors import DTypeError
from minigrad.memory.interrupts import uninterrupted_alone
from minigrad.ops.plan import like
from minigrad.tape.modes import NO_GRAD, SLOW, SPAN, note, state
from minigrad.tape.node import OURS, Node, next_serial
from minigrad.tape.variable import Variable

_new = object.__new__


def called_as(op, function):
    """The function, with the name and the docstring of an op."""
    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.__doc__
    return function


def _is_operand(b):
    return isinstance(b, (Variable, int, float, list, tuple)) or hasattr(b, "__array__")


def operator(op, is_reflected=False):
    """A binary operator that returns NotImplemented for operands of unknown types."""

    def method(a, b):
        if not _is_operand(b):
            return NotImplemented
        return op.apply(b, a) if is_reflected else op.apply(a, b)

    return method


def logical_operator(op, sign, is_reflected=False):
    """&, | or ~ of truth values; integers are refused because minigrad has no bitwise ops."""
    method = operator(op, is_reflected) if op.inputs[1:] else op.apply

    def checked(*operands):
        for x in operands:
            dtype = x.dtype if isinstance(x, Variable) else np.asarray(x).dtype
            if dtype.kind in "iuf":
                raise DTypeError(
                    f"{sign}: wanted truth values",
                    f"{dtype}",
                    f"compare first, (a > 0) {sign} (b > 0), or mg.{op.name}, "
                    "where a number counts as x != 0"
                    if op.inputs[1:]
                    else f"compare first: ~(a > 0), or mg.{op.name}(a)",
                )
        return method(*operands)

    return checked


def make_binary(op):
    """The operator method of a binary op."""
    plans, apply, entries = op.plans, op.apply, op.program.entry
    saves = {mask: op.plan(mask).saved_index for mask in (1, 2, 3)}
    savers = {mask: _saver(index) for mask, index in saves.items()}
    getframe = sys._getframe

    @uninterrupted_alone  # allocated memory gets its owner some lines later
    def binary(a, b):
        if type(b) is not Variable:
            return apply(a, b) if _is_operand(b) else NotImplemented
        path = state.path
        x, y = a.array, b.array
        shape, dtype = x.shape, x.dtype
        if (
            path == SLOW
            or not (x.is_flat and y.is_flat)
            or dtype is not y.dtype
            or shape != y.shape
        ):
            return apply(a, b)
        entry = entries[dtype.index]
        if entry is None:
            return apply(a, b)
        source = x.buffer
        home = source.home
        if home:
            buffer = home.pop()
            pool = home.pool
            buffer.owners, buffer.requested = 1, source.requested
            nbytes = buffer.nbytes
            pool.takes += 1
            pool.allocated_bytes += nbytes
            current = pool.current_bytes = pool.current_bytes + nbytes
            if current > pool.peak_bytes:
                pool.peak_bytes = current
            out = _new(Array)
            out.buffer, out.version, out.offset = buffer, 0, 0
            out.shape, out.strides, out.dtype = shape, x.strides, dtype
            out.size, out.is_flat = x.size, True
        else:
            out = like(x)
            buffer = out.buffer
        entry(source.address, y.buffer.address, buffer.address, x.size)
        result = _new(Variable)
        result.array = out
        if path == NO_GRAD:
            result._requires_grad, result.node = False, None
            return result
        if a._requires_grad:
            if b._requires_grad:
                mask, edges = 3, (a.node or a, b.node or b)
            else:
                mask, edges = 1, (a.node or a, None)
        elif b._requires_grad:
            mask, edges = 2, (None, b.node or b)
        else:
            result._requires_grad, result.node = False, None
            return result
        node = _new(Node)
        node.plan, node.edges, node.wanted, node.attributes, node.hooks = (
            plans[mask],
            edges,
            None,
            (),
            None,
        )
        node.kept, node.versions = savers[mask](x, y, out)
        node.serial = next_serial()
        frame: Any = getframe(1)
        while OURS[frame.f_code.co_filename]:
            frame = frame.f_back
        node.code, node.instruction = frame.f_code, frame.f_lasti
        result._requires_grad, result.node = True, node
        if path == SPAN:
            note(node)
        return result

    return called_as(op, binary)


def _saver(index):
    """A function (x, y, out) -> (saved values, their versions), generated for one choice."""
    names = [("x", "y", "out")[k] for k in index]
    kept = "".join(f"{n}, " for n in names)
    versions = "".join(f"{n}.version, " for n in names)
    return eval(f"lambda x, y, out: (({kept}), ({versions}))")


def make_unary(op):
    """The method of a unary op."""
    apply, entries, plan = op.apply, op.program.entry, op.plan(1)
    index = [(-1 if k < 0 else 0) for k in plan.saved_index]
    saver = _saver([2 if k < 0 else 0 for k in index])
    getframe = sys._getframe

    def unary(a):
        try:
            x = a.array
        except AttributeError:  # numbers and data
            return apply(a)
        path, dtype = state.path, x.dtype
        entry = entries[dtype.index]
        if path == SLOW or not x.is_flat or entry is None or not dtype.is_float:
            return apply(a)
        out = like(x)
        entry(x.buffer.address, out.buffer.address, x.size)
        result = _new(Variable)
        result.array = out
        if path == NO_GRAD or not a._requires_grad:
            result._requires_grad, result.node = False, None
            return result
        node = _new(Node)
        node.plan, node.edges, node.wanted, node.attributes, node.hooks = (
            plan, (a.node or a,), None, (), None,
        )  # fmt: skip
        node.kept, node.versions = saver(x, None, out)
        node.serial = next_serial()
        frame: Any = getframe(1)
        while OURS[frame.f_code.co_filename]:
            frame = frame.f_back
        node.code, node.instruction = frame.f_code, frame.f_lasti
        result._requires_grad, result.node = True, node
        if path == SPAN:
            note(node)
        return result

    return called_as(op, unary)
