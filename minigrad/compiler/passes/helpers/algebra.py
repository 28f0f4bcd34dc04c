"""Simplifies single instructions: by identities, and by computing formulas of numbers alone.

A formula of numbers becomes a number, rounded as the kernel would round it.
"""

from minigrad.compiler.passes.helpers.arithmetic import real_of, result
from minigrad.compiler.program.identities import Rewrite
from minigrad.compiler.program.program import Instruction, Ref
from minigrad.formulas.expression import IDENTITY, Expression, Program, symbol, symbols_of
from minigrad.formulas.kinds import Kinds


def is_copy(i):
    """Return whether an instruction copies a Ref, or fills memory with a number."""
    if i.op != "elementwise" or len(i.inputs) != 1 or len(i.outputs) != 1:
        return False
    return i.attributes["program"].outputs[0].op == "symbol"


def simpler(i):
    """Return the instruction with simpler formulas and without unused inputs.

    >>> from minigrad.compiler.program.printing import show
    >>> from minigrad.compiler.program.sketch import Sketch
    >>> s = Sketch()
    >>> x = s.argument((4,))
    >>> y = s.mul(x, 1.0)
    >>> z = s.add(x, 0.0)
    >>> s.instructions = [simpler(i) for i in s.instructions]
    >>> print(show(s.recording()))
    %0 float32[4] = copy x0
    %1 float32[4] = add x0 0.0
    """
    program = i.attributes["program"]
    kinds, numbers = Kinds(), {}
    for name, x in zip(program.inputs, i.inputs, strict=True):
        if isinstance(x, Ref):
            kinds.declare(symbol(name), x.value.dtype)
        else:
            numbers[name] = x
            kinds.declare(symbol(name), "f" if isinstance(x, float) else "i")
    rewrite = _Folding(kinds, numbers, real_of(i.inputs, i.outputs))
    outputs = [rewrite(e) for e in program.outputs]
    used = set().union(*map(symbols_of, outputs))
    kept = [(n, x) for n, x in zip(program.inputs, i.inputs, strict=True) if n in used]
    is_same = all(a is b for a, b in zip(outputs, program.outputs, strict=True))
    if (is_same and len(kept) == len(i.inputs)) or not kept:
        return i
    if i.op == "rows" and not any(isinstance(x, Ref) for _, x in kept):
        return i
    inputs = tuple(x for _, x in kept)
    if real_of(inputs, i.outputs) is not real_of(i.inputs, i.outputs):
        return i  # it would compute in another type
    if len(outputs) == 1 and outputs[0].op == "symbol":
        program = IDENTITY
    else:
        program = Program([n for n, _ in kept], outputs)
    attributes = {**i.attributes, "program": program}
    return Instruction(i.op, inputs, i.outputs, attributes, i.name, i.place)


class _Folding(Rewrite):
    """Rewrites formulas of which some symbols are numbers, and computes what is numbers alone."""

    def __init__(self, kinds, numbers, real):
        super().__init__(kinds)
        self.numbers, self.real = numbers, real

    def number(self, e):
        """Return the number that a formula stands for, or None."""
        return self.numbers.get(e.args[0]) if e.op == "symbol" else super().number(e)

    def simplified(self, e):
        """Return a simpler formula; a constant unless only a kernel can compute the number."""
        e = super().simplified(e)
        if e.op in ("symbol", "constant") or any(self.number(x) is None for x in e.args):
            return e
        value = result(e, self.numbers, self.real)
        return e if value is None else Expression("constant", value.item())
