"""Copy elimination: results are written directly to their target, or read where they lie."""

from minigrad.array.layout import expand_strides
from minigrad.compiler.passes.helpers.algebra import is_copy
from minigrad.compiler.passes.helpers.draft import Draft, within
from minigrad.compiler.passes.helpers.regions import shows_same, through
from minigrad.compiler.program.program import Ref
from minigrad.devices.gemm_plan import readable

FORMULAS = {"elementwise", "rows", "reduce"}


def without_copies(recording):
    """Remove copies between memory of one dtype, in one of two ways.

    `t = x`: readers of t read x, if x is not written while t is needed. `slot = t`: writers of t
    write directly to the slot, if its old content is no longer needed. They must accept the other
    layout: formulas always do, BLAS if one stride is 1.

    >>> from minigrad.compiler.program.printing import show
    >>> from minigrad.compiler.program.sketch import Sketch, transposed
    >>> s = Sketch()
    >>> x, slot = s.argument((3, 4)), s.captured("slot", (4, 4))
    >>> turned = s.copy(transposed(x))
    >>> product = s.matmul(turned, x)
    >>> s.copy(product, out=slot)
    >>> print(show(s.recording()))
    %0 float32[4, 3] = copy x0{[4, 3] strides [1, 4]}
    %1 float32[4, 4] = matmul %0 x0
    slot := copy %1
    >>> print(show(without_copies(s.recording())))
    slot := matmul x0{[4, 3] strides [1, 4]} x0
    """
    draft = Draft(recording)
    for k in range(len(draft.instructions)):
        i = draft.instructions[k]
        if i is None or not is_copy(i) or not isinstance(i.inputs[0], Ref):
            continue
        source, target = i.inputs[0], i.outputs[0]
        if source.dtype is not target.dtype or not target.size:
            continue
        if shows_same(source, target):
            draft.replace(k)
        elif source.value is not target.value:
            seen = Ref(
                source.value,
                target.shape,
                expand_strides(source.shape, source.strides, target.shape),
                source.offset,
            )
            if not _read_source(draft, k, seen, target):
                _write_target(draft, k, seen, target)
    return draft.finish()


def _read_source(draft, k, source, target):
    """Make readers of the target of copy k read the source; return whether that worked."""
    t, readers = target.value, draft.reads_of(target.value)
    if not t.is_temporary or not target.covers() or t in draft.results or not readers:
        return False
    if len(draft.writes_of(t)) > 1:
        return False
    far = 0  # strided reads
    for p, r in readers:
        i, moved = draft.instructions[p], through(r, target, source)
        if moved is None or not _takes(i, r, moved):
            return False
        far += i.op != "matmul" and bool(moved.strides) and _goes_far(moved)
    if far > 1:
        return False  # one copy is cheaper
    last = readers[-1][0]
    for p, w in within(draft.writes_of(source.value), k + 1, last):
        if w.overlaps(source) and not (p == last and _is_in_place(draft, p, w, target, source)):
            return False
    draft.replace(k)
    draft.move(t, lambda r: through(r, target, source))
    return True


def _write_target(draft, k, source, target):
    """Make writers of the source of copy k write the target; return whether that worked."""
    t, slot = source.value, target.value
    writers, readers = draft.writes_of(t), draft.reads_of(t)
    if not t.is_temporary or not source.covers() or t in draft.results or not writers:
        return False
    first, last = writers[0][0], max(k, readers[-1][0])
    if writers[-1][0] > k:
        return False
    if not slot.is_temporary and draft.stops_within(first, k):
        return False  # what exists outside the step must not be written before a check
    for p, r in (*writers, *readers):
        moved = through(r, source, target)
        if p != k and (moved is None or not _takes(draft.instructions[p], r, moved)):
            return False
    for p, w in within(draft.writes_of(slot), first, last):
        if p != k and w.overlaps(target):
            return False
    for p, r in within(draft.reads_of(slot), first, k - 1):
        if r.overlaps(target) and not (
            p == first and _reads_own_place(draft, p, r, writers[0][1], source, target)
        ):
            return False
    draft.replace(k)
    draft.move(t, lambda r: through(r, source, target))
    return True


def _is_in_place(draft, p, written, target, source):
    """Return whether the instruction at p reads the copied elements only where it writes them."""
    i = draft.instructions[p]
    return i.op == "elementwise" and all(
        shows_same(through(r, target, source), written) for r in i.reads if r.value is target.value
    )


def _reads_own_place(draft, p, read, written, source, target):
    """Return whether the instruction at p reads the target only where it would write it."""
    return draft.instructions[p].op == "elementwise" and shows_same(
        read, through(written, source, target)
    )


def _takes(i, ref, other):
    """Return whether an instruction accepts another layout of the same shape."""
    if other.strides == ref.strides or i.op in FORMULAS:
        return True
    if i.op != "matmul":
        return False
    if ref in i.outputs:
        return other.strides[-1] == 1 and readable(other.shape, other.strides)
    return readable(other.shape, other.strides)


def _goes_far(ref):
    """Return whether neighbours along the last axis lie apart in memory."""
    return ref.strides[-1] not in (0, 1) and ref.shape[-1] > 1
