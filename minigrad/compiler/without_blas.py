"""A step where BLAS has no symbol: the same plan as a list of Python calls, products by NumPy.

The kernels between two products are one run of the generated code, over its part of the list.
"""

import ctypes

import numpy as np

from minigrad.compiler.invocation import Address


class PythonStep:
    """step(t, T, table_at) over `pieces`: ('code', from, to) and ('product', item).

    place: Address -> (index in the table, bytes from there).
    """

    def __init__(self, function, code_at, pieces, place, owner):
        self.function, self.code_at = function, code_at
        self.pieces = []
        for what, *rest in pieces:
            if what == "product":
                self.pieces.append(_Product(rest[0], place, owner))
            elif rest[0] < rest[1]:
                self.pieces.append(tuple(rest))

    def __call__(self, t, T, table_at):
        for piece in self.pieces:
            if isinstance(piece, _Product):
                piece.run(table_at)
                continue
            status = self.function(t, T, table_at, self.code_at, *piece)
            if status:
                return status
        return 0


class _Product:
    """One matrix product over addresses."""

    def __init__(self, item, place, owner):
        self.accumulate = item.accumulate
        self.operands = []
        for r in (item.a, item.b, item.out):
            size = r.dtype.itemsize
            slot, at = place(Address(owner.get(r.value, r.value), r.offset * size))
            strides = tuple(s * size for s in r.strides)
            self.operands.append((slot, at, r.shape, strides, r.dtype.numpy.str))

    def run(self, table_at):
        """out = a @ b, or out += a @ b, summed over batch axes of stride 0 in out."""
        a, b, out = (_array(table_at, *x) for x in self.operands)
        if not self.accumulate:
            np.matmul(a, b, out=out)
            return
        products = np.matmul(a, b).reshape(-1, *out.shape[-2:])
        for index, product in zip(np.ndindex(*out.shape[:-2]), products, strict=True):
            out[index] += product


class _Memory:
    """What NumPy asks of memory that it does not own."""

    def __init__(self, address, shape, strides, kind):
        self.__array_interface__ = {
            "version": 3, "shape": shape, "strides": strides, "typestr": kind,
            "data": (address, False),
        }  # fmt: skip


def _array(table_at, slot, at, shape, strides, kind):
    base = ctypes.c_int64.from_address(table_at + 8 * slot).value
    return np.asarray(_Memory(base + at, shape, strides, kind))
