"""Identities of formulas: each row is exact on the edge values of its kinds, fires, and fuses."""

import itertools
import re

import numpy as np
import pytest

import minigrad as mg
from minigrad.compiler.fuse.fused_loop import Loop
from minigrad.compiler.fuse.piece import piece_of
from minigrad.compiler.program.identities import FORMULAS, IDENTITIES, NUMBERS, Rewrite
from minigrad.compiler.program.sketch import Sketch
from minigrad.devices.backend import device_of
from minigrad.formulas.expression import Expression, Program, substitute, symbol, symbols_of
from minigrad.formulas.kinds import Kinds

SMALLEST = {"float32": 1e-45, "float64": 5e-324}  # subnormal
INTS = np.iinfo(np.int64)
EDGES = {
    "float32": [0.0, -0.0, 1.0, -1.5, 2.5, np.inf, -np.inf, np.nan, SMALLEST["float32"], 3.4e38],
    "float64": [0.0, -0.0, 1.0, -1.5, 2.5, np.inf, -np.inf, np.nan, SMALLEST["float64"], 1.7e308],
    "int64": [0, 1, -1, 7, INTS.min, INTS.max],
    "bool": [False, True],
}
CASES = [
    pytest.param(row, dtype, id=f"{row.pattern}-{dtype}")
    for row in IDENTITIES
    for dtype in EDGES
    if np.dtype(dtype).kind in row.kinds
]


def written(formula, true=2.5):
    """A side of a row with numbers for `true` and `false`."""
    numbers = {NUMBERS[0]: Expression("constant", true), NUMBERS[1]: Expression("constant", 0)}
    mapping = {s.args[0]: numbers.get(s, s) for s in (*FORMULAS, *NUMBERS)}
    return substitute(formula, mapping, {})


def kinds_of(dtype):
    kinds = Kinds()
    for s in FORMULAS:
        kinds.declare(s, np.dtype(dtype).kind)
    return kinds


def bits(x):
    """The bits of an array, where every NaN is one value."""
    if x.dtype.kind != "f":
        return x
    return np.where(np.isnan(x), -1, x.view(f"i{x.itemsize}"))


@pytest.mark.parametrize(("row", "dtype"), CASES)
def test_both_sides_are_equal_to_the_bit(row, dtype):
    n = len(EDGES[dtype])
    values = [
        np.array(x, dtype) for x in zip(*itertools.product(EDGES[dtype], repeat=3), strict=True)
    ]
    inputs = {s.args[0]: mg.variable(x) for s, x in zip(FORMULAS, values, strict=True)}
    sides, kinds = [], kinds_of(dtype)
    for formula in (written(row.pattern), written(row.equals)):
        names = sorted(symbols_of(formula))
        out = mg.zeros(n**3, dtype="bool" if kinds.of(formula) == "b" else dtype)
        used = [inputs[name].array for name in names]
        device_of(out.array).elementwise(Program(names, [formula]), used, [out.array])
        sides.append(bits(out.numpy()))
    np.testing.assert_array_equal(*sides)


@pytest.mark.parametrize(("row", "dtype"), CASES)
def test_each_row_fires_in_every_order_of_a_commutative_operation(row, dtype):
    pattern, wanted = written(row.pattern), Rewrite(kinds_of(dtype))(written(row.equals))
    assert Rewrite(kinds_of(dtype))(pattern) is wanted
    if pattern.op in ("add", "mul", "maximum", "minimum", "equal", "not_equal"):
        assert Rewrite(kinds_of(dtype))(Expression(pattern.op, *pattern.args[::-1])) is not pattern


x, y, n = symbol("x"), symbol("y"), symbol("n")


@pytest.mark.parametrize(
    "formula",
    [
        x + 0.0,  # 0.0 of -0.0
        x - -0.0,
        x * 0.0,
        n * 1.0,  # a float, not n
        n / 1,
        -n / -n,  # of the least int, which is its own negative
        x - -n,  # as well
        -Expression("as_float32", -x),  # it was rounded
        Expression("as_int32", x) * 1.0,
        -(x - y),  # -0.0 where they are equal, and y - x is 0.0
        Expression("logical_not", Expression("logical_not", x)),  # a bool, not x
    ],
)
def test_what_is_not_equal_stays(formula):
    kinds = Kinds()
    for s, kind in ((x, "f"), (y, "f"), (n, "i")):
        kinds.declare(s, kind)
    assert Rewrite(kinds)(formula) is formula


def test_a_nan_as_a_number_equals_no_constant():
    kinds = kinds_of("float64")
    formula = FORMULAS[0] * float("nan")
    assert Rewrite(kinds)(formula) is formula


@pytest.mark.parametrize("device", ["cpu", "simt"])
def test_lines_of_a_step_simplify_together(device):
    def step(x):
        minus = -x
        return -minus, x - minus

    with mg.device(device):
        x = mg.variable([1.0, -0.0, float("nan")])
        compiled = mg.compile(step)
        for got, wanted in zip(compiled(x), step(x), strict=True):
            np.testing.assert_array_equal(
                bits(got.to("cpu").numpy()), bits(wanted.to("cpu").numpy())
            )
        source = compiled.source()
    assert " + " in source
    assert not re.search(r"[=(] *-", source), source


def test_a_load_that_decides_the_type_of_the_kernel_stays():
    s = Sketch()
    a, c = s.argument((4,)), s.argument((4,), "float64")
    x, y = symbol("a"), symbol("c")
    same = Expression("where", Expression("greater", y, Expression("constant", 0.0)), x * x, x * x)
    for wide, loads in ((c, 2), (s.argument((4,)), 1)):
        s.elementwise(Program(["a", "c"], [same]), (a, wide))
        loop = Loop(piece_of(s.instructions[-1]))
        loop.simplify()
        assert len(loop.loads) == loads
