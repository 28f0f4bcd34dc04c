"""Turns products with one small dimension into formulas that fuse with their neighbours.

With a dimension of at most MOST, a product is memory-bound. BLAS moves more memory than needed: it
writes the result before the bias can be added.
"""

import functools
import operator

from minigrad.compiler.fuse.piece import Piece, PieceOutput
from minigrad.compiler.program.domain import seen_as, without_ones
from minigrad.compiler.program.program import Ref
from minigrad.formulas.expression import Expression, symbol

MOST = 8
WORTH = 1 << 16  # minimum elements of the largest matrix for this to pay off


def as_formula(instruction):
    """Return the Piece of a product of ints or with a small dimension; None leaves it to BLAS."""
    a, b, out = *instruction.inputs, instruction.outputs[0]
    if not out.dtype.is_float:
        return _of_integers(instruction, a, b, out)
    if instruction.attributes.get("accumulate") or len(out.shape) != 2:
        return None
    (m, k), n = a.shape, b.shape[1]
    if min(m, k, n) > MOST or max(m * n, m * k, k * n) < WORTH or 0 in (m, k, n):
        return None
    if n <= MOST < k and a.strides[1] != 1:  # walk along memory: out' = b' a'
        a, b, out, m, n = turned(b), turned(a), turned(out), n, m
    if k <= MOST:
        return _inner(instruction, a, b, out, m, k, n)
    if n <= MOST:
        return _few_columns(instruction, a, b, out, k, n)
    return _few_rows(instruction, a, b, out, m, k)


def _of_integers(instruction, a, b, out):
    """Return the Piece of an integer product, which BLAS lacks: a row sum per element."""
    shape = (*out.shape, a.shape[-1])
    k_a, k_b = a.strides[-1], b.strides[-2]
    left = Ref(a.value, (*a.shape[:-1], 1, a.shape[-1]), (*a.strides[:-1], 0, k_a), a.offset)
    right = Ref(
        b.value,
        (*b.shape[:-2], 1, b.shape[-1], b.shape[-2]),
        (*b.strides[:-2], 0, b.strides[-1], k_b),
        b.offset,
    )
    total = Expression("row_sum", symbol("a") * symbol("b"))
    dims = tuple(n for n in shape if n != 1)
    strides = seen_as(Ref(out.value, (*out.shape, 1), (*out.strides, 0)), shape)
    output = PieceOutput(total, out.value, out.offset, strides, "row")
    inputs = {"a": (left, seen_as(left, shape)), "b": (right, seen_as(right, shape))}
    rows = len(dims) - (shape[-1] != 1)
    return Piece(dims, rows, inputs, [output], instruction)


def turned(r):
    """Return the transpose of a two-dimensional Ref."""
    return Ref(r.value, r.shape[::-1], r.strides[::-1], r.offset)


def _piece(instruction, shape, rows, inputs, outputs):
    """Return a Piece over a 2-d shape, without axes of size 1."""
    dims, _ = without_ones(shape, (0, 0))

    def kept(strides):
        return tuple(s for n, s in zip(shape, strides, strict=True) if n != 1)

    inputs = {name: (ref, kept(strides)) for name, (ref, strides) in inputs.items()}
    outputs = [o._replace(strides=kept(o.strides)) for o in outputs]
    if rows is not None:
        rows = int(shape[0] != 1)
    return Piece(dims, rows, inputs, outputs, instruction)


def _at(ref, offset):
    return Ref(ref.value, ref.shape, ref.strides, ref.offset + offset)


def _inner(instruction, a, b, out, m, k, n):
    """Return the elementwise Piece of out[i, j] = a[i, 0] b[0, j] + ..."""
    inputs, terms = {}, []
    for c in range(k):
        inputs[f"a{c}"] = _at(a, c * a.strides[1]), (a.strides[0], 0)
        inputs[f"b{c}"] = _at(b, c * b.strides[0]), (0, b.strides[1])
        terms.append(symbol(f"a{c}") * symbol(f"b{c}"))
    total = functools.reduce(operator.add, terms)
    outputs = [PieceOutput(total, out.value, out.offset, out.strides, "store")]
    return _piece(instruction, (m, n), None, inputs, outputs)


def _few_columns(instruction, a, b, out, k, n):
    """Return the Piece of out[i, c] = sum over j of a[i, j] b[j, c]: n row sums."""
    inputs, outputs = {"a": (a, a.strides)}, []
    for c in range(n):
        inputs[f"b{c}"] = _at(b, c * b.strides[1]), (0, b.strides[0])
        total = Expression("row_sum", symbol("a") * symbol(f"b{c}"))
        place = out.offset + c * out.strides[1]
        outputs.append(PieceOutput(total, out.value, place, (out.strides[0], 0), "row"))
    return _piece(instruction, a.shape, 1, inputs, outputs)


def _few_rows(instruction, a, b, out, m, k):
    """Return the Piece of out[c, j] = sum over i of a[c, i] b[i, j]: m column sums."""
    inputs, outputs = {"b": (b, b.strides)}, []
    for c in range(m):
        inputs[f"a{c}"] = _at(a, c * a.strides[0]), (a.strides[1], 0)
        place = out.offset + c * out.strides[0]
        term = symbol(f"a{c}") * symbol("b")
        outputs.append(PieceOutput(term, out.value, place, (0, out.strides[1]), "columns"))
    return _piece(instruction, b.shape, 1, inputs, outputs)
