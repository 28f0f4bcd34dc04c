"""Special values: the inputs that every operation is run on, eager and compiled, and their page.

Everything is read from the registry, as in cells.py: an operation that is added is run without a
line here, and has a row in docs/generated/special_values.md.
"""

import itertools
import zlib
from typing import NamedTuple

import numpy as np

import minigrad as mg
from minigrad.ops.base import Elementwise, RowWise
from tests.golden.special_cases import DIFFERENT
from tests.ops.cells import RANDOM, call, public_ops, samples
from tests.ops.test_gradients import is_differentiable
from tests.pages import NOTE

DTYPES = ("float32", "float64")
FILLS = 2  # random choices of inputs of an operation that is not elementwise
LEFT_OUT = {
    **dict.fromkeys(RANDOM, "draws random numbers"),
    "cholesky_factor": "raises for NaN and for matrices that are not positive definite",
    "move": "is no part of a step: that runs on one device",
}


class Problem(NamedTuple):
    """One call of an operation: arrays are its inputs; leaves: which of them get gradients."""

    op: type
    attributes: tuple
    arrays: list
    leaves: list
    seed: int


def specials(dtype, is_summed=False):
    """The values, ordinary ones last; no huge ones where the order of a sum decides on overflow."""
    limits = np.finfo(dtype)
    tiny, huge = float(limits.tiny), float(limits.max)
    found = [0.0, -0.0, np.inf, -np.inf, np.nan, tiny / 8, -tiny / 4, tiny]
    found += [] if is_summed else [huge, -huge / 2]
    return np.array([*found, 1.0, -1.0, 0.5, -2.5, 3.0], dtype)


def problems(dtype, names=None):
    """Problems of all operations, or of some."""
    for name, op in public_ops().items():
        if name in LEFT_OUT or (names is not None and name not in names):
            continue
        rng = np.random.default_rng(zlib.crc32(f"{name} {dtype}".encode()))
        for attributes, arrays in _inputs(op, dtype, rng):
            yield Problem(op, attributes, arrays, _leaves(op, arrays), int(rng.integers(1 << 30)))


def _inputs(op, dtype, rng):
    """Elementwise all combinations; rows of all pairs and 0.5; else two random choices."""
    numbers = tuple(getattr(op, "numbers", ()))
    integers = getattr(op, "integer_inputs", {})
    values = specials(dtype)
    if issubclass(op, RowWise):
        rows = np.array([(a, b, 0.5) for a, b in itertools.product(values, values)], dtype)
        others = range(1, len(op.inputs) - len(numbers))
        more = [
            rng.integers(0, 3, (len(rows), 1)) if k in integers else _ordinary(rng, (3,), dtype)
            for k in others
        ]
        yield numbers, [rows, *more]
    elif issubclass(op, Elementwise):
        count = len(op.inputs) - len(numbers)
        choices = [values] * count
        if op.name == "where":
            choices[0] = np.array([True, False])
        yield numbers, list(map(np.array, zip(*itertools.product(*choices), strict=True)))
    else:
        shapes, attributes = samples(op)[0]
        values = specials(dtype, is_summed=True)
        for _ in range(FILLS):
            arrays = []
            for k, shape in enumerate(shapes):
                if k in integers:
                    arrays.append(rng.integers(0, integers[k], shape))
                    continue
                special, plain = rng.choice(values, shape), _ordinary(rng, shape, dtype)
                arrays.append(np.where(rng.random(shape) < 0.4, special, plain).astype(dtype))
            yield attributes, arrays


def _ordinary(rng, shape, dtype):
    return (rng.integers(1, 9, shape) * rng.choice([-0.25, 0.25], shape)).astype(dtype)


def _leaves(op, arrays):
    floats = [k for k, a in enumerate(arrays) if a.dtype.kind == "f"]
    if not is_differentiable(op) or op.name == "concatenate":
        return floats if is_differentiable(op) else []
    rules = op.gradient_formulas if issubclass(op, Elementwise) else op.gradients
    return [k for k in floats if k < len(rules) and rules[k] is not None]


def inputs_of(problem):
    """The Variables of a problem."""
    return [mg.variable(a, requires_grad=k in problem.leaves) for k, a in enumerate(problem.arrays)]


def run(problem, inputs):
    """{what: Variable}: the value, the gradients by fused kernels, and two orders by a graph."""
    rng = np.random.default_rng(problem.seed)
    y = call(problem.op, inputs, problem.attributes)
    found = {"value": [y]}
    leaves = [inputs[k] for k in problem.leaves]

    def upstream(v):
        return mg.variable(_ordinary(rng, v.shape, v.dtype.name))

    if y.requires_grad:
        dy = upstream(y)
        found["gradient"] = mg.gradients(y, leaves, dy, retain_graph=True)
        first = found["gradient in a graph"] = mg.gradients(y, leaves, dy, create_graph=True)
        outs = [g for g in first if g is not None and g.requires_grad]
        if outs:
            found["second"] = mg.gradients(outs, leaves, [upstream(g) for g in outs])
    return {
        f"{what} {k}": v.detach()
        for what, parts in found.items()
        for k, v in enumerate(parts)
        if v is not None
    }


HEAD = f"""# Special values

{NOTE}

Every operation of the registry is run on 0, -0, ±inf, NaN, subnormal numbers, the smallest normal
and the largest numbers, and ordinary ones, in float32, and elementwise and row operations in
float64 too: its value, its gradients by the fused kernels and through a graph, and the gradients of
those. Elementwise operations see every combination of them, row operations rows of every pair, the
others random choices. **Compiled, everything is what it is eager**: NaN, infinities and the signs
of zeros in the same places, and numbers up to rounding (`tests/compiler/test_special_values.py`).

Two things are not said. Whether a sum overflows on the way to a finite result depends on the order
of its terms, which is another one in a fused kernel: so operations that sum see no largest numbers.
And of 0 and -0 `max` and `min` give one or the other.

| operation | inputs a dtype | value | gradients | their gradients |
|---|---|---|---|---|
"""
TAIL = """
## And PyTorch

`tests/golden/special.py` asks PyTorch for values, gradients and their gradients at such inputs, and
`tests/test_golden_special.py` compares them. Where minigrad differs, it does so on purpose:

| case | order | minigrad |
|---|---|---|
"""


def text():
    """The whole page."""
    counts = {}
    for p in problems("float32"):
        counts[p.op.name] = counts.get(p.op.name, 0) + sum(a.size for a in p.arrays)
    lines = [HEAD.rstrip("\n")]
    for name, op in sorted(public_ops().items()):
        has = "✓" if is_differentiable(op) else "none"
        row = (LEFT_OUT[name], "", "", "") if name in LEFT_OUT else (counts[name], "✓", has, has)
        lines.append(f"| {name} | " + " | ".join(map(str, row)) + " |")
    lines.append(TAIL.rstrip("\n"))
    for (case, order), why in DIFFERENT.items():
        lines.append(f"| {case} | {'every' if order == '*' else order} | {why} |")
    return "\n".join(lines) + "\n"
