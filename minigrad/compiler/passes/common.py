"""Common subexpression elimination: equal instructions are computed once."""

from minigrad.compiler.passes.helpers.draft import within
from minigrad.compiler.program.program import Instruction, Recording, Ref

WITH_EFFECTS = {"random", "callback"}  # equal ones are not merged
OF_ERRORS = {"error"}  # attributes that say how an instruction fails, not what it computes


def share_common(recording):
    """Make readers of a temporary read an equal one that was computed earlier.

    Equal instructions have the same op and attributes (formulas and the names of their inputs), and
    read the same elements, which are not written in between. Their outputs are whole temporaries
    that no other instruction writes. Equal results are both computed, because each has its own
    memory. Equal checks become one.

    >>> from minigrad.compiler.program.printing import show
    >>> from minigrad.compiler.program.sketch import Sketch
    >>> s = Sketch()
    >>> x, w = s.argument((3,)), s.captured("w", (3,))
    >>> y = s.add(s.mul(x, w), s.mul(x, w))
    >>> s.copy(y, out=w)
    >>> z = s.mul(x, w)
    >>> print(show(s.recording(y, z)))
    %0 float32[3] = mul x0 w
    %1 float32[3] = mul x0 w
    %2 float32[3] = add %0 %1
    w := copy %2
    %3 float32[3] = mul x0 w
    return %2, %3
    >>> print(show(share_common(s.recording(y, z))))
    %0 float32[3] = mul x0 w
    %1 float32[3] = add %0 %0
    w := copy %1
    %2 float32[3] = mul x0 w
    return %1, %2
    """
    writes: dict = {}  # Value -> [(position, Ref)]
    for k, i in enumerate(recording.instructions):
        for r in i.outputs:
            writes.setdefault(r.value, []).append((k, r))
    results = {r.value for r in recording.results}
    first: dict = {}  # (op, inputs) -> [(position, instruction)], all different
    shared: dict = {}  # Value -> the Value that replaces it
    kept = []

    def moved(ref: Ref):
        value = shared.get(ref.value)
        return ref if value is None else ref._replace(value=value)

    for k, i in enumerate(recording.instructions):
        if shared and any(isinstance(x, Ref) and x.value in shared for x in i.inputs):
            i = i.with_refs(moved)
        if _is_sharable(i, writes):
            same = first.setdefault((i.op, i.inputs), [])
            n = next((n for n, (_, other) in enumerate(same) if _is_equal(i, other)), None)
            if n is None:
                same.append((k, i))
            elif _is_written(i, same[n][0], k, writes):
                same[n] = k, i
            elif _may_share(i, same[n][1], results):
                for old, new in zip(i.outputs, same[n][1].outputs, strict=True):
                    shared[old.value] = new.value
                    if old.value in results:
                        results.add(new.value)
                continue
        kept.append(i)
    if len(kept) == len(recording.instructions):
        return recording
    returned = [moved(r) for r in recording.results]
    return Recording(kept, recording.arguments, returned, recording.donated)


def _is_sharable(i: Instruction, writes):
    """Return whether its outputs are whole temporaries that nothing else writes."""
    if i.op in WITH_EFFECTS:
        return False
    for r in i.outputs:
        value = r.value
        if not value.is_temporary or len(writes[value]) > 1 or not r.covers():
            return False
    return True


def _is_equal(a: Instruction, b: Instruction):
    """Return whether two instructions do the same. Their inputs compare equal, as 1 == 1.0."""
    mine, other = a.attributes, b.attributes
    for name, x in mine.items():
        if name == "program":
            if not x.is_same(other[name]):
                return False
        elif name not in OF_ERRORS and x != other[name]:
            return False
    numbers = zip(a.inputs, b.inputs, strict=True)
    if any(not isinstance(x, Ref) and repr(x) != repr(y) for x, y in numbers):
        return False
    outputs = zip(a.outputs, b.outputs, strict=True)
    return all(x.dtype is y.dtype and x.shape == y.shape for x, y in outputs)


def _is_written(i, first, second, writes):
    """Return whether an input of an instruction is written between two positions."""
    for r in i.inputs:
        if isinstance(r, Ref):
            written = writes.get(r.value)
            if written is not None and written[-1][0] > first:
                for _, w in within(written, first + 1, second - 1):
                    if r.overlaps(w):
                        return True
    return False


def _may_share(i, before, results):
    """Return whether sharing merges no two results into one piece of memory."""
    return not any(
        a.value in results and b.value in results
        for a, b in zip(i.outputs, before.outputs, strict=True)
    )
