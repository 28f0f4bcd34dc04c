"""Writes the text that all generated GPU kernels share: arguments, statements, index arithmetic.

A kernel loops over one number, the index of an element in C order. For a strided operand it splits
this index into one coordinate per dimension; the operand's offset is the sum of coordinates times
strides. Operands with equal strides share a *layout*, and thus the arithmetic.
"""

from typing import NamedTuple

from minigrad.devices.gpu.kernel import gpu_kernel
from minigrad.formulas.codegen import KernelLines, operand_names, renamed_outputs
from minigrad.formulas.emitter import (
    Emitter,
    Operand,
    is_below_maximum,
    real_type,
)
from minigrad.formulas.expression import ROW_REDUCTIONS, Expression, symbols_of, walk
from minigrad.formulas.kinds import Kinds

SMALL = 2**31 - 2**20  # below it, 32-bit indices can step past the end
WARP = 0xFFFFFFFF  # all 32 threads of a warp
LANES = 4  # elements of one vector access
IN_ORDER = 3  # a stride class: the offset is the index itself
DENSE = (1, IN_ORDER)  # stride classes of contiguous neighbours


class Space(NamedTuple):
    """The coordinates of one index, as far as a kernel's text depends on them.

    Attributes:
        name: the index's name, with which the names of its sizes and strides begin.
        rank: the number of dimensions.
        classes: each layout's stride class along the last dimension (0, 1, 2), IN_ORDER if it lies
            in C order, or None if all its strides are 0.
    """

    name: str
    rank: int
    classes: tuple


def division(n):
    """Return (multiplier, shift) for `quotient` of gpu_programs.py to divide by n, 1 <= n < 2^31.

    Granlund and Montgomery, "Division by invariant integers using multiplication" (1994).

    >>> division(10)
    (2576980378, 4)
    """
    shift = (n - 1).bit_length()
    return (2**32 * (2**shift - n)) // n + 1, shift


def space_numbers(dims, layouts, classes, narrow):
    """Return the arguments of a Space: those that `GpuText.space` declares.

    Args:
        dims: sizes, innermost last.
        layouts: per layout its strides over dims; classes: as in Space.
    """
    numbers = []
    for n in dims[1:]:
        numbers += [n, *division(n)] if narrow else [n]
    for strides, kind in zip(layouts, classes, strict=True):
        if kind not in (None, IN_ORDER):
            numbers += strides
    return numbers


def operations(program):
    """Count the different operations in a program's formulas."""
    return sum(e.op not in ("symbol", "constant") for e in walk(program.outputs))


def inputs_read(outputs):
    """Return the sorted names of the symbols that formulas read."""
    return sorted(set().union(*map(symbols_of, outputs)))


def zero(dtype):
    """Return the text of a 0 of an Array's element type."""
    return f"{dtype.text}(0)"


class GpuText(KernelLines):
    """Collects the arguments and lines of a program's GPU kernel, those of its operands first.

    Args:
        form: has `kinds` of inputs and outputs, `layouts`: per array the number of its layout, and
            `narrow`: whether indices and strides have 32 bits instead of 64.
        place: number of a layout -> (text of the index, whether it varies along the inner loop).

    Attributes:
        layout: {name of an array: number of its layout}.
        inputs, outputs: Operands; formulas: the outputs' formulas; emitter: over the Operands.
    """

    def __init__(self, program, form, place):
        super().__init__()
        self.real, self.narrow = real_type(program, form.kinds).text, form.narrow
        self.word, self.index = ("i4", "I4") if self.narrow else ("i8", "I8")
        names, outs = operand_names(program, len(program.outputs))
        numbers, operands, self.layout = iter(form.layouts), [], {}
        for name, kind in zip((*names, *outs), form.kinds, strict=True):
            if isinstance(kind, str):
                self.argument(name, self.real.lower() if kind == "f" else "i8")
                operands.append(Operand(name, kind, None, False))
            else:
                self.argument(name, f"{kind.code}*")
                self.layout[name] = next(numbers)
                operands.append(Operand(name, kind, *place(self.layout[name])))
        self.inputs, self.outputs = operands[: len(names)], operands[len(names) :]
        self.formulas, self.emitter = renamed_outputs(program), GpuEmitter(operands, self.real)

    def space(self, space):
        """Declare arguments for the sizes and strides of a Space: see `space_numbers`."""
        for d in range(1, space.rank):
            self.argument(f"n_{space.name}{d}", self.word)
            if self.narrow:
                self.argument(f"multiplier_{space.name}{d}", "u4")
                self.argument(f"shift_{space.name}{d}", "u4")
        for k, kind in enumerate(space.classes):
            if kind not in (None, IN_ORDER):
                for d in range(space.rank):
                    self.argument(f"{space.name}{d}_step_{k}", self.word)

    def coordinates(self, indent, space, index, suffix=""):
        """Add lines that split an index; return {layout: text of its offset}."""
        rest = index
        names = [f"{space.name}{d}{suffix}" for d in range(space.rank)]
        for d in reversed(range(1, space.rank)):
            here, size = names[d], f"n_{space.name}{d}"
            above = names[0] if d == 1 else f"{here}_above"
            if self.narrow:
                divided = f"quotient({rest}, multiplier_{space.name}{d}, shift_{space.name}{d})"
            else:
                divided = f"I8(U8({rest}) // U8({size}))"
            self.line(indent, f"{above} = {divided}")
            self.line(indent, f"{here} = {self.index}({rest} - {above} * {size})")
            rest = above
        if space.rank == 1:
            names = [index]
        offsets = {}
        for k, kind in enumerate(space.classes):
            parts = [index] if kind == IN_ORDER else []
            if kind not in (None, IN_ORDER):
                outer = range(space.rank - 1)
                parts = [f"{names[d]} * {space.name}{d}_step_{k}" for d in outer]
                if kind == 1:
                    parts.append(names[-1])
                elif kind == 2:
                    parts.append(f"{names[-1]} * {space.name}{space.rank - 1}_step_{k}")
            offsets[k] = " + ".join(parts) or "0"
        return offsets

    def made(self):
        """Return the GpuKernel."""
        head = f"def kernel({', '.join(self.arguments)}):"
        includes = set(self.emitter.includes)
        if any("quotient(" in line for line in self.lines):
            includes.add("gpu_programs")
        body = "\n".join([head, *self.lines]) + "\n"
        return gpu_kernel(body, " ".join(self.types), tuple(sorted(includes)))


def is_sum_of_softmax(e):
    """Return whether e is between 1 and a row's length: one inverse is accurate for a whole row."""
    if e.op != "row_sum" or not isinstance(e.args[0], Expression) or e.args[0].op != "exp":
        return False
    return is_below_maximum(e.args[0].args[0])


class GpuKinds(Kinds):
    """Kinds where row reductions are floats, even those of ints."""

    def _find(self, e):
        return "f" if e.op in ROW_REDUCTIONS else super()._find(e)


class GpuEmitter(Emitter):
    """Statements for formulas; elements may be in registers instead of memory.

    Attributes:
        registers: {operand: text of its element}.
        condition: text of the condition for reading elements that do not vary; None: always.
    """

    def __init__(self, operands, real):
        super().__init__(operands, real, GpuKinds())
        self.registers = {}
        self.condition: str | None = None

    def element(self, operand):
        """Return the text of an operand's element."""
        register = self.registers.get(operand.name)
        if register is not None:
            return register
        text = super().element(operand)
        if self.condition is None or operand.varies:
            return text
        return f"({text} if {self.condition} else {zero(operand.kind)})"

    def cell(self, text, dtype):
        if not dtype.is_coded:
            return super().cell(text, dtype)
        self.includes.add("rounding")
        return f"{dtype.text}({dtype.code}_of_{self.real.lower()}({text}))"

    def number(self, text, dtype):
        if not dtype.is_coded:
            return super().number(text, dtype)
        self.includes.add("rounding")
        wide = dtype.arithmetic
        text = f"{wide.code}_of_{dtype.code}({text})"
        return text if wide.text == self.real else f"{self.real}({text})"

    def in_float64(self, op, values):
        return None  # most GPUs have few units for float64

    def _code(self, e):
        if e.op in ("floor", "ceil", "round") and self.kind(e) == "f":
            self.includes.add(f"gpu_rounding.{self.real.lower()}")
            return f"{e.op}_{self.real.lower()}({self.value(e.args[0], 'f')})"
        if e.op == "div" and self.varies(e.args[0]) and is_sum_of_softmax(e.args[1]):
            inverse = Expression("div", Expression("constant", 1.0), e.args[1])
            return f"{self.value(e.args[0], 'f')} * {self.value(inverse, 'f')}"
        return super()._code(e)
