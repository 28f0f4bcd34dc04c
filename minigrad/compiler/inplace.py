"""Which temporaries take over the memory of one that is read for the last time."""

from minigrad.compiler.loop import Loop
from minigrad.compiler.program import Ref


def share_memory(items, results):
    """{Value: the Value whose memory it takes over}, and why others do not: [(Value, Value, why)].

    A Loop may write over what it reads if it does so element for element, and if nobody reads the
    old value afterwards.
    """
    kept = {r.value for r in results}
    last, first = {}, {}
    for t, item in enumerate(items):
        for r in item.reads:
            last[r.value] = t
        for r in item.writes:
            first.setdefault(r.value, t)
            last[r.value] = max(last.get(r.value, t), t)
    owner, refused = {}, []
    for t, item in enumerate(items):
        if type(item) is not Loop:
            continue
        taken = set()
        for o in item.outputs:
            if o.mode != "store" or not o.value.is_temporary or o.value in kept:
                continue
            if first[o.value] != t or o.value in owner:
                continue
            for (value, offset, strides), e in item.loads.items():
                why = _why_not(item, value, offset, strides, o, kept, last, t)
                if why is None and o.formula.op == "where" and e in o.formula.args[1:]:
                    why = "LLVM would store only where the value changes, by a slow instruction"
                if value in taken:
                    continue
                if why is None:
                    owner[o.value] = owner.get(value, value)
                    taken.add(value)
                    break
                if value.is_temporary and why:
                    refused.append((o.value, value, why))
    return owner, refused


def _why_not(item, value, offset, strides, o, kept, last, t):
    """Why an output may not take over what was loaded; '' if that is not worth a word."""
    if not value.is_temporary or value in kept:
        return ""
    if value.size != o.value.size or value.dtype is not o.value.dtype:
        return ""
    if last[value] != t:
        return "it is read later"
    if (offset, strides) != (o.offset, o.strides):
        return "it is read at another place than it would be written"
    if sum(v is value for v, _, _ in item.loads) > 1:
        return "it is read at several places"
    if any(x.value is value for x in item.outputs):
        return ""
    return None


def rooted(ref, owner):
    """A Ref to the memory that a Value lives in."""
    root = owner.get(ref.value)
    return ref if root is None else Ref(root, ref.shape, ref.strides, ref.offset)
