"""Small computations that passes look for, written out in full rather than left to chance.

A composition is a function of (s, x, y, w) that writes instructions to the Sketch s and returns the
Ref of what it computed. x and y are two Refs of one shape; w is memory of that shape, of which
nothing else is shown, to be written as the composition likes.

`COMPOSITIONS` has them by kind. A pass that looks for something new needs a composition that has
it: add a generator below, and the table at the end.
"""

from itertools import pairwise, product

from minigrad.array.dtypes import bool_
from minigrad.compiler.program.program import Ref
from minigrad.compiler.program.sketch import transposed, view
from minigrad.formulas import expression as e
from minigrad.formulas.expression import IDENTITY, Program, symbol
from minigrad.ops.base import Elementwise
from minigrad.ops.table import registry

NUMBERS = (
    *(0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 8.0, -4.0, 3.0, 0.1, float("inf"), float("nan")),
    *(0, 1, -1, 2),  # as ints, which a formula of floats takes as floats
)
FACTORS = (0.0, -1.0, 2.0, 0.5, 3.0)
REDUCTIONS = ("sum", "mean", "max", "min", "prod")
A = symbol("a")
ROWS = (
    (Program(["a"], [e.exp(A - e.row_max(A)) / e.row_sum(e.exp(A - e.row_max(A)))]), ("store",)),
    (Program(["a"], [A - e.row_mean(A), e.row_sum(A)]), ("store", "row")),
    (Program(["a"], [A * e.row_max(A), A * 2.0]), ("store", "columns")),
)


def _table(count):
    """The elementwise ops of the engine that take so many arrays; a trace has their Programs."""
    return {
        name: op
        for name, op in registry.items()
        if issubclass(op, Elementwise)
        and not op.program.depth
        and len(op.inputs) - len(op.numbers) == count
    }


UNARY, BINARY = _table(1), _table(2)
OF_FLOATS = [n for n, op in UNARY.items() if op.result != "bool"]
COMPARISONS = [n for n, op in BINARY.items() if op.result == "bool" and "logical" not in n]
ARITHMETIC = ["add", "sub", "mul", "div", "maximum", "minimum"]


def op(s, name, *inputs, out=None):
    """An op of the table on Refs and numbers, as a trace writes it down."""
    found = registry[name]
    dtype = bool_ if found.result == "bool" else None
    if dtype is None and name == "where":
        dtype = next((x.dtype for x in inputs[1:] if isinstance(x, Ref)), None)
    program = found.program
    return s.elementwise(program, (*inputs, *found.numbers), out=out, dtype=dtype)


# -- formulas ------------------------------------------------------------------------------------


def unary_after_unary():
    """f(g(x)), for all of them: neg of neg, abs of neg, exp of log, floor of floor, ..."""
    for f, g in product(UNARY, OF_FLOATS):
        yield lambda s, x, y, w, f=f, g=g: op(s, f, op(s, g, x))
    for f, g in product(["neg", "abs", "sqrt", "floor", "relu"], repeat=2):
        yield lambda s, x, y, w, f=f, g=g: op(s, f, op(s, g, op(s, f, x)))


def unary_within_one_formula():
    """f(g(x)) as the formula of one instruction."""
    for f, g in product(["neg", "abs", "sqrt", "floor", "exp", "log"], repeat=2):
        program = Program(["x"], [e.call(f, e.call(g, symbol("x")))])
        yield lambda s, x, y, w, program=program: s.elementwise(program, (x,))


def binary_with_a_number():
    """x op c and c op x: powers of two, 0, -0, 1, -1, infinity, NaN."""
    for name, c in product(BINARY, NUMBERS):
        yield lambda s, x, y, w, n=name, c=c: op(s, n, x, c)
        yield lambda s, x, y, w, n=name, c=c: op(s, n, c, x)


def binary_with_itself():
    """Both operands one value, and both orders of two: x - x, x / x, x + y beside y + x."""
    for name in BINARY:
        yield lambda s, x, y, w, n=name: op(s, n, x, x)
        yield lambda s, x, y, w, n=name: op(s, n, op(s, "neg", x), op(s, "neg", x))
        yield lambda s, x, y, w, n=name: op(s, "not_equal", op(s, n, x, y), op(s, n, y, x))


def numbers_in_a_chain():
    """(x op c) op d, and c op (d op x): two steps that look like one."""
    for f, g in product(["add", "sub", "mul", "div"], repeat=2):
        for c, d in product(FACTORS, repeat=2):
            yield lambda s, x, y, w, f=f, g=g, c=c, d=d: op(s, g, op(s, f, x, c), d)
            yield lambda s, x, y, w, f=f, g=g, c=c, d=d: op(s, g, c, op(s, f, d, x))


def binary_after_unary():
    """f(x) op x, f(x) op y, f(x op y): x + -x, x * (1 / x), x - (-y), -(x - y), ..."""
    for f, name in product(OF_FLOATS, ARITHMETIC):
        yield lambda s, x, y, w, f=f, n=name: op(s, n, op(s, f, x), x)
        yield lambda s, x, y, w, f=f, n=name: op(s, n, y, op(s, f, x))
        yield lambda s, x, y, w, f=f, n=name: op(s, f, op(s, n, x, y))


def binary_after_binary():
    """(x op y) op' y and the like: inverses, common factors, the same value twice."""
    for f, g in product(ARITHMETIC, repeat=2):
        yield lambda s, x, y, w, f=f, g=g: op(s, g, op(s, f, x, y), y)
        yield lambda s, x, y, w, f=f, g=g: op(s, g, x, op(s, f, y, x))
        yield lambda s, x, y, w, f=f, g=g: op(s, g, op(s, f, x, y), op(s, f, x, y))
        yield lambda s, x, y, w, f=f, g=g: op(s, g, op(s, f, x, w), op(s, f, y, w))


def choices():
    """Comparisons, what is made of them, and what they choose."""
    for name in COMPARISONS:
        yield lambda s, x, y, w, n=name: op(s, "logical_not", op(s, n, x, y))
        yield lambda s, x, y, w, n=name: op(s, n, op(s, "neg", x), op(s, "neg", y))
        yield lambda s, x, y, w, n=name: op(s, "where", op(s, n, x, y), x, y)
        yield lambda s, x, y, w, n=name: op(s, "where", op(s, n, x, y), y, y)
        yield lambda s, x, y, w, n=name: op(s, "where", op(s, n, x, y), 1.0, 0.0)
        yield lambda s, x, y, w, n=name: s.copy(op(s, n, x, y), dtype=x.dtype)
        yield lambda s, x, y, w, n=name: _chosen_twice(s, op(s, n, x, y), x, y)
    for c in (True, False, 1.0, 0.0, -0.0, float("nan")):
        yield lambda s, x, y, w, c=c: op(s, "where", c, x, y)
    for f, g in product(COMPARISONS, repeat=2):
        for name in ("logical_and", "logical_or"):
            yield lambda s, x, y, w, n=name, f=f, g=g: op(s, n, op(s, f, x, y), op(s, g, x, y))


def _chosen_twice(s, mask, x, y):
    """One mask chooses, its contrary chooses from that."""
    return op(s, "where", op(s, "logical_not", mask), op(s, "where", mask, x, y), x)


# -- reductions and rows -------------------------------------------------------------------------


def reductions():
    """Reductions after elementwise ops and the other way round, and of reductions."""
    for how, name in product(REDUCTIONS, ["neg", "abs", "exp", "square", "relu"]):
        yield lambda s, x, y, w, h=how, n=name: s.reduce(h, op(s, n, x), (0,))
        yield lambda s, x, y, w, h=how, n=name: op(s, n, s.reduce(h, x, _last(x)))
    for how, name in product(REDUCTIONS, ["add", "mul", "div"]):
        yield lambda s, x, y, w, h=how, n=name: s.reduce(h, op(s, n, x, 2.0), _last(x))
        yield lambda s, x, y, w, h=how, n=name: s.reduce(h, op(s, n, x, y), _last(x))
    for first, then in product(REDUCTIONS, repeat=2):
        yield lambda s, x, y, w, a=first, b=then: s.reduce(b, s.reduce(a, x, _last(x)), (0,))
    for how, c in product(REDUCTIONS, (0.0, -0.0, 1.0, 2.0, 0.1, float("inf"))):
        yield lambda s, x, y, w, h=how, c=c: s.reduce(h, s.fill(c, x.shape, dtype=x.dtype), (0,))


def rows():
    """Formulas along rows after elementwise ops, before them, and of copies."""
    for (program, modes), name in product(ROWS, ["neg", "abs", "exp", "square", "relu"]):
        yield lambda s, x, y, w, p=program, m=modes, n=name: _row(s, p, m, op(s, n, x))
        yield lambda s, x, y, w, p=program, m=modes, n=name: op(s, n, _row(s, p, m, x))
    for program, modes in ROWS:
        yield lambda s, x, y, w, p=program, m=modes: _row(s, p, m, s.copy(op(s, "mul", x, 1.0)))
        yield lambda s, x, y, w, p=program, m=modes: _row(s, p, m, s.copy(transposed(x)))


def _row(s, program, modes, x):
    """The first output of a formula along rows."""
    kinds = {"store": x.shape, "row": (*x.shape[:-1], 1), "columns": x.shape[-1:]}
    first, *others = [s.temporary(kinds[m], x.dtype) for m in modes]
    s.instruct("rows", (x,), first, program=program, modes=modes, shape=x.shape)
    s.instructions[-1].outputs += tuple(others)
    return first


def _last(x):
    return (len(x.shape) - 1,)


# -- memory --------------------------------------------------------------------------------------


def views_of_views():
    """Copies of views of views, read by what accepts any layout; and copies of copies."""
    for f, g in product(VIEWS, repeat=2):
        yield lambda s, x, y, w, f=f, g=g: s.copy(g(f(x)))
        yield lambda s, x, y, w, f=f, g=g: op(s, "exp", s.copy(g(s.copy(f(x)))))
        yield lambda s, x, y, w, f=f, g=g: op(s, "exp", g(s.copy(f(op(s, "neg", x)))))
    for f in VIEWS:
        yield lambda s, x, y, w, f=f: s.copy(s.copy(s.copy(f(x))))
        yield lambda s, x, y, w, f=f: _written_view(s, f, x, w)


def _written_view(s, f, x, w):
    """A view of memory is written; all of it is read."""
    op(s, "exp", f(x), out=f(w))
    return s.copy(w)


def _first_half(x):
    n = -(-x.shape[0] // 2)
    return Ref(x.value, (n, *x.shape[1:]), x.strides, x.offset)


def _every_other(x):
    n = -(-x.shape[0] // 2)
    return Ref(x.value, (n, *x.shape[1:]), (2 * x.strides[0], *x.strides[1:]), x.offset)


def _backwards(x):
    offset = x.offset + (x.shape[0] - 1) * x.strides[0]
    return Ref(x.value, x.shape, (-x.strides[0], *x.strides[1:]), offset)


VIEWS = (transposed, _first_half, _every_other, _backwards, lambda x: view(x, x.shape, x.strides))
PARTS = (lambda x: x, _first_half, _every_other)


def written_in_between():
    """What was read, copied or computed is read again after a write to all or a part of it."""
    for part, name in product(PARTS, ["neg", "exp", "square"]):
        for target in ("w", "new"):
            yield lambda s, x, y, w, p=part, n=name, t=target: _again(
                s, n, x, p, w if t == "w" else op(s, "neg", y)
            )
    for part in PARTS:
        yield lambda s, x, y, w, p=part: _copied(s, x, p, w)
        yield lambda s, x, y, w, p=part: _copied(s, x, p, op(s, "neg", y))
        yield lambda s, x, y, w, p=part: _kept(s, x, y, p, w)
        yield lambda s, x, y, w, p=part: _sum_into(s, x, y, p)
    yield _exchanged


def _again(s, name, x, part, memory):
    """The same op before and after a write."""
    before = op(s, name, memory)
    s.copy(part(x), out=part(memory))
    return op(s, "sub", before, op(s, name, memory))


def _copied(s, x, part, memory):
    """A copy keeps what its source was."""
    before = s.copy(memory)
    op(s, "exp", part(x), out=part(memory))
    return op(s, "add", before, op(s, "neg", memory))


def _kept(s, x, y, part, w):
    """What is copied to memory and changed there does not change its source."""
    made = op(s, "add", x, y)
    s.copy(made, out=w)
    op(s, "mul", part(w), 2.0, out=part(w))
    return op(s, "sub", made, w)


def _sum_into(s, x, y, part):
    """A sum that begins as zeros, as sums of gradients do."""
    total = s.fill(0.0, x.shape, dtype=x.dtype)
    op(s, "add", part(total), part(x), out=part(total))
    op(s, "add", total, y, out=total)
    return total


def _exchanged(s, x, y, w):
    """Two pieces of memory exchange what they hold."""
    other = op(s, "exp", x)
    kept = s.copy(w)
    s.copy(other, out=w)
    s.copy(kept, out=other)
    return other


def fills_and_dead_values():
    """Memory filled with numbers, values that nothing reads, writes that are overwritten."""
    for name, c in product(ARITHMETIC, FACTORS):
        yield lambda s, x, y, w, n=name, c=c: op(s, n, x, s.fill(c, x.shape, dtype=x.dtype))
    for f, g in pairwise(OF_FLOATS):
        yield lambda s, x, y, w, f=f, g=g: _unread(s, f, g, x, w)


def _unread(s, f, g, x, w):
    """A value that nothing reads, and a write that another overwrites."""
    op(s, f, x)
    op(s, f, x, out=w)
    op(s, g, x, out=w)
    return s.elementwise(IDENTITY, (w,))


SUMS = {"reductions", "rows"}  # over special numbers most are NaN: also run over common ones
COMPOSITIONS = {
    make.__name__: list(make())
    for make in (
        unary_after_unary,
        unary_within_one_formula,
        binary_with_a_number,
        binary_with_itself,
        numbers_in_a_chain,
        binary_after_unary,
        binary_after_binary,
        choices,
        reductions,
        rows,
        views_of_views,
        written_in_between,
        fills_and_dead_values,
    )
}
