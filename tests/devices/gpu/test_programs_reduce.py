"""Reductions on the simulated GPU, watched, against NumPy."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from minigrad.devices.gpu import binding
from minigrad.devices.gpu.reduce import reduce_launch
from minigrad.formulas.expression import IDENTITY, Program, symbol
from tests.devices.gpu.layouts import (
    DTYPES,
    LAYOUTS,
    SIZES,
    arranged,
    numbers,
    off,
    on,
    plain,
    watched,
)

x, y = symbol("x"), symbol("y")
HOWS = ["sum", "mean", "prod", "max", "min", "any", "all"]
EDGES = [1, 2, 31, 32, 33, 64, 100, 1023, 1024, 1025, 3000]


def result_dtype(how, dtype):
    if how in ("any", "all"):
        return np.dtype(bool)
    if how in ("max", "min") or "float" in dtype.name:
        return dtype
    return np.dtype("f4" if how == "mean" else "i8")


def reduce(how, inputs, axes, program=IDENTITY, out=None, dtype=None):
    """(result, the forms of its launches)."""
    program = Program(program.inputs, program.outputs)  # nothing is remembered
    shape = np.broadcast_shapes(*[np.shape(a) for a in inputs])
    kept = tuple(n for axis, n in enumerate(shape) if axis not in axes)
    if out is None:
        out = np.empty(kept, dtype or result_dtype(how, inputs[0].dtype))
    target = on(watched, out)
    operands = tuple([on(watched, a) if isinstance(a, np.ndarray) else a for a in inputs])
    watched.reduce(program, how, operands, target, shape, axes)
    forms = [key[1] for p in (program,) for key in p.kernels]
    return off(watched, target), forms


def expected(how, a, axes):
    with np.errstate(all="ignore"):
        wide = a.astype("f8") if "float" in a.dtype.name else a
        return plain(getattr(np, how)(wide, axis=axes).astype(result_dtype(how, a.dtype)))


def check(how, a, axes):
    got, forms = reduce(how, (a,), axes)
    want = expected(how, a, axes)
    if "float" in a.dtype.name or how == "mean":
        size = np.prod([a.shape[axis] for axis in axes])
        tight = {np.dtype(float): 1e-12, np.dtype("bfloat16"): 1e-2}.get(a.dtype, 3e-6)
        np.testing.assert_allclose(got, want, rtol=tight, atol=tight * (size**0.5 + 1))
    else:
        np.testing.assert_array_equal(got, want)
    return forms


def test_parts_of_rows_meet_in_an_output_that_lies_anywhere():
    a = numbers(np.random.default_rng(0), (3, 20_000), "f4")
    for out in (np.empty((3, 2), "f4")[:, 1], np.empty(3, "f4")[::-1]):
        got, forms = reduce("sum", (a,), (1,), out=out)
        np.testing.assert_allclose(got, a.sum(1, dtype="f8"), rtol=1e-4, atol=1e-3)
        assert forms[0].partial


@pytest.mark.parametrize("n", EDGES)
@pytest.mark.parametrize("how", ["sum", "max"])
def test_rows_of_any_length(how, n):
    a = numbers(np.random.default_rng(n), (5, n), "f4")
    (form,) = check(how, a, (1,))
    assert not form.across or n == 1
    check(how, a[:1], (1,))


@pytest.mark.parametrize("n", EDGES)
@pytest.mark.parametrize("columns", [1, 3, 32, 33, 70])
def test_columns_of_any_length(columns, n):
    a = numbers(np.random.default_rng(n), (n, columns), "f4")
    form = check("sum", a, (0,))[0]
    assert form.across == (columns > 1 and n > 1)


@pytest.mark.parametrize("n", [1, 33, 1023, 4096, 20000, 70001])
@pytest.mark.parametrize("how", HOWS)
def test_all_to_one(how, n):
    a = numbers(np.random.default_rng(n), n, "f4")
    if how == "prod":
        a = (1 + a / 1e4).astype("f4")
    forms = check(how, a, (0,))
    assert forms[0].partial == (n >= 8192)


def test_teams_follow_the_length_of_rows():
    rng = np.random.default_rng(0)
    teams = {}
    for n, rows in ((2, 9), (6, 9), (20, 9), (60, 9), (700, 9), (60, 5000), (5000, 3)):
        (form,) = check("sum", numbers(rng, (rows, n), "f4"), (1,))
        teams[n, rows] = form.team
    assert teams[2, 9] == 1
    assert 1 < teams[20, 9] < 32
    assert teams[700, 9] == teams[5000, 3] == 256
    assert teams[60, 5000] < 32


@settings(max_examples=60, deadline=None)
@given(st.data(), st.lists(SIZES, min_size=1, max_size=4), st.sampled_from(HOWS), st.booleans())
def test_any_layouts(data, shape, how, narrow):
    shape = (shape[0], *[min(n, 9) for n in shape[1:]])
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    a = arranged(rng, shape, data.draw(DTYPES), data.draw(LAYOUTS))
    if how == "prod" and "float" not in a.dtype.name:
        a = np.minimum(np.maximum(a, 0), 2).astype(a.dtype)  # else other orders overflow otherwise
    elif how == "prod":  # likewise, of large and small factors
        assume(np.abs(np.log(np.abs(a[a != 0].astype("f8")))).sum() < 80)
    axes = data.draw(st.sets(st.sampled_from(range(len(shape))), min_size=0))
    with pytest.MonkeyPatch.context() as patch:
        if not narrow:
            patch.setattr(binding, "SMALL", 0)
        check(how, a, tuple(sorted(axes)))


@settings(max_examples=25, deadline=None)
@given(st.data(), st.integers(1, 200), st.sampled_from([1, 3, 32, 36, 50]), st.sampled_from(HOWS))
def test_two_stages(data, n, m, how):
    """Rows cut into parts, at small sizes."""
    rng = np.random.default_rng(n)
    dtype = data.draw(st.sampled_from(["float32", "float64", "int64", "bool"]))
    a = numbers(rng, (n, m, 3), dtype)
    if how == "prod":
        a = (1 + a / 1000).astype(dtype)
    axes = data.draw(st.sampled_from([(0,), (0, 1), (1,), (0, 2), (0, 1, 2)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reduce_launch, "PER_THREAD", 1)
        check(how, a, axes)


def test_two_stages_happen_at_small_sizes_if_asked(monkeypatch):
    monkeypatch.setattr(reduce_launch, "PER_THREAD", 1)
    forms = check("sum", numbers(np.random.default_rng(0), (200, 36), "f4"), (0,))
    assert forms[0].partial
    assert forms[0].across


@pytest.mark.parametrize("axes", [(0, 2, 3), (1,), (0, 1), (1, 3)])
@pytest.mark.parametrize("sizes", [(4, 3, 4, 8), (2, 5, 3, 7)])
def test_formulas_of_several_inputs(axes, sizes):
    rng = np.random.default_rng(2)
    a, b = numbers(rng, sizes, "f4"), numbers(rng, (sizes[1], 1, 1), "f4")
    program = Program("xys", [(x - y) * (x - y) * symbol("s")])
    got, _ = reduce("sum", (a, b, 0.5), axes, program)
    want = ((a.astype("f8") - b) ** 2 * 0.5).sum(axes)
    np.testing.assert_allclose(got, want, rtol=2e-6)


def test_an_input_that_stands_still_along_the_row():
    rng = np.random.default_rng(2)
    a, b = numbers(rng, (7, 40), "f4"), numbers(rng, (7, 1), "f4")
    program = Program("xy", [x * y])
    got, _ = reduce("sum", (a, b), (1,), program)
    np.testing.assert_allclose(got, (a * b).sum(1), rtol=1e-5, atol=1e-5)
    got, _ = reduce("max", (a, b), (0,), program)
    np.testing.assert_array_equal(got, (a * b).max(0))


@pytest.mark.parametrize("how", ["max", "min"])
@pytest.mark.parametrize("axis", [0, 1])
def test_nan_wins(how, axis):
    a = numbers(np.random.default_rng(0), (50, 70), "f4")
    a[13, 17] = np.nan
    a[20] = np.inf
    a[21] = -np.inf
    got, _ = reduce(how, (a,), (axis,))
    np.testing.assert_array_equal(got, getattr(np, how)(a, axis))


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "int64", "bool"])
def test_of_nothing(how, dtype):
    """Empty rows give what the reduction begins with; no rows give nothing."""
    a = np.empty((3, 0), dtype)
    got, _ = reduce(how, (a,), (1,))
    kind = a.dtype.kind
    if how in ("sum", "prod", "any", "all"):
        np.testing.assert_array_equal(got, getattr(np, how)(a, axis=1))
    elif how == "mean":
        assert np.isnan(got).all()
    elif kind == "f":
        np.testing.assert_array_equal(got, np.full(3, -np.inf if how == "max" else np.inf, "f4"))
    else:
        ends = (False, True) if kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        np.testing.assert_array_equal(got, np.full(3, ends[how == "min"]))
    got, forms = reduce(how, (a,), (0,))
    assert got.shape == (0,)
    assert not forms


def test_extremes_of_ints():
    ends = np.iinfo("i8")
    a = np.array([[ends.min, ends.min, ends.min], [ends.max, ends.max, ends.max]])
    for how in ("max", "min"):
        for axis in (0, 1):
            got, _ = reduce(how, (a,), (axis,))
            np.testing.assert_array_equal(got, getattr(np, how)(a, axis))
    np.testing.assert_array_equal(reduce("sum", (a,), (1,))[0], a.sum(1))  # wraps


def test_a_sum_of_a_million_is_as_good_as_a_tree():
    """Sums in order would be off by 1e-3 here; and each run gives the same bits."""
    a = np.full(2_000_000, 0.1, "f4")
    got, _ = reduce("sum", (a,), (0,))
    assert abs(float(got) / (2e6 * float(np.float32(0.1))) - 1) < 2e-7
    noise = numbers(np.random.default_rng(0), 300_000, "f4")
    first, second = (reduce("sum", (noise,), (0,))[0] for _ in range(2))
    assert first.tobytes() == second.tobytes()


def test_into_a_strided_output():
    a = numbers(np.random.default_rng(0), (6, 10, 4), "f4")
    out = np.zeros((6, 8), "f4")[:, ::2]
    got, _ = reduce("sum", (a,), (1,), out=out)
    np.testing.assert_allclose(got, a.sum(1), rtol=1e-5, atol=1e-5)
    turned = np.zeros((4, 10), "f4").T
    got, _ = reduce("max", (a,), (0,), out=turned)
    np.testing.assert_array_equal(got, a.max(0))


def test_of_a_number():
    out = on(watched, np.empty(4, "f4"))
    watched.reduce(Program("x", [x]), "sum", (2.0,), out, (3, 4), (0,))
    np.testing.assert_array_equal(watched.to_numpy(out), np.full(4, 6.0))


def test_more_rows_than_the_launch_has_blocks(monkeypatch):
    monkeypatch.setattr(reduce_launch, "MOST_BLOCKS", 3)
    rng = np.random.default_rng(0)
    check("sum", numbers(rng, (500, 300), "f4"), (1,))
    check("sum", numbers(rng, (700, 5), "f4"), (1,))
    check("max", numbers(rng, (9, 700), "f4"), (0,))
