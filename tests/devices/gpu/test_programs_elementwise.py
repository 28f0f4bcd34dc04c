"""Elementwise programs on the simulated GPU, watched, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigrad.array.dtypes import as_dtype
from minigrad.devices.gpu import binding, kernel_text
from minigrad.devices.gpu.elementwise import programs
from minigrad.formulas import expression as e
from minigrad.formulas.expression import IDENTITY, Program, symbol
from tests.devices.gpu.layouts import (
    DTYPES,
    LAYOUTS,
    OUT_LAYOUTS,
    SIZES,
    arranged,
    numbers,
    off,
    on,
    plain,
    watched,
)

x, y = symbol("x"), symbol("y")
EDGES = [1, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 2047, 2048, 2049, 4100]


def run(formula, inputs, out_dtype, out=None, names="xyz"):
    """The result of a formula, by a new Program, so that nothing is remembered."""
    program = Program(names[: len(inputs)], [formula])
    shape = np.broadcast_shapes(*[np.shape(a) for a in inputs])
    target = on(watched, np.empty(shape, out_dtype) if out is None else out)
    operands = [on(watched, a) if isinstance(a, np.ndarray) else a for a in inputs]
    watched.elementwise(program, operands, (target,))
    return off(watched, target), program


@pytest.fixture
def chunks(monkeypatch):
    """Kernels for many elements, at any size."""
    monkeypatch.setattr(programs, "FEW", 0)


def forms(program):
    return [key[1] for key in program.kernels]


@pytest.mark.parametrize("n", EDGES)
def test_chunks_of_any_size(chunks, n):
    rng = np.random.default_rng(n)
    a, b = numbers(rng, n, "f4"), numbers(rng, n, "f4")
    got, program = run(x * 2.0 + y, (a, b), "f4")
    np.testing.assert_array_equal(got, a * 2 + b)
    assert forms(program)[0].vector


@pytest.mark.parametrize("n", [1, 31, 255, 256, 257, 1025])
def test_few_elements(n):
    rng = np.random.default_rng(n)
    a, b = numbers(rng, n, "f4"), numbers(rng, n, "f4")
    got, program = run(x * 2.0 + y, (a, b), "f4")
    np.testing.assert_array_equal(got, a * 2 + b)
    assert forms(program)[0].copies == 1


def test_many_elements_take_accesses_of_four():
    rng = np.random.default_rng(0)
    a = numbers(rng, programs.FEW + 5, "f4")
    got, program = run(x + 1.0, (a,), "f4")
    np.testing.assert_array_equal(got, a + 1)
    assert forms(program)[0].vector
    (kernel,) = program.kernels.values()
    assert "load4" in kernel.text
    assert "store4" in kernel.text


def test_a_view_that_begins_between_vectors_goes_element_by_element(chunks):
    rng = np.random.default_rng(0)
    a = numbers(rng, 3001, "f4")[1:]
    got, program = run(x + 1.0, (a,), "f4")
    np.testing.assert_array_equal(got, a + 1)
    assert not forms(program)[0].vector
    aligned = numbers(rng, 3004, "f4")[4:]
    got, program = run(x + 1.0, (aligned,), "f4")
    np.testing.assert_array_equal(got, aligned + 1)
    assert forms(program)[0].vector


@pytest.mark.parametrize("columns", [4, 7])
def test_rows_that_begin_between_vectors_go_element_by_element(chunks, columns):
    """Rows of a wider array, or of lengths that are no multiple of four."""
    rng = np.random.default_rng(0)
    a, b = numbers(rng, (600, 7), "f4")[:, :columns], numbers(rng, columns, "f4")
    got, program = run(x + y, (a, b), "f4")
    np.testing.assert_array_equal(got, a + b)
    assert not forms(program)[0].vector


def test_rows_that_end_within_a_vector(chunks):
    """Every row begins well, but four elements of one row would be of two."""
    wide = numbers(np.random.default_rng(0), (600, 8), "f4")
    got, program = run(x + 1.0, (wide[:, :7],), "f4", np.zeros((600, 8), "f4")[:, :7])
    np.testing.assert_array_equal(got, wide[:, :7] + 1)
    assert not forms(program)[0].vector


def test_a_program_remembers_both_alignments(chunks):
    """The same shapes and strides from another address: another kernel, not a broken access."""
    program, rng = Program("x", [x + 1.0]), np.random.default_rng(0)
    base = on(watched, numbers(rng, 4004, "f4"))
    out = on(watched, np.empty(4000, "f4"))
    for offset in (0, 1, 4, 0):
        watched.elementwise(program, (base.view((4000,), (1,), offset),), (out,))
        expected = watched.to_numpy(base)[offset:][:4000] + 1
        np.testing.assert_array_equal(watched.to_numpy(out), expected)
    assert len(program.kernels) == 2


@settings(max_examples=40, deadline=None)
@given(st.data(), st.lists(SIZES, min_size=1, max_size=4), st.booleans(), st.booleans())
def test_any_layouts(data, shape, many, narrow):
    shape = (shape[0], *[min(n, 9) for n in shape[1:]])
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    a, b = (arranged(rng, shape, data.draw(DTYPES), data.draw(LAYOUTS)) for _ in range(2))
    out = arranged(rng, shape, data.draw(DTYPES), data.draw(OUT_LAYOUTS))
    with pytest.MonkeyPatch.context() as patch:
        if many:
            patch.setattr(programs, "FEW", 0)
        if not narrow:
            patch.setattr(binding, "SMALL", 0)
        got, program = run(e.where(x < y, x, y), (a, b), out.dtype, out)
        assert forms(program)[0].narrow == narrow
    dtype = as_dtype(out.dtype)  # it rounds a float64 to bfloat16 once, ml_dtypes twice
    expected = dtype.numbers(dtype.cells(np.where(plain(a) < plain(b), plain(a), plain(b))))
    np.testing.assert_array_equal(got, expected)


@settings(max_examples=30, deadline=None)
@given(st.data(), st.integers(1, 40), st.sampled_from([4, 8, 12, 32]))
def test_rows_of_fours_with_broadcast_operands(data, rows, columns):
    rng = np.random.default_rng(rows)
    a = numbers(rng, (rows, columns), data.draw(DTYPES))
    shape = data.draw(st.sampled_from([(columns,), (rows, 1), (1, 1), (rows, columns)]))
    b = numbers(rng, shape, data.draw(DTYPES))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "FEW", 0)
        got, program = run(e.maximum(x, y), (a, b), "f8")
    np.testing.assert_array_equal(got, np.maximum(plain(a), plain(b), dtype="f8"))
    assert forms(program)[0].vector


@pytest.mark.parametrize("many", [False, True])
def test_in_place_and_several_outputs(monkeypatch, many):
    if many:
        monkeypatch.setattr(programs, "FEW", 0)
    rng = np.random.default_rng(1)
    a, b = numbers(rng, (70, 60), "f4"), numbers(rng, (70, 60), "f4")
    first, second = on(watched, a), on(watched, b)
    program = Program("xys", [x + y * symbol("s"), x - y])
    watched.elementwise(program, (first, second, 3.0), (first, second))
    np.testing.assert_allclose(watched.to_numpy(first), a + b * 3, rtol=1e-6)
    np.testing.assert_array_equal(watched.to_numpy(second), a - b)


def test_of_nothing_and_of_one_element():
    got, _ = run(x + 1.0, (np.empty((0, 3), "f4"),), "f4")
    assert got.shape == (0, 3)
    got, _ = run(x + 1.0, (np.array(2, "f4"),), "f4")
    assert got == 3
    out = on(watched, np.zeros((3, 4), "f4"))
    watched.elementwise(IDENTITY, (2.5,), (out,))
    np.testing.assert_array_equal(watched.to_numpy(out), np.full((3, 4), 2.5))


def test_numbers_keep_their_kinds():
    a = np.arange(5)
    got, _ = run(x * y, (a, 2), "i8")
    np.testing.assert_array_equal(got, a * 2)
    got, _ = run(x * y, (a, 0.5), "f4")
    np.testing.assert_array_equal(got, (a * 0.5).astype("f4"))
    big = np.array([2**60, -(2**61) + 1])
    got, _ = run(x + y, (big, 1), "i8")
    np.testing.assert_array_equal(got, big + 1)


FUNCTIONS = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2,
    "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "sqrt": np.sqrt, "abs": np.abs,
    "neg": np.negative,     "floor": np.floor, "ceil": np.ceil, "round": np.rint,
    "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
}  # fmt: skip
POINTS = np.array([-0.0, 0.0, 0.3, -0.3, 0.5, 1.5, 2.5, -2.5, 0.7, -0.7, 7.0, -7.9, 3e9, np.inf])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, dtype):
    rng = np.random.default_rng(3)
    points = (
        np.append(POINTS, [-3e9, -np.inf, np.nan]) if name in ("floor", "ceil", "round") else []
    )
    a = np.concatenate([rng.normal(size=50) * 3, points]).astype(dtype)
    if name in ("log", "log2", "sqrt"):
        a = abs(a)
    if name == "log1p":
        a = abs(a) - dtype_of(dtype)(0.9)
    got, _ = run(e.call(name, x), (a,), dtype)
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name](a.astype("f8")).astype(dtype)
    np.testing.assert_allclose(got, expected, rtol=4e-6 if dtype == "f4" else 1e-13, atol=1e-7)
    if name in ("floor", "ceil", "round"):
        np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))


def dtype_of(name):
    return np.dtype(name).type


def test_maximum_lets_nan_win():
    a, b = np.array([1, np.nan, 2, np.nan], "f4"), np.array([np.nan, 1, 3, np.nan], "f4")
    for name, function in (("maximum", np.maximum), ("minimum", np.minimum)):
        got, _ = run(e.call(name, x, y), (a, b), "f4")
        np.testing.assert_array_equal(got, function(a, b))


def test_powers_of_ints_and_of_floats():
    a = np.array([2, -3, 1, -1, 0, 7])
    got, _ = run(x**y, (a, 3), "i8")
    np.testing.assert_array_equal(got, a**3)
    b = np.array([3, 2, 0.5], "f4")
    got, _ = run(x**y, (b, 2.0), "f4")
    np.testing.assert_allclose(got, b**2, rtol=1e-6)


def test_quotient_is_exact_at_the_edges():
    """Indices are divided by multiplying: divisors near powers of two, near their multiples."""
    source = kernel_text.gpu_kernel(
        "def kernel(i, n, multiplier, shift, out, count):\n"
        "    k = cuda.grid(1)\n"
        "    if k < count:\n"
        "        out[k] = quotient(i[k], U4(multiplier[k]), U4(shift[k]))\n",
        "i8* i8* i8* i8* i8* i8",
        ("gpu_programs",),
    )
    divisors = {2**p + d for p in range(31) for d in (-1, 0, 1)} | {3, 5, 7, 10, 641, 1000003}
    cases = []
    for n in sorted(d for d in divisors if 1 <= d < 2**31):
        top = (2**31 - 1) // n
        for multiple in {0, 1, 2, top // 2, top - 1, top}:
            for i in (multiple * n - 1, multiple * n, multiple * n + 1):
                if 0 <= i < 2**31:
                    cases.append((i, n, *kernel_text.division(n)))
    table = np.array(cases, np.int64)
    columns = [on(watched, np.ascontiguousarray(c)) for c in table.T]
    out = on(watched, np.zeros(len(table), np.int64))
    watched.launch(source, len(table) // 256 + 1, 256, (*columns, out, len(table)))
    np.testing.assert_array_equal(watched.to_numpy(out), table[:, 0] // table[:, 1])


def test_a_launch_with_fewer_threads_than_elements(chunks, monkeypatch):
    monkeypatch.setattr(programs, "MOST_BLOCKS", 2)
    a = numbers(np.random.default_rng(0), 9000, "f4")
    got, _ = run(x + 1.0, (a,), "f4")
    np.testing.assert_array_equal(got, a + 1)
    monkeypatch.setattr(programs, "FEW", 1 << 20)
    got, _ = run(x + 1.0, (a,), "f4")
    np.testing.assert_array_equal(got, a + 1)


def test_dtypes_convert():
    rng = np.random.default_rng(5)
    for source in ("f4", "f8", "i4", "i8", "u1", "?"):
        for target in ("f4", "f8", "i4", "i8", "?"):
            a = numbers(rng, 40, source)
            got, _ = run(x, (a,), target, names="x")
            np.testing.assert_array_equal(got, a.astype(target), f"{source} {target}")
            assert as_dtype(got.dtype) is as_dtype(target)
