"""The methods behind operators, and the fast path of elementwise ops.

Contiguous operands of one shape and dtype, and numbers, take the fast path, unless they are so big
that threads share the work. Small eager operations spend their
time here, so calls are inlined. All other cases (other layouts, numbers, subclasses, observers)
take `op.apply`.
"""

import inspect
import sys
from typing import Any

import numpy as np

from minigrad.arguments import short
from minigrad.array.array import Array
from minigrad.devices.backend import _active
from minigrad.devices.threads import SPLIT
from minigrad.errors import ArgumentTypeError, DTypeError
from minigrad.hints import ADVICE
from minigrad.memory.interrupts import uninterrupted_alone
from minigrad.ops.plan import NumberPlan, like
from minigrad.tape.modes import NO_GRAD, SLOW, SPAN, note, state
from minigrad.tape.node import OURS, Node, next_serial
from minigrad.tape.variable import Variable

_new = object.__new__
MISSING: Any = object()  # in the place of an operand, so that a call without one is explained


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


def logical_operator(op, sign, fix, is_reflected=False):
    """&, |, ^ or ~ of truth values; integers are refused because minigrad has no bitwise ops."""
    method = operator(op, is_reflected) if op.inputs[1:] else op.apply

    def checked(*operands):
        for x in operands:
            dtype = x.dtype if isinstance(x, Variable) else np.asarray(x).dtype
            if dtype.kind in "iuf":
                raise DTypeError(f"{sign}: wanted truth values", f"{dtype}", fix)
        return method(*operands)

    return checked


def refused_operator(wanted, fix):
    """An operator that Variables do not have."""

    def method(*operands):
        raise ArgumentTypeError(wanted, ", ".join(short(x) for x in operands), fix)

    return method


def make_binary(op):
    """The operator method of a binary op."""
    plans, apply, entries = op.plans, op.apply, op.program.entry
    saves = {mask: op.plan(mask).saved_index for mask in (1, 2, 3)}
    savers = {mask: _saver(index) for mask, index in saves.items()}
    with_number, getframe = make_numbered(op), sys._getframe

    @uninterrupted_alone  # allocated memory gets its owner some lines later
    def binary(a, b):
        if type(b) is not Variable:
            if type(b) is float or (type(b) is int and -(2**53) <= b <= 2**53):
                return with_number(a, b)
            return apply(a, b) if _is_operand(b) else NotImplemented
        path = state.path
        x, y = a.array, b.array
        shape, dtype = x.shape, x.dtype
        if (
            path == SLOW
            or not (x.is_flat and y.is_flat)
            or dtype is not y.dtype
            or shape != y.shape
            or x.size >= SPLIT
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


def make_reflected(op):
    """The reflected operator method of a commutative op: a number comes first."""
    with_number, general = make_numbered(op, is_reflected=True), operator(op, is_reflected=True)

    def reflected(a, b):
        if type(b) is float or (type(b) is int and -(2**53) <= b <= 2**53):
            return with_number(a, b)
        return general(a, b)

    return called_as(op, reflected)


def make_numbered(op, is_reflected=False):
    """A function (a, b) for a Variable and a number that float dtypes hold.

    is_reflected: the number is the first operand of a commutative op.
    """
    entries, plan = op.program.entry_number, NumberPlan(op, 2 if is_reflected else 1)
    keeps_it, apply, getframe = bool(plan.saved_names), op.apply, sys._getframe
    assert plan.saved_names in ((), (plan.number,)), f"{op.name}: the gradient needs an Array"

    def with_number(a, b):
        x = a.array
        entry = entries[x.dtype.index]
        if (
            entry is None or not x.is_flat or x.size >= SPLIT or state.path == SLOW
            or _active.device is not None
        ):  # fmt: skip
            return apply(b, a) if is_reflected else apply(a, b)
        number = float(b)
        out = like(x)
        entry(x.buffer.address, number, out.buffer.address, x.size)
        result = _new(Variable)
        result.array = out
        if not a._requires_grad or not state.recording:
            result._requires_grad, result.node = False, None
            return result
        node = _new(Node)
        edge, wanted = a.node or a, (x.shape, x.dtype)
        node.edges, node.wanted = (
            ((None, edge), (None, wanted)) if is_reflected else ((edge, None), (wanted, None))
        )
        node.plan, node.attributes, node.hooks = plan, (), None
        node.kept, node.versions = ((number,), (None,)) if keeps_it else ((), ())
        node.serial = next_serial()
        frame: Any = getframe(1)
        while OURS[frame.f_code.co_filename]:
            frame = frame.f_back
        node.code, node.instruction = frame.f_code, frame.f_lasti
        result._requires_grad, result.node = True, node
        if state.path == SPAN:
            note(node)
        return result

    return with_number


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

    def unary(a=MISSING, more=None):
        if more is not None:
            raise _misfit(op, f"{(a, more)!r:.60}")
        try:
            x = a.array
            dtype = x.dtype
            entry = entries[dtype.index]
        except AttributeError:  # numbers and data; another library's may have an array, too
            if a is MISSING:
                raise _misfit(op, "nothing") from None
            return apply(a)
        path = state.path
        if (
            path == SLOW or not x.is_flat or entry is None or not dtype.is_float
            or x.size >= SPLIT
        ):  # fmt: skip
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

    unary.__signature__ = inspect.Signature(
        [inspect.Parameter(op.inputs[0], inspect.Parameter.POSITIONAL_ONLY)]
    )
    return called_as(op, unary)


def _misfit(op, got):
    fix = ADVICE.get(op.name, f"mg.{op.name}(x)")
    return ArgumentTypeError(f"{op.name}: wanted one operand, x", got, fix)
