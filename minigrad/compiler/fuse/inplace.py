"""Decides in-place reuse: which values take over another's memory after its last read.

Temporaries do so inside the arena; a result takes over a donated argument.
"""

from minigrad.compiler.fuse.fused_loop import Loop
from minigrad.compiler.program.items import MatMul
from minigrad.compiler.program.program import Ref

MASKED = (  # LLVM would turn `where` over its own operand into a store under a mask
    "only some elements would change in place, and skipping the others takes longer than writing "
    "all of them to another place; nothing to be done"
)


class Sharing:
    """owner: {Value: the Value whose memory it takes over}; refused: [(Value, Value, why)].

    taken: {result number: donated argument}.

    A Loop may overwrite what it reads if it does so element for element, and if nothing reads the
    old value afterwards. An epilogue runs between the blocks of its product, which reads its
    operands in each block and writes its result before the Loop loads anything.
    """

    refuses_masks = True

    def __init__(self, items, results, donated=()):
        self.items, self.donated = items, donated
        self.kept = {r.value for r in results}
        self.owner, self.refused, self.taken = {}, [], {}
        self.last, self.first = {}, {}
        for t, item in enumerate(items):
            for r in item.reads:
                self.last[r.value] = t
            for r in item.writes:
                self.first.setdefault(r.value, t)
                self.last[r.value] = max(self.last.get(r.value, t), t)
        for t, item in enumerate(items):
            loop = item if type(item) is Loop else getattr(item, "epilogue", None)
            if loop is not None:
                self._share(t, loop)
        for k, r in enumerate(results):
            if r.value.is_temporary and r.value not in self.owner:
                self._donate(k, r)

    def _share(self, t, item):
        gone, loaded = set(), {value for value, _, _ in item.loads}
        for o in item.outputs:
            if o.mode != "store" or not o.value.is_temporary or o.value in self.kept:
                continue
            if self.first[o.value] != t or o.value in self.owner:
                continue
            if o.value in loaded:  # the product's result is already in place
                continue
            for value, offset, strides in item.loads:
                if not value.is_temporary or value in self.kept or value in gone:
                    continue
                why = self._why_not(t, item, (value, offset, strides), o)
                if why is None:
                    self.owner[o.value] = self.owner.get(value, value)
                    gone.add(value)
                    break
                if why:
                    self.refused.append((o.value, value, why))

    def _why_not(self, t, item, place, o):
        """Return why an output cannot overwrite a load, or None if it can; '' is not reported."""
        value, offset, strides = place
        if value.size != o.value.size or value.dtype is not o.value.dtype:
            return ""
        if any(x.value is value for x in item.outputs):
            return ""
        if self.last[value] != t:
            return "it is read later"
        around = self.items[t]
        if type(around) is MatMul and value in (around.a.value, around.b.value):
            return "the product reads it block by block while it would be written"
        if (offset, strides) != (o.offset, o.strides):
            return "it is read at another place than it would be written"
        if sum(v is value for v, _, _ in item.loads) > 1:
            return "it is read at several places"
        if (
            self.refuses_masks
            and o.formula.op == "where"
            and item.loads[place] in o.formula.args[1:]
        ):
            return MASKED
        return None

    def _donate(self, k, result):
        """Give a result the memory of a donated argument, if one fits."""
        value = result.value
        for argument in sorted(self.donated, key=lambda v: v.index):
            if argument in self.taken.values():
                continue
            why = self._cannot_take(value, argument)
            if why is None:
                self.owner[value] = argument
                self.taken[k] = argument
                return
            if why:
                self.refused.append((value, argument, why))

    def _cannot_take(self, value, argument):
        if value.size != argument.size or value.dtype is not argument.dtype:
            return "its size or dtype differs"
        if argument in self.first:
            return "the step writes to it"
        born, read = self.first.get(value), self.last.get(argument, -1)
        if born is None:
            return "nothing writes the result"
        if read < born:
            return None
        if read > born:
            return "it is read after the result is written"
        item = self.items[born]
        if type(item) is not Loop:  # a product also reads what its epilogue writes
            return "it is read while the result is written, and not element for element"
        places = [place for place in item.loads if place[0] is argument]
        outputs = [o for o in item.outputs if o.value is value]
        if len(places) != 1 or len(outputs) != 1 or outputs[0].mode != "store":
            return "it is read while the result is written, and not element for element"
        return self._why_not(born, item, places[0], outputs[0])


def rooted(ref, owner):
    """Return the Ref over the Value that owns its memory."""
    root = owner.get(ref.value)
    return ref if root is None else Ref(root, ref.shape, ref.strides, ref.offset)
