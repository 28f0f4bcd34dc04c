"""Measures a program's memory traffic: bytes read and written, and the most alive at once."""

from minigrad.array.layout import size_of
from minigrad.compiler.program.items import MatMul


def distinct(ref):
    """Return the bytes of a Ref's distinct elements: broadcast ones count once.

    >>> from minigrad.compiler.program.sketch import Sketch
    >>> from minigrad.compiler.program.program import Ref
    >>> row = Sketch().argument((4,))
    >>> distinct(row), distinct(Ref(row.value, (8, 4), (0, 1)))
    (16, 16)
    """
    moving = (n for n, s in zip(ref.shape, ref.strides, strict=True) if s or not n)
    return size_of(tuple(moving)) * ref.dtype.itemsize


def instruction_bytes(i):
    """Return the bytes (read, written) by one instruction on its own."""
    return _bytes(i.op, i.reads, i.writes)


def item_bytes(item):
    """Return the bytes (read, written) by one call of a plan, without values in registers."""
    reads = item.reads
    if type(item) is MatMul and item.epilogue:  # the epilogue reads the product in the cache
        product = item.out.value
        reads = [r for r in reads if r.value is not product]
        reads += [item.out] if item.accumulate else []
    op = item.instruction.op if hasattr(item, "instruction") else "loop"
    return _bytes(op, reads, item.writes)


def _bytes(op, reads, writes):
    if op == "gather":  # reads only what it picks
        picked = sum(map(distinct, writes))
        return picked + sum(map(distinct, reads[1:])), picked
    if op in ("scatter_add", "put"):  # touches only what it writes
        given = distinct(reads[0])
        return given * (1 + (op == "scatter_add")) + distinct(reads[1]), given
    return sum(map(distinct, set(reads))), sum(map(distinct, set(writes)))


def lives_of(regions, outside=()):
    """Return {temporary not in `outside`: (first, last) region that touches it}."""
    lifetimes = {}
    for t, region in enumerate(regions):
        for call in region:
            for r in (*call.reads, *call.writes):
                if r.value.is_temporary and r.value not in outside:
                    lifetimes[r.value] = lifetimes.get(r.value, (t, t))[0], t
    return lifetimes


def lives(recording):
    """Return {temporary Value: (first, last) instruction}; results live until the end.

    As in eager execution, a Value is created by the first instruction that writes it, and freed
    after the last that touches it.
    """
    lifetimes = lives_of([i] for i in recording.instructions)
    end = max(0, len(recording.instructions) - 1)
    for r in recording.results:
        if r.value in lifetimes:
            lifetimes[r.value] = lifetimes[r.value][0], end
    return lifetimes


def peak(lifetimes):
    """Return (bytes, when): the most bytes alive at once, from {Value: (first, last)}."""
    changes = {}
    for value, (first, last) in lifetimes.items():
        changes[first] = changes.get(first, 0) + value.nbytes
        changes[last + 1] = changes.get(last + 1, 0) - value.nbytes
    now, most, when = 0, 0, 0
    for t in sorted(changes):
        now += changes[t]
        if now > most:
            most, when = now, t
    return most, when
