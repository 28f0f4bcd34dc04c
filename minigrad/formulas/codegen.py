"""Programs of formulas -> the text of one kernel: elementwise, reduce or rows.

Every kernel takes addresses of its arrays, its scalars, sizes, then strides (in elements). The
innermost stride class (0, 1, other) is part of the text: with a stride known only at run time
nothing would vectorise.
"""

from minigrad.formulas.emitter import POINTER_OF, TYPE_OF, Emitter, Operand, real_type
from minigrad.formulas.expression import substitute, symbol


class Kernel:
    """Collects arguments and lines, then prints the function."""

    def __init__(self):
        self.arguments, self.types, self.lines = [], [], []

    def argument(self, name, kind="i8"):
        """Adds an argument; 'i8' for addresses, sizes and strides, 'f8' for float scalars."""
        self.arguments.append(name)
        self.types.append(kind)
        return name

    def operands(self, names, kinds):
        """Arguments for arrays (addresses, turned into pointers) and scalars."""
        for name, kind in zip(names, kinds, strict=True):
            if isinstance(kind, str):
                self.argument(name, "f8" if kind == "f" else "i8")
            else:
                self.argument(f"at_{name}")
                self.line(1, f"{name} = {POINTER_OF[kind.name]}(at_{name})")

    def line(self, indent, text):
        """Adds one line."""
        self.lines.append("    " * indent + text)

    def loop(self, indent, index, size):
        """Adds the head of a loop."""
        self.line(indent, f"for {index} in range({size}):")

    def text(self, emitter):
        """(source text, source files it needs)."""
        head = f'@jit("void({", ".join(self.types)})")\ndef kernel({", ".join(self.arguments)}):'
        includes = tuple(sorted(emitter.includes))
        return "\n".join([head, *self.lines]) + "\n", includes


def step(loop, name):
    """The argument with an operand's stride along a loop: begun by the loop, ended by the operand.

    So it is no operand's name, whatever symbols a formula has: those begin with s_.
    """
    return f"{loop}_step_{name}"


def index_text(name, loops, inner, inner_class):
    """`i0 * i0_step_x + i1 * i1_step_x + j` for the loops an operand depends on."""
    parts = [f"{i} * {step(i, name)}" for i in loops]
    if inner is not None and inner_class != 0:
        parts.append(inner if inner_class == 1 else f"{inner} * {step(inner, name)}")
    return " + ".join(parts) or "0"


def operand_names(program, n_outputs):
    """The names of inputs and outputs in the text."""
    return [f"s_{n}" for n in program.inputs], [f"out{k}" for k in range(n_outputs)]


def renamed_outputs(program):
    """Outputs with prefixed symbols, so that a formula's `n` or `j` never meets a loop's."""
    mapping, cache = {n: symbol(f"s_{n}") for n in program.inputs}, {}
    return [substitute(e, mapping, cache) for e in program.outputs]


START = {"sum": "0", "mean": "0", "prod": "1", "any": "False", "all": "True"}
LIMITS = {
    "uint8": ("0", "255"),
    "int32": ("-2147483648", "2147483647"),
    "int64": ("-9223372036854775807 - 1", "9223372036854775807"),
}


def combine(how, acc, value, real_kind):
    """One step of a reduction: the text of acc combined with value."""
    if how in ("sum", "mean"):
        return f"{acc} + {value}"
    if how == "prod":
        return f"{acc} * {value}"
    if how in ("any", "all"):
        return f"{acc} {'|' if how == 'any' else '&'} {value}"
    sign = ">" if how == "max" else "<"
    nan = f" or {value} != {value}" if real_kind == "f" else ""
    return f"{value} if {value} {sign} {acc}{nan} else {acc}"


def gathered(how, acc, value, kind):
    """`combine` for loops that become vector code: LLVM may reorder sums and products of floats."""
    if kind == "f" and how in ("sum", "mean"):
        return f"plus({acc}, {value})"
    if kind == "f" and how == "prod":
        return f"times({acc}, {value})"
    return combine(how, acc, value, kind)


def start_value(how, kind, real, integer="int64"):
    """What a reduction begins with; integer: the type in which one of ints gathers."""
    if how in ("any", "all"):
        return START[how]
    if how in START:
        return f"{real}({START[how]})" if kind == "f" else f"I8({START[how]})"
    if kind == "f":
        return f"{real}({'-' if how == 'max' else ''}math.inf)"
    if kind == "b":
        return "False" if how == "max" else "True"
    return f"I8({LIMITS[integer][how == 'min']})"


def stored_as(text, dtype):
    """A value as an element of a dtype."""
    if dtype.kind == "b":
        return f"U1(1) if ({text}) else U1(0)"
    return f"{TYPE_OF[dtype.name]}({text})"


def elementwise_text(program, kinds, rank, inner, in_place=False):
    """A loop nest over `rank` dimensions; rank 0: contiguous operands and one size.

    Args:
        kinds: per input and output its DType, or 'f' / 'i' for a scalar.
        inner: per array its innermost stride class, when rank > 0.
        in_place: whether the first output is the first input.
    """
    kernel, (names, outs) = Kernel(), operand_names(program, len(program.outputs))
    everything = [*names, *outs]
    kernel.operands(everything, kinds)
    arrays = [n for n, k in zip(everything, kinds, strict=True) if not isinstance(k, str)]
    flat = rank == 0
    outer = [f"i{d}" for d in range(rank - 1)] if not flat else []
    sizes = [kernel.argument(f"n_{i}") for i in (*outer, "j")]
    classes = dict.fromkeys(arrays, 1) if flat else dict(zip(arrays, inner, strict=True))
    if not flat:
        for name in arrays:
            for i in (*outer, "j"):
                kernel.argument(step(i, name))
    operands = [
        Operand(n, k, None, False)
        if isinstance(k, str)
        else Operand(n, k, index_text(n, outer, "j", classes[n]), classes[n] != 0)
        for n, k in zip(everything, kinds, strict=True)
    ]
    emitter = Emitter(operands, real_type(program, kinds))
    emitter.start_pass()
    if in_place:
        operands[len(names)] = operands[0]
    values = [
        emitter.stored(e, o.kind)
        for e, o in zip(renamed_outputs(program), operands[len(names) :], strict=True)
    ]
    for depth, (i, size) in enumerate(zip(outer, sizes, strict=False)):
        kernel.loop(1 + depth, i, size)
    base = 1 + len(outer)
    for text in emitter.row:
        kernel.line(base, text)
    kernel.loop(base, "j", sizes[-1])
    for text in emitter.lines:
        kernel.line(base + 1, text)
    for o, value in zip(operands[len(names) :], values, strict=True):
        kernel.line(base + 1, f"{o.name}[{o.index}] = {value}")  # after all loads: may be in place
    return kernel.text(emitter)
