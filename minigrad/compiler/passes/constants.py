"""Constant folding: reads of memory that was filled with a number become that number.

Gradients begin as ones, sums of gradients as zeros: most fills are read once, right away.
"""

from minigrad.array.layout import size_of
from minigrad.compiler.passes.helpers.algebra import is_copy, simpler
from minigrad.compiler.passes.helpers.arithmetic import filled, real_of, reduced, result, stored
from minigrad.compiler.passes.helpers.regions import Intervals, interval
from minigrad.compiler.program.program import Instruction, Recording, Ref
from minigrad.formulas.expression import IDENTITY, symbols_of

TAKES_NUMBERS = {"elementwise", "rows", "reduce"}


def fold_constants(recording):
    """Replace reads of known memory by numbers, and compute constant formulas.

    Instructions that need memory (matmul, gather, ...) still read it. A fill that is no longer read
    is dead code. Formulas are simplified; see `algebra`.

    >>> from minigrad.compiler.program.printing import show
    >>> from minigrad.compiler.program.sketch import Sketch
    >>> s = Sketch()
    >>> x = s.argument((4, 3))
    >>> one = s.fill(1.0, (4, 3))
    >>> share = s.div(one, 12.0)
    >>> dy = s.mul(share, x)
    >>> s.add(one, dy, out=one)
    >>> print(show(s.recording(one)))
    %0 float32[4, 3] = fill 1.0
    %1 float32[4, 3] = div %0 12.0
    %2 float32[4, 3] = mul %1 x0
    %0 := add %0 %2
    return %0
    >>> print(show(fold_constants(s.recording(one))))
    %0 float32[4, 3] = fill 1.0
    %1 float32[4, 3] = fill 0.0833333358168602
    %2 float32[4, 3] = mul 0.0833333358168602 x0
    %0 := add 1.0 %2
    return %0
    """
    known: dict = {}  # Value -> Intervals of (number, its text)
    seen: dict = {}  # Program -> how many inputs it reads; (Program, kinds): it cannot be simpler
    instructions, changed = [], False
    for i in recording.instructions:
        new = _folded(_with_numbers(i, known), seen) if i.op in TAKES_NUMBERS else (i,)
        changed = changed or new[0] is not i
        for n in new:
            _learn(n, known)
            instructions.append(n)
    if not changed:
        return recording
    return Recording(instructions, recording.arguments, recording.results, recording.donated)


def _with_numbers(i, known):
    """Replace each input Ref whose elements all equal a known number by that number."""
    inputs = None
    for k, x in enumerate(i.inputs):
        if isinstance(x, Ref):
            facts = known.get(x.value)
            if facts is not None and facts.lows:
                low, high, _ = interval(x)
                fact = facts.find(low, high)
                if fact is not None:
                    inputs = list(i.inputs) if inputs is None else inputs
                    inputs[k] = fact[0]
    if inputs is None or (i.op == "rows" and not any(isinstance(x, Ref) for x in inputs)):
        return i
    if real_of(inputs, i.outputs) is not real_of(i.inputs, i.outputs) and not is_copy(i):
        return i  # it would compute in another type
    return Instruction(i.op, tuple(inputs), i.outputs, i.attributes, i.name, i.place)


def _folded(i, seen):
    """Return the simplified instruction, or the fills that replace it."""
    program = i.attributes["program"]
    n_read = seen.get(program)
    if n_read is None:
        n_read = seen[program] = len(set().union(*map(symbols_of, program.outputs)))
    if n_read == len(i.inputs) > 0 and all(isinstance(x, Ref) for x in i.inputs):
        return (i,)
    kinds = tuple([x.value.dtype if isinstance(x, Ref) else repr(x) for x in i.inputs])
    if (program, kinds) not in seen:
        simple = simpler(i)
        if simple is i:
            seen[program, kinds] = None
        i = simple
    if (n_read and any(isinstance(x, Ref) for x in i.inputs)) or is_copy(i):
        return (i,)
    program, real = i.attributes["program"], real_of(i.inputs, i.outputs)
    numbers = dict(zip(program.inputs, i.inputs, strict=True))
    values = [result(e, numbers, real) for e in program.outputs]
    if i.op == "reduce" and values[0] is not None:
        shape = i.attributes["shape"]
        count = size_of([shape[a] for a in i.attributes["axes"]])
        values = [reduced(values[0], i.attributes["how"], count, real)]
    pairs = list(zip(values, i.outputs, strict=True))
    kept = [None if v is None else stored(v, r.dtype) for v, r in pairs]
    if None in kept:
        return (i,)
    return [
        Instruction("elementwise", (x,), (r,), {"program": IDENTITY}, i.name, i.place)
        for x, r in zip(kept, i.outputs, strict=True)
    ]


def _learn(i, known):
    """Record what memory holds after an instruction."""
    for r in i.outputs:
        facts = known.get(r.value)
        if facts is not None:
            low, high, _ = interval(r)
            facts.cut(low, high)
    if i.op == "elementwise" and is_copy(i) and not isinstance(i.inputs[0], Ref):
        r = i.outputs[0]
        low, high, is_dense = interval(r)
        number = filled(i.inputs[0], r.dtype)
        if is_dense and number is not None:
            known.setdefault(r.value, Intervals()).put(low, high, (number, repr(number)))
