"""Identities: x * 1, x / 1, x - 0, x ** 1, where(True, x, y) become x.

A formula of numbers only becomes a number, rounded as the kernel would round it.

Each rule is exact for every float, including NaN, the infinities and -0.0. x + 0.0 stays, as it
turns -0.0 into 0.0; x + -0.0 goes. x * 0 stays as well: it is NaN for an infinite x.
"""

import math

from minigrad.compiler.passes.arithmetic import real_of, result
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

    >>> from minigrad.compiler.passes.printing import show
    >>> from minigrad.compiler.passes.sketch import Sketch
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
    rewrite = _Rewrite(kinds, numbers, real_of(i.inputs, i.outputs))
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


class _Rewrite:
    """Rewrites formulas over symbols of known kinds, some of which are numbers."""

    def __init__(self, kinds, numbers, real):
        self.kinds, self.numbers, self.real, self.done = kinds, numbers, real, {}

    def __call__(self, e):
        if e.op in ("symbol", "constant"):
            return e
        if e not in self.done:
            args = [self(a) for a in e.args]
            same = all(a is b for a, b in zip(args, e.args, strict=True))
            self.done[e] = self.computed(self.shorter(e if same else Expression(e.op, *args)))
        return self.done[e]

    def number(self, e):
        """Return the number that a formula stands for, or None."""
        if e.op == "constant":
            return e.args[0]
        return self.numbers.get(e.args[0]) if e.op == "symbol" else None

    def computed(self, e):
        """Fold a formula of numbers into a constant, unless only a kernel can compute it."""
        if e.op in ("symbol", "constant") or any(self.number(a) is None for a in e.args):
            return e
        value = result(e, self.numbers, self.real)
        return e if value is None else Expression("constant", value.item())

    def shorter(self, e):
        """Return the argument that equals the formula, or the formula itself."""
        for k in self.candidates(e):
            if self.kinds.of(e.args[k]) == self.kinds.of(e):
                return e.args[k]
        return e

    def candidates(self, e):
        """Return the indices of arguments that equal the formula, except perhaps in kind."""
        known = [self.number(a) for a in e.args]
        if e.op == "where":
            return [] if known[0] is None else [1 if known[0] != 0 else 2]
        if len(known) != 2:
            return []
        a, b = known
        if e.op in ("mul", "div", "pow") and b == 1:
            return [0]
        if e.op == "mul" and a == 1:
            return [1]
        if e.op == "sub" and b == 0 and math.copysign(1.0, b) > 0:
            return [0]
        if e.op == "add":
            return [other for x, other in ((b, 0), (a, 1)) if self.adds_nothing(x, e)]
        return []

    def adds_nothing(self, x, e):
        """Return whether x + other equals other, for the kind in which e is computed."""
        if x is None or x != 0:
            return False
        return self.kinds.of(e) == "i" or (isinstance(x, float) and math.copysign(1.0, x) < 0)
