"""Splits an optimizer's formula into a Program per element and numbers shared by all elements.

Much of a rule's arithmetic involves only hyperparameters, such as 1 - beta1 or the bias correction
at step t. An Update finds these parts in the formula and computes them once per step, in float64.
The rest is computed for every element, in the parameter's dtype.
"""

import functools

from minigrad.errors import ArgumentError, ArgumentTypeError
from minigrad.formulas.emitter import Operand
from minigrad.formulas.expression import (
    Expression,
    Program,
    equal,
    evaluate,
    substitute,
    symbol,
    symbols_of,
    where,
)

MOST_OF_STEPS = 7  # numbers of a rule that depend on steps; the memory layout limits them
MOST_HYPERPARAMETERS = 16  # of a rule, a pair counting as two; limited by the layout as well
MASTER = "master"  # the slot of the copy that a narrow parameter is rounded from
STEPS, RATE = "h_t", "h_learning_rate"  # symbols: steps of the parameter, with this one; rate


class Hyperparameters:
    """The hyperparameters that a formula sees: symbols for numbers, bools as they are.

    `"momentum" in h` tests whether a number is not 0, so that a formula can omit its term.
    t: the number of steps of the parameter, including this one.
    """

    def __init__(self, structure):
        self.t, self._set = symbol(STEPS), {name for name, value in structure if value}
        for name, value in structure:
            if isinstance(value, tuple):
                value = tuple(symbol(f"h_{name}_{k}") for k in range(len(value)))
            elif not isinstance(value, bool) and value:
                value = symbol(f"h_{name}")
            setattr(self, name, value)

    def __contains__(self, name):
        return name in self._set


def structure(values):
    """Return what the form of a formula depends on: the rate and nonzero numbers become 1.0.

    >>> structure({"learning_rate": 0.0, "betas": (0.9, 0.99), "eps": 0.1, "is_fast": True})
    (('learning_rate', 1.0), ('betas', (1.0, 1.0)), ('eps', 1.0), ('is_fast', True))
    """
    pairs = []
    for name, value in values.items():
        if isinstance(value, tuple):
            value = (1.0,) * len(value)
        elif not isinstance(value, bool):
            value = 1.0 if value or name == "learning_rate" else 0.0
        pairs.append((name, value))
    return tuple(pairs)


def flat(values):
    """Return hyperparameters as {symbol: number}: a pair as two, bools as 0 and 1.

    >>> flat({"learning_rate": 0.5, "betas": (0.9, 0.99)})
    {'h_learning_rate': 0.5, 'h_betas_0': 0.9, 'h_betas_1': 0.99}
    """
    numbers = {}
    for name, value in values.items():
        if isinstance(value, tuple):
            numbers.update({f"h_{name}_{k}": float(v) for k, v in enumerate(value)})
        else:
            numbers[f"h_{name}"] = float(value)
    return numbers


def exact(p, master, dtype):
    """Return the value to update: the copy, unless p has been written since it was rounded to p.

    Only then does the copy, rounded to the dtype again, differ from p.
    """
    return where(equal(Expression(f"as_{dtype.name}", master), p), master, p)


class Update:
    """One step of one parameter.

    Args:
        formula: (p, g, state, h) -> the new p, and the new values of `state`.
        slots: names of the arrays in `state`, in order.
        structure: the result of `structure` for the hyperparameters.
        narrow: the parameter's dtype if it is narrow. Then the formula runs on a wide copy, in a
            slot of its own after the others, and the parameter is that copy, rounded.

    Attributes:
        program: inputs p, g, s0, s1, ..., n0, n1, ...; outputs p, s0, s1, ...
        numbers: the formulas of n0, n1, ... over hyperparameters and steps.
        of_steps: which numbers depend on the parameter's step count.
        symbols: the hyperparameters' symbols, in the order of `flat`.
    """

    def __init__(self, formula, slots, structure, narrow=None):
        slots, self.symbols = tuple(slots), tuple(flat(dict(structure)))
        state = [f"s{k}" for k in range(len(slots))]
        h, p = Hyperparameters(structure), symbol("p")
        if narrow is not None:
            p = exact(p, symbol(f"s{len(slots)}"), narrow)
        outputs = formula(p, symbol("g"), tuple(map(symbol, state)), h)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        if len(outputs) != 1 + len(state) or not all(isinstance(x, Expression) for x in outputs):
            raise ArgumentTypeError(
                f"{formula.__qualname__}: wanted the new values of {', '.join(['p', *slots])}",
                f"{', '.join(map(str, outputs))}",
                "return one formula each, in this order",
            )
        if narrow is not None:
            slots, state = (*slots, MASTER), [*state, f"s{len(slots)}"]
            outputs = (*outputs, outputs[0])
        self.slots = slots
        self.numbers, cache = [], {}
        outputs = [self._of_elements(e, cache) for e in outputs]
        inputs = ["p", "g", *state, *(f"n{k}" for k in range(len(self.numbers)))]
        self.program = Program(inputs, outputs)
        self.of_steps = tuple(k for k, e in enumerate(self.numbers) if STEPS in symbols_of(e))
        counts = len(self.of_steps), len(self.symbols)
        if counts[0] > MOST_OF_STEPS or counts[1] > MOST_HYPERPARAMETERS or STEPS in self.symbols:
            raise ArgumentError(
                f"{formula.__qualname__}: wanted at most {MOST_OF_STEPS} numbers of h.t and "
                f"{MOST_HYPERPARAMETERS} hyperparameters, none of them called t",
                f"{counts[0]} and {counts[1]}",
                "write what depends on h.t as fewer numbers",
            )

    def elements(self, emitter_of, dtype):
        """Return (array names, Emitter, lines that store) for element i.

        emitter_of: a function that makes the Emitter, such as its class.
        """
        wide, state = dtype.arithmetic, [f"s{k}" for k in range(len(self.slots))]
        kinds = {"p": dtype, "g": dtype, **dict.fromkeys(state, wide)}
        operands = [Operand(name, kind, "i", True) for name, kind in kinds.items()]
        operands += [Operand(f"n{k}", "f", None, False) for k in range(len(self.numbers))]
        emitter, targets = emitter_of(operands, wide.text), ["p", *state]
        values = [
            emitter.stored(e, kinds[x]) for x, e in zip(targets, self.program.outputs, strict=True)
        ]
        stores = [f"{x}[i] = {v}" for x, v in zip(targets, values, strict=True)]
        return list(kinds), emitter, stores

    @property
    def counts_steps(self):
        """Whether the rule depends on the parameter's step count."""
        return bool(self.of_steps)

    @property
    def has_state(self):
        """Whether the rule keeps any state per parameter."""
        return bool(self.slots) or self.counts_steps

    def _of_elements(self, e, cache):
        """Replace each part over hyperparameters alone by a symbol n0, n1, ...."""
        replaced = cache.get(e)
        if replaced is not None:
            return replaced
        used = symbols_of(e)
        if used and all(name.startswith("h_") for name in used):
            replaced = symbol(f"n{len(self.numbers)}")
            self.numbers.append(e)
        elif e.op in ("symbol", "constant"):
            replaced = e
        else:
            replaced = Expression(e.op, *[self._of_elements(a, cache) for a in e.args])
        cache[e] = replaced
        return replaced

    def number(self, k, values):
        """Return number k as a float. values: {symbol: number}."""
        return float(evaluate(self.numbers[k], values))

    @functools.cached_property
    def counting(self):
        """A Program that maps steps to steps + 1 and to the numbers that depend on it."""
        after = symbol(STEPS) + 1.0
        mapping = {name: symbol(name) for name in self.symbols} | {STEPS: after}
        formulas = [substitute(self.numbers[k], mapping, {}) for k in self.of_steps]
        names = sorted({STEPS}.union(*map(symbols_of, formulas)))
        return Program(names, [after, *formulas])

    @functools.cached_property
    def of_rate(self):
        """{k: Program} of the numbers that depend on the learning rate but not on steps."""
        programs = {}
        for k, e in enumerate(self.numbers):
            names = symbols_of(e)
            if RATE in names and STEPS not in names:
                programs[k] = Program(sorted(names), [e])
        return programs
