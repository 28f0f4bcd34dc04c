"""Writes the text of an eager kernel from a Program of formulas.

A kernel takes addresses of arrays, scalars, sizes, then strides (in elements). The class of the
innermost stride (0, 1, other) is part of the text, because LLVM vectorizes only for known strides.
"""

from minigrad.formulas.emitter import Emitter, Operand, real_type
from minigrad.formulas.expression import substitute, symbol
from minigrad.formulas.row_loops import Lines, Loops


class KernelLines(Lines):
    """Collects arguments and lines, then prints the function."""

    def __init__(self):
        super().__init__()
        self.arguments, self.types = [], []

    def argument(self, name, kind="i8"):
        """Adds an argument; 'i8' for addresses, sizes and strides, 'f8' for float scalars."""
        self.arguments.append(name)
        self.types.append(kind)


def step(loop, name):
    """Returns the name of the argument for an operand's stride along a loop."""
    return f"{loop}_step_{name}"


def operand_names(program, n_outputs):
    """Returns the names of inputs and outputs in the text."""
    return [f"s_{n}" for n in program.inputs], [f"out{k}" for k in range(n_outputs)]


def renamed_outputs(program):
    """Returns the outputs with prefixed symbols: `n` or `j` in a formula must not name a loop."""
    mapping, cache = {n: symbol(f"s_{n}") for n in program.inputs}, {}
    return [substitute(e, mapping, cache) for e in program.outputs]


class EagerKernel(KernelLines, Loops):
    """A kernel of loops. Each loop has arguments for its size and for each operand's stride.

    Args:
        kinds: for each input and output its DType, or 'f' / 'i' for a scalar.
        outer, inner: names of the loops; `inner` is the innermost.
        classes: for each array its stride class along the innermost loop; None: all contiguous.
        more: names of further sizes.
        along: {output: (outer, inner)}, for outputs that move along only some of the loops.
    """

    def __init__(self, program, kinds, outer, inner, classes, more=(), along=None):
        super().__init__()
        names, outs = operand_names(program, len(program.outputs))
        everything = list(zip([*names, *outs], kinds, strict=True))
        for name, kind in everything:
            if isinstance(kind, str):
                self.argument(name, "f8" if kind == "f" else "i8")
            else:
                self.argument(f"at_{name}")
                self.line(1, f"{name} = {kind.pointer}(at_{name})")
        for i in (*outer, inner, *more):
            self.argument(f"n_{i}")
        operands, left = [], iter(classes or ())
        for name, kind in everything:
            if isinstance(kind, str):
                operands.append(Operand(name, kind, None, False))
                continue
            loops, last = (along or {}).get(name, (outer, inner))
            innermost = 1 if classes is None else next(left)
            if classes is not None:
                for i in (*loops, *([last] if last else [])):
                    self.argument(step(i, name))
            parts = [f"{i} * {step(i, name)}" for i in loops]
            if last and innermost:
                parts.append(last if innermost == 1 else f"{last} * {step(last, name)}")
            operands.append(Operand(name, kind, " + ".join(parts) or "0", innermost != 0))
        self.inputs, self.targets = operands[: len(names)], operands[len(names) :]
        self.emitter = Emitter(operands, real_type(program, kinds).text)
        self.formulas = renamed_outputs(program)
        self.block, self.is_wide, self.is_long = 0, False, False

    def text(self):
        """Returns (source text, names of the source files that it needs)."""
        head = f'@jit("void({", ".join(self.types)})")\ndef kernel({", ".join(self.arguments)}):'
        return "\n".join([head, *self.lines]) + "\n", tuple(sorted(self.emitter.includes))


def elementwise_text(program, kinds, rank, inner, in_place=False):
    """Writes a loop nest over `rank` dimensions. Rank 0 means contiguous operands and one size.

    Args:
        kinds: for each input and output its DType, or 'f' / 'i' for a scalar.
        inner: for each array its innermost stride class, if rank > 0.
        in_place: whether the first output is the first input.
    """
    outer = [f"i{d}" for d in range(rank - 1)]
    kernel = EagerKernel(program, kinds, outer, "j", inner if rank else None)
    if in_place:
        kernel.targets[0] = kernel.inputs[0]
    kernel.modes = ["store"] * len(program.outputs)
    kernel.output_pass(kernel.heads(1, [(i, "0", f"n_{i}") for i in outer]))
    return kernel.text()
