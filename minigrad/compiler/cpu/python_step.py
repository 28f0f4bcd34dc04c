"""Runs a step that needs Python: stretches of the generated code, with Python in between.

Python computes products if there is no BLAS symbol, and calls custom Functions that need numbers.
The kernels between two of these are one run of the generated code over part of the list.
"""

import ctypes

import numpy as np

from minigrad.compiler.cpu.invocation import Address


class PythonStep:
    """step(t, T, table_at) over `pieces`: ('code', from, to), ('product' or 'callback', item).

    place: Address -> (index in the table, bytes from there). checks: the plan's, which number the
    callbacks.
    """

    def __init__(self, function, code_at, pieces, place, owner, checks=()):
        self.runs = []  # each takes (t, T, table_at) and returns 0, or the number of a failed check
        for what, *rest in pieces:
            if what == "product":
                self.runs.append(_Product(rest[0], place, owner).run)
            elif what == "callback":
                number = 1 + next(k for k, i in enumerate(checks) if i is rest[0].instruction)
                self.runs.append(_Callback(rest[0].instruction, number, place, owner).run)
            elif rest[0] < rest[1]:
                more = code_at, *rest
                self.runs.append(lambda *where, more=more: function(*where, *more))

    def __call__(self, t, T, table_at):
        for run in self.runs:
            status = run(t, T, table_at)
            if status:
                return status
        return 0


class _Product:
    """One matrix product over addresses."""

    def __init__(self, item, place, owner):
        self.accumulate = item.accumulate
        self.operands = [_operand(r, place, owner) for r in (item.a, item.b, item.out)]

    def run(self, t, T, table_at):
        """Compute out = a @ b, or out += a @ b, summed over batch axes of stride 0 in out."""
        a, b, out = (_array(table_at, *x) for x in self.operands)
        if not self.accumulate:
            np.matmul(a, b, out=out)
            return 0
        products = np.matmul(a, b).reshape(-1, *out.shape[-2:])
        for index, product in zip(np.ndindex(*out.shape[:-2]), products, strict=True):
            out[index] += product
        return 0


class _Callback:
    """One call of a custom Function. An exception ends the step, as a failed check does."""

    def __init__(self, instruction, number, place, owner):
        self.call, self.number = instruction.attributes["call"], number
        self.dtypes = [r.value.dtype for r in (*instruction.inputs, *instruction.outputs)]
        self.inputs, self.outputs = (
            [_operand(r, place, owner) for r in refs]
            for refs in (instruction.inputs, instruction.outputs)
        )

    def run(self, t, T, table_at):
        """Call the Function; return 0, or the number of the check if it raised."""
        inputs, outputs = ([_array(table_at, *x) for x in xs] for xs in (self.inputs, self.outputs))
        try:
            self.call.run(inputs, outputs, self.dtypes)
        except BaseException as error:  # even Ctrl-C: the step's caller raises it
            self.call.raised = error
            return self.number
        return 0


def _operand(r, place, owner):
    size = r.dtype.itemsize
    slot, at = place(Address(owner.get(r.value, r.value), r.offset * size))
    return slot, at, r.shape, tuple(s * size for s in r.strides), r.dtype.memory.str


class _Memory:
    """Memory that NumPy does not own, with NumPy's array interface."""

    def __init__(self, address, shape, strides, kind):
        self.__array_interface__ = {
            "version": 3, "shape": shape, "strides": strides, "typestr": kind,
            "data": (address, False),
        }  # fmt: skip


def _array(table_at, slot, at, shape, strides, kind):
    base = ctypes.c_int64.from_address(table_at + 8 * slot).value
    return np.asarray(_Memory(base + at, shape, strides, kind))
