"""Turns expressions into statements of a kernel, with conversions and shared parts."""

from typing import NamedTuple

from minigrad.array.dtypes import DType, by_name, float32, real_of
from minigrad.formulas.expression import LOGIC, ROW_REDUCTIONS, Expression, symbol
from minigrad.formulas.kinds import OWN, WHOLE, Kinds, result_kind

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
COMPARE = {
    "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==",
    "not_equal": "!=",
}  # fmt: skip
LIBRARY = {"sqrt": "math.sqrt", "floor": "np.floor", "ceil": "np.ceil", "round": "np.rint"}


class Operand(NamedTuple):
    """The location of a symbol: `name[index]`, or a scalar argument if index is None.

    kind: an array's DType, or 'f' / 'i' for a scalar. varies: whether it does in the inmost loop.
    """

    name: str
    kind: DType | str
    index: str | None
    varies: bool


def real_type(program, kinds):
    """Return the dtype that a kernel computes in: program.real, or the dtype of its arrays."""
    return program.real or real_of(k for k in kinds if isinstance(k, DType))


def is_below_maximum(e):
    """Return whether e is x - row_max(x), which is never above 0."""
    return e.op == "sub" and e.args[1] is Expression("row_max", e.args[0])


class Emitter:
    """Statements for expressions over operands.

    Statements for a row go to `row`, those for an element to `lines`. Constants and functions have
    the kernel's real type. Ints are computed as int64. Bools become numbers by an explicit
    conditional. A value that does not vary along the inner loop is computed once per row.
    """

    def __init__(self, operands, real, kinds=None):
        self.operands = {o.name: o for o in operands}
        self.real, kinds = real, kinds or Kinds()
        for o in self.operands.values():
            kinds.declare(symbol(o.name), o.kind)
        self.kind = kinds.of  # returns the kind of a formula: 'f', 'i' or 'b'
        self.row, self.lines = [], []
        self.row_names, self.names = {}, {}
        self.count = 0
        self.includes = set()  # files of source/ whose functions the text calls
        self._varies = {}

    def start_pass(self):
        """Start a new loop over the row, and forget the values of elements."""
        self.row, self.lines, self.names = [], [], {}

    def include_mathematics(self):
        """Include mathematics.py for the kernel's type."""
        self.includes.add(f"mathematics.{self.real.lower()}")

    def new_name(self):
        """Return a fresh local name."""
        self.count += 1
        return f"t{self.count}"

    def varies(self, e):
        """Return whether a value differs between the elements of a row."""
        varies = self._varies.get(e)
        if varies is None:
            if e.op == "symbol":
                varies = self.operands[e.args[0]].varies
            elif e.op in ROW_REDUCTIONS:
                varies = False
            else:
                varies = e.op == "column_of" or any(
                    self.varies(a) for a in e.args if isinstance(a, Expression)
                )
            self._varies[e] = varies
        return varies

    def value(self, e, kind=None):
        """Return a name or literal for e, converted to a kind; add statements that compute it."""
        own = self.kind(e)
        kind = kind or own
        if e.op == "constant":
            return self._constant(e.args[0], kind)
        if e.op == "column_of":
            text = "j"
        else:
            names, lines = (
                (self.names, self.lines) if self.varies(e) else (self.row_names, self.row)
            )
            text = names.get(e)
            if text is None:
                assert e.op not in ROW_REDUCTIONS, f"{e} is read before its pass"
                code = self._code(e)
                text = self.new_name()
                lines.append(f"{text} = {code}")
                names[e] = text
        return self._convert(text, own, kind)

    def _constant(self, value, kind):
        if kind == "b":
            return str(bool(value))
        if kind == "i":
            return f"I8({int(value)})"
        text = repr(float(value)).replace("inf", "math.inf").replace("nan", "math.nan")
        return f"{self.real}({text})"

    def _convert(self, text, own, kind):
        if own == kind:
            return text
        number = "I8" if "i" in (own, kind) else self.real
        if own == "b":
            return f"({number}(1) if {text} else {number}(0))"
        if kind == "b":
            return f"({text} != {number}(0))"
        return f"I8({text})" if kind == "i" else f"{self.real}({text})"

    def _code(self, e):
        op, args = e.op, e.args
        if op == "symbol":
            return self._load(self.operands[args[0]])
        kind = self.kind(e)
        if op in COMPARE:
            common = result_kind("maximum", [self.kind(x) for x in args])
            a, b = (self.value(x, common) for x in args)
            return f"{a} {COMPARE[op]} {b}"
        if op in LOGIC:
            values = [self.value(a, "b") for a in args]
            if op == "logical_not":
                return f"not {values[0]}"
            return f"{values[0]} {'&' if op == 'logical_and' else '|'} {values[1]}"
        if op == "where":
            condition = self.value(args[0], "b")
            a, b = (self.value(x, kind) for x in args[1:])
            return f"{a} if {condition} else {b}"
        if op.startswith("as_"):
            return self._as_stored(args[0], by_name(op[3:]))
        values = [self.value(a, kind) for a in args]
        if op in WHOLE and kind == "i":
            self.includes.add("powers")
            return f"{op}_i8({values[0]}, {values[1]})"
        wide = self.in_float64(op, values) if op in WHOLE else None
        if op in OWN:
            self.include_mathematics()
            name = "exp_of_negative" if op == "exp" and is_below_maximum(args[0]) else op
            return wide or f"{name}_{self.real.lower()}({', '.join(values)})"
        if op in INFIX:
            return f"{values[0]} {INFIX[op]} {values[1]}"
        if op == "pow":  # if y is one number, LLVM makes a loop for each case: products are fast
            x, y, two, three = *values, f"{self.real}(2)", f"{self.real}(3)"
            cube, other = f"{x} * {x} * {x}", wide or f"{x} ** {y}"
            return f"{x} * {x} if {y} == {two} else {cube} if {y} == {three} else {other}"
        if op in ("maximum", "minimum"):
            a, b = values
            sign = ">" if op == "maximum" else "<"
            # As in NumPy, NaN wins: its comparisons are false. Of equals (0, -0) the second wins.
            nan = f" or {a} != {a}" if kind == "f" else ""
            return f"{a} if {a} {sign} {b}{nan} else {b}"
        if op == "neg":
            return f"-{values[0]}"
        if op == "abs":
            return f"abs({values[0]})"
        if op == "cast_float":
            return values[0]
        if op in LIBRARY:
            return f"{LIBRARY[op]}({values[0]})" if kind == "f" else values[0]
        raise AssertionError(f"no code for {op}")

    def in_float64(self, op, values):
        """Return the text of a function of floats for which their type is too short, or None."""
        if self.real != float32.text:
            return None
        self.includes.add("in_float64")
        return f"{op}_in_f8({', '.join(values)})"

    def _as_stored(self, e, dtype):
        """Return the text of e as if it was stored to an array of `dtype` and loaded again."""
        own = dtype.text
        if dtype.kind == "b":
            return self.value(e, "b")
        if dtype.is_float:
            text = self.value(e, "f")
            if own == self.real:
                return f"{own}({text})"
            return self.number(self.cell(text, dtype), dtype)
        text = self.value(e, "i" if self.kind(e) == "b" else None)
        return f"I8({own}({text}))"

    def cell(self, text, dtype):
        """Return the text of a float of the kernel's type as an element of another float dtype."""
        return f"{dtype.text}({text})"

    def number(self, text, dtype):
        """Return the text of an element of another float dtype as a float of the kernel's type."""
        return f"{self.real}({text})"

    def element(self, operand):
        """Return the text of an operand's element in memory."""
        return f"{operand.name}[{operand.index}]"

    def _load(self, operand):
        if operand.index is None:
            return f"{self.real if operand.kind == 'f' else 'I8'}({operand.name})"
        text, kind = self.element(operand), operand.kind
        assert isinstance(kind, DType)
        if kind.kind == "b":
            return f"{text} != U1(0)"
        if kind.is_float and kind.text != self.real:
            return self.number(text, kind)
        wanted = self.real if kind.is_float else "I8"
        return text if kind.text == wanted else f"{wanted}({text})"

    def stored(self, e, dtype):
        """Return the text of e as an element of `dtype`."""
        if dtype.kind == "b":
            return f"U1(1) if {self.value(e, 'b')} else U1(0)"
        kind = self.kind(e)
        text = self.value(e, "f" if dtype.is_float else "i" if kind == "b" else None)
        have = self.real if dtype.is_float or kind == "f" else "I8"
        return text if have == dtype.text else self.cell(text, dtype)
