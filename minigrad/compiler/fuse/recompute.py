"""Recomputation: a Loop recomputes a cheap value instead of loading it.

A large temporary computed from small operands, such as the hidden layer of a network with four
inputs, costs more to write and read back than to compute twice.
"""

from minigrad.compiler.fuse.fused_loop import MOST_ARRAYS, Loop, shown
from minigrad.compiler.program.items import touch
from minigrad.compiler.program.program import Ref
from minigrad.formulas.expression import substitute, symbol, symbols_of
from minigrad.formulas.kinds import cost

LARGE = 1 << 18  # bytes of a temporary beyond the second-level cache
CHEAP = 12  # cost of an element, in additions


def recompute(items):
    """Replace loads of large temporaries by their formulas, in place, where that is cheaper."""
    made = {}  # Value -> (index of the Loop, its PieceOutput)
    for t, item in enumerate(items):
        if type(item) is Loop:
            for key in list(item.loads):
                if key[0] in made:
                    _replace(items, t, item, key, *made[key[0]])
        for r in item.writes:
            made.pop(r.value, None)  # written again: the noted formula no longer holds
        if type(item) is Loop:
            for o in item.outputs:
                if o.mode == "store" and o.value.is_temporary and o.value.nbytes >= LARGE:
                    made[o.value] = t, o


def _replace(items, t, loop, key, source, output):
    maker = items[source]
    if maker.dims != loop.dims or (output.offset, output.strides) != key[1:]:
        return
    if output.formula.depth or output.value.dtype is not loop.real or maker.real is not loop.real:
        return
    if cost([output.formula]) > CHEAP:
        return
    used = symbols_of(output.formula)
    needs = [place for place, e in maker.loads.items() if e.args[0] in used]
    moved = sum(place[0].dtype.itemsize * shown(place, loop.dims) for place in needs)
    if 4 * moved > output.value.nbytes:
        return
    refs = [Ref(v, maker.dims, s, o) for v, o, s in needs]
    if any(touch(refs, item.writes) for item in items[source : t + 1]):
        return
    new = [place for place in needs if place not in loop.loads]
    if len(loop.loads) - 1 + len(new) + len(loop.outputs) > MOST_ARRAYS:
        return
    _write_in(loop, key, output, maker, needs)


def _write_in(loop, key, output, maker, needs):
    """Replace a load of the loop by the formula."""
    old = loop.loads.pop(key)
    count = max((int(e.args[0][1:]) for e in (*loop.loads.values(), old)), default=-1) + 1
    mapping = {}
    for place in needs:
        e = loop.loads.get(place)
        if e is None:
            mark = "f" if place[0].dtype.is_float else "n"
            e = loop.loads[place] = symbol(f"{mark}{count}")
            loop.kinds.declare(e, place[0].dtype)
            count += 1
        mapping[maker.loads[place].args[0]] = e
    formula = substitute(output.formula, mapping, {})
    anew = {e.args[0]: e for e in loop.loads.values()} | {old.args[0]: formula}
    cache = {}
    loop.outputs = [o._replace(formula=substitute(o.formula, anew, cache)) for o in loop.outputs]
