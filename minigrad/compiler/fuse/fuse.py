"""Fusion: instructions become Loops, matrix products and calls, as few as possible.

Instructions are processed in order. One that computes formulas joins the nearest earlier Loop that
loads or computes something it reads, if it can move up that far: no item in between writes what the
instruction reads, or touches what it writes.
"""

from minigrad.compiler.fuse.epilogue import attach
from minigrad.compiler.fuse.fused_loop import Loop
from minigrad.compiler.fuse.hoist import hoist
from minigrad.compiler.fuse.piece import copy_of, piece_of
from minigrad.compiler.fuse.recompute import recompute
from minigrad.compiler.fuse.skinny import MOST, as_formula
from minigrad.compiler.program.items import MatMul, Opaque, conflict
from minigrad.compiler.program.program import TEMPORARY, Instruction, Value, whole
from minigrad.devices.gemm_plan import readable

REACH = 48  # how many items an instruction may move up


def fuse(recording, has_blas=True):
    """Fuse a recording; return its items in an order in which they can run."""
    items = items_of(recording, _place_product)
    recompute(items)
    items = hoist(without_unread(items, recording.results))
    return attach(items) if has_blas else items


def items_of(recording, place_product, limit=None):
    """Return a recording's items without unread stores. place_product(i, items) adds a product."""
    items = []
    for i in checks_first(recording.instructions):
        if i.op == "matmul" and i.inputs[0].shape[-1]:
            place_product(i, items)
            continue
        if i.op == "matmul":  # sums over no elements
            if i.attributes.get("accumulate"):
                continue
            i = copy_of(0.0 if i.outputs[0].dtype.is_float else 0, i.outputs[0])
        piece = piece_of(i)
        if piece is None:
            items.append(Opaque(i))
        elif piece.size:
            place(piece, items, limit)
    return without_unread(items, recording.results)


def place(piece, items, limit=None):
    """Add a piece to the nearest Loop that accepts it, or as a new Loop; limit: see Loop."""
    alone = Loop(piece, limit)
    for item in items[: -REACH - 1 : -1]:
        if type(item) is Loop and item.add(piece, connected=True):
            return
        if conflict(item, alone):
            break
    items.append(alone)


def _place_product(i, items):
    i = along_memory(i, items)
    piece = as_formula(i)
    if piece is not None:
        if piece.size:
            place(piece, items)
        return
    out, accumulate = i.outputs[0], bool(i.attributes.get("accumulate"))
    if not out.size:
        return
    a, b = (_for_blas(x, items) for x in i.inputs)
    if readable(out.shape, out.strides) and out.strides[-1] == 1:
        items.append(MatMul(i, a, b, out, accumulate))
        return
    target = fresh(out)
    if accumulate:
        place(piece_of(copy_of(out, target)), items)
    items.append(MatMul(i, a, b, target, accumulate))
    place(piece_of(copy_of(target, out)), items)


def fresh(ref):
    """Return a new contiguous temporary with the shape and dtype of a Ref."""
    return whole(Value(TEMPORARY, ref.dtype, ref.size, name="copy"), ref.shape)


def along_memory(i, items):
    """Copy b of a product with a small inner dimension, unless its rows are contiguous.

    b is read once per row of the result: gathering it each time would cost more.
    """
    a, b = i.inputs
    if as_formula(i) is None or a.shape[1] > MOST or a.shape[0] < 8 or b.strides[1] == 1:
        return i
    return Instruction(i.op, (a, _copied(b, items)), i.outputs, i.attributes, i.name, i.place)


def _for_blas(x, items):
    """Return an operand that BLAS can read: x itself, or a copy."""
    return x if readable(x.shape, x.strides) else _copied(x, items)


def _copied(x, items):
    """Add a contiguous copy of an operand; return its Ref."""
    copy = fresh(x)
    place(piece_of(copy_of(x, copy)), items)
    return copy


def without_unread(items, results):
    """Remove what Loops store in temporaries that are never read later; simplify the rest."""
    live, kept = {r.value for r in results}, []
    for item in reversed(items):
        if type(item) is Loop:
            outputs = [o for o in item.outputs if not o.value.is_temporary or o.value in live]
            if not outputs:
                continue
            item.keep(outputs)
            item.simplify()
        live |= {r.value for r in item.reads}
        kept.append(item)
    return kept[::-1]


def checks_first(instructions):
    """Move checks of values that exist at the start to the front, before any change."""
    written, early, rest = set(), [], []
    for i in instructions:
        is_check = i.stops and not i.outputs
        if is_check and not any(r.value.is_temporary or r.value in written for r in i.reads):
            early.append(i)
        else:
            rest.append(i)
        written |= {r.value for r in i.writes}
    return early + rest
