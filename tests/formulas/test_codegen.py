"""Generated kernels: the rules of their text, each with what goes wrong without it."""

import ast
import itertools
import re
import subprocess
import sys

import numpy as np
import pytest

import minigrad as mg
from minigrad.array.array import Array, ndarray
from minigrad.array.dtypes import bool_, float32, float64, int32, int64, uint8
from minigrad.devices import loader
from minigrad.devices.backend import device_named
from minigrad.errors import ArgumentTypeError
from minigrad.formulas import expression as e
from minigrad.formulas.codegen import elementwise_text
from minigrad.formulas.expression import Program, symbol
from minigrad.formulas.reduce_codegen import reduce_text
from minigrad.formulas.row_codegen import rows_text
from minigrad.ops import base, table

_ = table  # loading it fills the registry
CPU = device_named("cpu")


def program(function, names):
    outputs = function(*map(symbol, names))
    return Program(names, outputs if isinstance(outputs, tuple) else (outputs,))


def array(values):
    values = np.asarray(values)
    return CPU.from_numpy(values, mg.variable(values).dtype)


def elementwise(function, names, inputs, dtypes, shape=None):
    """The outputs of one kernel, as ndarrays."""
    shapes = [x.shape for x in inputs if isinstance(x, Array)]
    shape = np.broadcast_shapes(*shapes) if shape is None else shape
    outs = [CPU.empty(shape, d) for d in dtypes]
    CPU.elementwise(program(function, names), inputs, outs)
    return [ndarray(o).copy() for o in outs]


def flat_text(function, names, kinds):
    return elementwise_text(program(function, names), kinds, 0, None)[0]


def body(text, marker):
    """The lines of the innermost loop headed by a line that contains `marker`."""
    lines = text.split("\n")
    at = next(k for k, line in enumerate(lines) if marker in line)
    indent = len(lines[at]) - len(lines[at].lstrip())
    inside = itertools.takewhile(
        lambda line: len(line) - len(line.lstrip()) > indent, lines[at + 1 :]
    )
    return [line.strip() for line in inside]


# -- loads before stores -------------------------------------------------------------------------


def test_text_loads_everything_before_it_stores_anything():
    text = flat_text(lambda a, b: (a + b, a - b, b), ["a", "b"], (float32,) * 5)
    lines = body(text, "for j in")
    first_store = next(k for k, line in enumerate(lines) if line.startswith("out"))
    assert all(line.startswith("out") for line in lines[first_store:])
    assert sum("s_a[j]" in line for line in lines[:first_store]) == 1
    assert not any("s_" in line for line in lines[first_store:])


def test_outputs_may_be_the_inputs():
    a, b = array([1.0, 2.0, 3.0]), array([10.0, 20.0, 30.0])
    CPU.elementwise(program(lambda a, b: (a + b, a - b), ["a", "b"]), (a, b), (a, b))
    np.testing.assert_array_equal(ndarray(a), [11, 22, 33])
    np.testing.assert_array_equal(ndarray(b), [-9, -18, -27])


# -- row values ----------------------------------------------------------------------------------


def test_text_computes_what_does_not_vary_once_a_row():
    p = program(lambda x, c: x * e.exp(c) + 1.0, ["x", "c"])
    text, _ = elementwise_text(p, (float32,) * 3, 2, (1, 0, 1))
    assert not any("exp" in line or "s_c" in line for line in body(text, "for j in"))
    assert any("exp_f4" in line for line in body(text, "for i0 in"))


def test_text_converts_scalars_outside_all_loops_of_a_row():
    text = flat_text(lambda x, k: x * k, ["x", "k"], (float32, "f", float32))
    assert not any("F4(s_k)" in line for line in body(text, "for j in"))
    assert "F4(s_k)" in text


def test_text_computes_a_common_part_once():
    text = flat_text(lambda x: e.tanh(x) * e.tanh(x) + e.tanh(x), ["x"], (float32, float32))
    assert text.count("tanh_f4(") == 1


def test_the_text_of_a_formula_is_bounded_and_decides_nothing():
    a, b = symbol("a"), symbol("b")
    assert repr(e.where(a < 2.0, -b, a * b)) == "where(less(a, 2.0), neg(b), mul(a, b))"
    long = []
    for x in (e.sin(a), e.cos(a)):
        for _ in range(300):
            x = x * x
        long.append(Program(["a"], [x]))
    first, second = long
    assert repr(first) == repr(second)
    assert len(repr(first)) < 2000
    assert not first.is_same(second)
    assert first.is_same(Program(["a"], first.outputs))


def test_rows_text_reads_row_sums_before_the_loop_that_uses_them():
    p = program(lambda x: x / e.row_sum(e.exp(x - e.row_max(x))), ["x"])
    text, _ = rows_text(p, ("store",), (float32, float32), (1, 1))
    assert text.count("for j in range(n_j)") == 3  # the maximum, the sum, the quotients
    assert "exp_f4" not in "".join(text.split("for j in range(n_j)")[3:])


# -- the kernel's own dtype ----------------------------------------------------------------------


def test_text_constants_are_of_the_kernels_dtype():
    assert "F4(0.1)" in flat_text(lambda x: x * 0.1, ["x"], (float32, float32))
    assert "F8(0.1)" in flat_text(lambda x: x * 0.1, ["x"], (float64, float64))
    assert "F8(0.1)" in flat_text(lambda x, y: x * 0.1 + y, ["x", "y"], (float32, float64, float64))


def test_text_functions_are_of_the_kernels_dtype():
    for dtype, code in ((float32, "f4"), (float64, "f8")):
        text, includes = elementwise_text(program(e.exp, ["x"]), (dtype, dtype), 0, None)
        assert f"exp_{code}(" in text
        assert f"mathematics.{code}" in includes


FORMULAS = {
    "polynomial": lambda x: x * 0.5 + x * x - 3,
    "exp": e.exp,
    "log1p": e.log1p,
    "tanh": e.tanh,
    "sigmoid": e.sigmoid,
    "erf": e.erf,
    "sqrt and quotient": lambda x: 1.0 / e.sqrt(x + 2),
    "where": lambda x: e.where(x > 0.5, x, 0.1 * x),
    "maximum": lambda x: e.maximum(x, 0.25),
    "rounding": lambda x: e.floor(x) + e.round_(x) + e.ceil(x),
}


def ir_of_kernel(text, includes):
    """The LLVM code of the kernel function alone, without Numba's wrappers around it."""
    kernel = loader.load(text, includes).kernel
    ((_, code),) = kernel.inspect_llvm().items()
    functions = re.findall(r"^define .*?^}", code, re.MULTILINE | re.DOTALL)
    found = [f for f in functions if not re.match(r"define .*@[\"\w.]*(cpython|cfunc)", f)]
    return "\n".join(found)


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """Kernels compiled here and now: code from the cache cannot be inspected."""
    monkeypatch.setattr(loader, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(loader, "_modules", {})
    monkeypatch.setattr(loader, "loaded", [])


def test_float32_kernels_contain_no_float64_and_are_vectorised(fresh):
    p = Program(["x"], [f(symbol("x")) for f in FORMULAS.values()])
    text, includes = elementwise_text(p, (float32,) * (1 + len(FORMULAS)), 0, None)
    code = ir_of_kernel(text, includes)
    assert "float" in code
    assert not re.search(r"\bdouble\b", code)
    assert re.search(r"fmul .*<\d+ x float>", code)


@pytest.mark.parametrize("name", FORMULAS)
def test_every_formula_of_floats_is_vectorised_in_float64_too(name, fresh):
    p = program(FORMULAS[name], ["x"])
    code = ir_of_kernel(*elementwise_text(p, (float64, float64), 0, None))
    assert re.search(r"<\d+ x double>", code), f"{name}: no vector instruction"


# -- dtypes --------------------------------------------------------------------------------------


def test_output_dtype_is_that_of_the_op_not_of_the_formula():
    x = array(np.array([1, 2, 3], np.int64))
    as_float, as_int, as_small = elementwise(
        lambda x: (x * 2, x * 2, x * 200), ["x"], (x,), (float32, int64, uint8)
    )
    assert (as_float.dtype, as_int.dtype, as_small.dtype) == (np.float32, np.int64, np.uint8)
    np.testing.assert_array_equal(as_float, [2, 4, 6])
    np.testing.assert_array_equal(as_small, [200, 400 - 256, 600 - 512])


def test_ints_are_computed_as_int64_and_never_as_floats():
    big = 2**53 + 1  # not a float64
    (y,) = elementwise(lambda x: x + 0 * x, ["x"], (array(np.array([big])),), (int64,))
    assert y[0] == big
    small = array(np.array([2**31 - 1], np.int32))
    (y,) = elementwise(lambda x: x + 1, ["x"], (small,), (int32,))
    assert y[0] == -(2**31)


def test_int_with_float32_is_float32():
    (y,) = elementwise(
        lambda x, k: x + k, ["x", "k"], (array(np.float32([0.5])), array([3])), (float32,)
    )
    assert y[0] == 3.5


def test_bools_become_numbers_only_by_choice():
    text = flat_text(lambda x: (x > 0.0) * x, ["x"], (float32, float32))
    assert re.search(r"F4\(1\) if \w+ else F4\(0\)", text)
    x = array(np.float32([-1, 2, np.nan]))
    less, negated = elementwise(
        lambda x: (x < 0.0, e.logical_not(x < 0.0)), ["x"], (x,), (bool_, bool_)
    )
    np.testing.assert_array_equal(less, [True, False, False])
    np.testing.assert_array_equal(negated, [False, True, True])


def test_bool_memory_holds_zero_and_one_only():
    x = array(np.array([0, 5, -7]))
    out = CPU.empty((3,), bool_)
    CPU.elementwise(program(lambda x: x, ["x"]), (x,), (out,))
    np.testing.assert_array_equal(ndarray(out).view(np.uint8), [0, 1, 1])


def test_special_constants_are_written_as_they_are():
    x = array(np.float32([1.0, 2.0]))
    outs = elementwise(
        lambda x: (e.where(x > 1.0, float("nan"), x), e.where(x > 1.0, -float("inf"), x)),
        ["x"], (x,), (float32, float32),
    )  # fmt: skip
    np.testing.assert_array_equal(outs, [[1, np.nan], [1, -np.inf]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_and_infinities_survive_the_flags(dtype):
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], dtype)
    names = mg.variable(x).dtype
    outs = elementwise(
        lambda x: (x - x, x * 0.0, e.maximum(x, 0.5), e.where(e.equal(x, x), 1.0, 0.0)),
        ["x"], (array(x),), (names,) * 4,
    )  # fmt: skip
    with np.errstate(invalid="ignore"):
        want = [x - x, x * 0, np.maximum(x, dtype(0.5)), np.where(x == x, 1, 0)]
    np.testing.assert_array_equal(outs, want)


# -- strides -------------------------------------------------------------------------------------


def test_stride_class_is_part_of_the_kernel():
    p = program(lambda x, y: x + y, ["x", "y"])
    x, y = array(np.zeros((4, 6), np.float32)), array(np.zeros((4, 6), np.float32))
    out = CPU.empty((4, 6), float32)
    column, row = array(np.zeros((4, 1), np.float32)), array(np.zeros((6,), np.float32))
    half = array(np.zeros((4, 12), np.float32)).view((4, 6), (12, 2))
    for second in (y, row, column, half):
        CPU.elementwise(p, (x, second), (out,))
    classes = sorted(str(inner) for _, _, inner, _ in p.kernels)
    assert classes == ["(1, 0, 1)", "(1, 1, 1)", "(1, 2, 1)", "None"]
    count = len(p.kernels)
    CPU.elementwise(p, (x, array(np.zeros((4, 18), np.float32)).view((4, 6), (18, 3))), (out,))
    assert len(p.kernels) == count, "another stride of the same class takes the same kernel"


def test_text_reads_with_the_stride_of_the_class():
    p = program(lambda x, y, z: x + y + z, ["x", "y", "z"])
    text, _ = elementwise_text(p, (float32,) * 4, 1, (1, 0, 2, 1))
    assert "s_x[j]" in text
    assert "s_y[0]" in text
    assert "s_z[j * j_step_s_z]" in text


@pytest.mark.parametrize("rank", range(9))
def test_any_rank_to_eight_in_any_order_of_axes(rank):
    rng = np.random.default_rng(rank)
    shape = tuple(rng.integers(1, 4, rank))
    x, y = rng.normal(size=shape).astype("f4"), rng.normal(size=shape[::-1]).astype("f4")
    order = tuple(rng.permutation(rank))
    a = mg.variable(x).permute(order)
    b = mg.variable(y).T.permute(order)
    np.testing.assert_allclose((a * b).numpy(), x.transpose(order) * y.T.transpose(order))


# -- names ---------------------------------------------------------------------------------------

AWKWARD = [
    "n", "j", "i", "i0", "start", "part", "total", "value", "before", "out0", "t1", "s_x",
    "n_j", "n_i0", "x_at", "x", "x_j", "last", "kernel", "min", "F4", "math", "np", "lambda",
]  # fmt: skip


def awkward(*xs):
    total = xs[0]
    for k, x in enumerate(xs[1:]):
        total = total + (k + 2.0) * x
    return total


def test_formula_may_use_any_names_elementwise():
    rng = np.random.default_rng(0)
    xs = rng.normal(size=(len(AWKWARD), 3, 5)).astype("f4")
    views = [array(np.ascontiguousarray(x.T)).view((3, 5), (1, 3)) for x in xs]
    (y,) = elementwise(awkward, AWKWARD, views, (float32,))
    np.testing.assert_allclose(y, awkward(*xs.astype("f8")), rtol=1e-4, atol=1e-4)


def test_formula_may_use_any_names_in_a_reduction():
    names = [*AWKWARD[:8], "n_r0", "n_n"]
    xs = np.random.default_rng(1).normal(size=(len(names), 4, 6)).astype("f4")
    for axes, kept in (((1,), (4,)), ((0,), (6,)), ((0, 1), ())):
        out = CPU.empty(kept, float32)
        CPU.reduce(program(awkward, names), "sum", [array(x) for x in xs], out, (4, 6), axes)
        want = awkward(*xs.astype("f8")).sum(axes)
        np.testing.assert_allclose(ndarray(out), want, rtol=1e-4, atol=1e-4)


def test_formula_may_use_any_names_in_rows():
    names = [*AWKWARD[:6], "n_i", "n_j"]
    xs = np.random.default_rng(2).normal(size=(len(names), 4, 6)).astype("f4")
    out = CPU.empty((4, 6), float32)
    p = program(lambda *xs: awkward(*xs) - e.row_max(xs[0]), names)
    CPU.rows(p, ("store",), [array(x) for x in xs], (out,), (4, 6))
    want = awkward(*xs.astype("f8")) - xs[0].max(1, keepdims=True)
    np.testing.assert_allclose(ndarray(out), want, rtol=1e-4, atol=1e-4)


# -- reductions ----------------------------------------------------------------------------------


def test_float32_sums_keep_their_accuracy_over_many_elements():
    x = np.full(3_000_001, 0.1, np.float32)
    want = x.astype(np.float64).sum()
    assert abs(mg.variable(x).sum().item() - want) / want < 5e-6
    assert abs(mg.variable(x).mean().item() - np.float64(np.float32(0.1))) < 5e-7


@pytest.mark.parametrize("how", ["max", "min"])
def test_extremes_of_a_row_with_nan_are_nan(how):
    x = np.array([[1, np.nan, 3], [4, 5, 6]], np.float32)
    y = getattr(mg.variable(x), how)(axis=1)
    np.testing.assert_array_equal(y.numpy(), getattr(x, how)(1))
    y = getattr(mg.variable(x), how)(axis=0)
    np.testing.assert_array_equal(y.numpy(), getattr(x, how)(0))


def test_reduce_text_keeps_the_inner_loop_over_neighbours():
    p = program(lambda x: x, ["x"])
    over_rows, _ = reduce_text(p, "sum", (float32, float32), 0, 1, "output", (1, 1))
    assert "for j in range(n_j)" in body(over_rows, "while r0 + 4 <= stop")[0]
    over_columns, _ = reduce_text(p, "sum", (float32, float32), 1, 1, "register", (1, 0))
    assert "total = F8(0)" in over_columns
    assert "part_total = F4(0)" in over_columns


# -- all ops -------------------------------------------------------------------------------------


def elementwise_ops():
    return [
        op for op in base.registry.values()
        if issubclass(op, base.Elementwise) and not issubclass(op, base.RowWise)
    ]  # fmt: skip


def test_text_of_every_op_is_python_of_short_lines_and_one_function():
    ops = elementwise_ops()
    assert len(ops) > 30
    for op, dtype in itertools.product(ops, (float32, float64, int64)):
        text, _ = elementwise_text(op.program, (dtype,) * (len(op.inputs) + 1), 0, None)
        (function,) = ast.parse(text).body
        assert isinstance(function, ast.FunctionDef)
        assert function.name == "kernel"
        assert max(map(len, text.split("\n"))) <= 100


def test_text_is_the_same_in_every_process():
    code = (
        "import hashlib\n"
        "from minigrad.array.dtypes import float32\n"
        "from minigrad.formulas.codegen import elementwise_text\n"
        "from minigrad.ops import base, table\n"
        "ops = [o for o in base.registry.values() if issubclass(o, base.Elementwise)"
        " and not issubclass(o, base.RowWise)]\n"
        "text = ''.join(str(elementwise_text(o.program, (float32,) * (len(o.inputs) + 1), 0, None))"
        " for o in ops)\n"
        "print(hashlib.sha256(text.encode()).hexdigest())\n"
    )
    found = set()
    for seed in "12":
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed},
        )  # fmt: skip
        found.add(done.stdout)
    assert len(found) == 1


def test_one_op_on_new_shapes_of_one_layout_compiles_nothing_more():
    mg.ones((3,)).exp()
    before = len(loader.loaded)
    for n in range(4, 40):
        mg.ones((n,)).exp()
        mg.ones((n, 2)).exp()
    assert len(loader.loaded) == before


def test_output_that_is_the_first_input_goes_through_one_pointer():
    p = program(lambda x, y: x * y + 1.0, ["x", "y"])
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    x, y = array(values), array(values)
    CPU.elementwise(p, (x, y), (x,))
    np.testing.assert_array_equal(ndarray(x), values * values + 1)
    text, _ = elementwise_text(p, (float32,) * 3, 0, None, True)
    assert "out0[" not in text  # through two pointers no vector loop would run
    assert "s_x[j] = " in text
    for row in (x.view((6, 4), (1, 6)), x.view((2, 3), (12, 2))):  # strided, too
        before = ndarray(row).copy()
        CPU.elementwise(p, (row, 2.0), (row,))
        np.testing.assert_array_equal(ndarray(row), before * 2 + 1)


@pytest.mark.parametrize(
    "formula", [lambda x: x if x > 0 else -x, lambda x: (x > 0) and x, lambda x: 1.0 * (x == 0)]
)
def test_a_choice_of_python_in_a_formula_raises(formula):
    with pytest.raises(ArgumentTypeError, match="stands for all elements at once"):
        formula(e.symbol("x"))


def test_other_threads_see_whole_expressions_only(monkeypatch):
    class Shared(dict):
        def setdefault(self, key, made):
            assert (made.op, made.depth >= 0, made.args) == (key[0], True, made.args)
            return super().setdefault(key, made)

        __setitem__ = None  # it would replace what another thread has published

    monkeypatch.setattr(e.Expression, "_interned", Shared())
    assert e.row_sum(symbol("x") * 2.5).depth == 1
    assert symbol("x") * 2.5 is symbol("x") * 2.5
