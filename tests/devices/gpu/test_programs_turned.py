"""Elementwise programs of which inputs lie turned, on the simulated GPU, watched, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigrad import simt
from minigrad.devices.gpu import binding
from minigrad.devices.gpu.elementwise import programs, turned_plan, turned_text
from minigrad.devices.gpu.kernel import gpu_kernel
from minigrad.errors import DataRaceError
from minigrad.formulas.expression import IDENTITY, Program, symbol
from minigrad.simt.counts.counts import Counts
from tests.devices.gpu.layouts import DTYPES, LAYOUTS, arranged, numbers, on, watched

x, y = symbol("x"), symbol("y")
EDGES = st.sampled_from([8, 9, 31, 32, 33, 64, 70])
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _many(monkeypatch):
    """Kernels for many elements, at any size."""
    monkeypatch.setattr(programs, "FEW", 0)


def run(formula, inputs, out_dtype="f4", names="xyzuvw"):
    """(the result of a formula into a new array, whether its kernel goes tile by tile)."""
    program = Program(names[: len(inputs)], [formula])
    shape = np.broadcast_shapes(*[np.shape(a) for a in inputs])
    target = on(watched, np.empty(shape, out_dtype))
    operands = [on(watched, a) if isinstance(a, np.ndarray) else a for a in inputs]
    watched.elementwise(program, operands, (target,))
    ((kind, *_),) = program.kernels
    return watched.to_numpy(target), kind == "gpu turned"


def turned(shape, dtype="f4"):
    """An array whose last two axes have changed places."""
    return numbers(RNG, (*shape[:-2], shape[-1], shape[-2]), dtype).swapaxes(-1, -2)


@settings(max_examples=40, deadline=None)
@given(st.data(), EDGES, EDGES, st.sampled_from([(), (3,), (2, 3)]), st.booleans())
def test_any_sizes_and_neighbours(data, rows, columns, batch, narrow):
    shape = (*batch, rows, columns)
    a = turned(shape, data.draw(DTYPES))
    b = arranged(RNG, shape, data.draw(DTYPES), data.draw(LAYOUTS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "FEW", 0)
        if not narrow:
            patch.setattr(binding, "SMALL", 0)
        got, is_turned = run(x + y * 2, (a, b), "f8")
    a, b = (v.astype("f4") if v.itemsize == 2 else v for v in (a, b))  # as kernels do
    np.testing.assert_allclose(got, a + b * 2.0, rtol=1e-6)
    assert is_turned


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u1", "?"])
def test_copies_move_whole_sectors_without_bank_conflicts(monkeypatch, dtype):
    counts, launch = Counts(), simt.launch
    monkeypatch.setattr(simt, "launch", lambda *given: launch(*given, counts=counts))
    a = turned((96, 64), dtype)
    got, is_turned = run(x, (a,), dtype)
    np.testing.assert_array_equal(got, a)
    assert is_turned
    assert {access.space for access in counts.accesses} == {"global", "shared"}
    assert {access.efficiency for access in counts.accesses} == {1.0}
    moved = [access.moved for access in counts.accesses if access.space == "global"]
    assert sum(moved) == 2 * a.nbytes


def test_axes_that_lie_apart_change_places():
    a = numbers(RNG, (40, 3, 33), "f4")  # (a, b, c) as (c, b, a) and (b, c, a)
    for order in ((2, 1, 0), (1, 2, 0)):
        got, is_turned = run(x, (a.transpose(order),))
        np.testing.assert_array_equal(got, a.transpose(order))
        assert is_turned
    got, is_turned = run(x, (a.transpose(1, 0, 2),))  # rows stay rows
    np.testing.assert_array_equal(got, a.transpose(1, 0, 2))
    assert not is_turned


def test_an_output_that_lies_turned_is_written_along_its_rows():
    a = numbers(RNG, (40, 50), "f4")
    target, program = on(watched, np.empty((50, 40), "f4").T), Program("x", [x])
    watched.elementwise(program, (on(watched, a),), (target,))
    np.testing.assert_array_equal(watched.to_numpy(target), a)
    assert next(iter(program.kernels))[0] == "gpu turned"


def test_operands_that_are_no_matrices():
    a, row, column = turned((40, 50)), numbers(RNG, (50,), "f4"), numbers(RNG, (40, 1), "f4")
    z, u = symbol("z"), symbol("u")
    got, is_turned = run(x * y + z * u, (a, row, column, 2.5))
    np.testing.assert_allclose(got, a * row + column * np.float32(2.5), rtol=1e-5)
    assert is_turned
    got, is_turned = run(x * y, (a, numbers(RNG, (1, 1), "f4")))
    assert got.shape == a.shape
    assert is_turned


def test_an_input_that_does_not_lie_turned_may_be_the_output():
    a, b = turned((70, 40)), numbers(RNG, (70, 40), "f4")
    target = on(watched, b)
    watched.elementwise(Program("xy", [x - y]), (on(watched, a), target), (target,))
    np.testing.assert_array_equal(watched.to_numpy(target), a - b)


def test_several_outputs():
    a, b = turned((70, 40)), numbers(RNG, (70, 40), "f4")
    targets = [on(watched, np.empty((70, 40), "f4")) for _ in range(2)]
    operands = on(watched, a), on(watched, b)
    watched.elementwise(Program("xy", [x - y, x + y]), operands, targets)
    np.testing.assert_array_equal(watched.to_numpy(targets[0]), a - b)
    np.testing.assert_array_equal(watched.to_numpy(targets[1]), a + b)


def test_outputs_that_lie_differently():
    a = turned((70, 40))
    targets = [on(watched, np.empty((40, 70), "f4").T), on(watched, np.empty((70, 40), "f4"))]
    watched.elementwise(Program("x", [x * 2.0, x]), (on(watched, a),), targets)
    np.testing.assert_array_equal(watched.to_numpy(targets[0]), a * 2)
    np.testing.assert_array_equal(watched.to_numpy(targets[1]), a)


def test_steps_of_tiles_that_need_more_bits_than_the_elements(monkeypatch):
    """Strides fit in 32 bits; from one tile to the next they are 32 times as long."""
    monkeypatch.setattr(binding, "SMALL", 10_000)
    a = turned((8, 500))  # 4,000 elements, tiles 16,000 apart
    program, target = Program("x", [x]), on(watched, np.empty((8, 500), "f4"))
    watched.elementwise(program, (on(watched, a),), (target,))
    np.testing.assert_array_equal(watched.to_numpy(target), a)
    ((kind, form),) = program.kernels
    assert (kind, form.narrow) == ("gpu turned", False)


def test_a_launch_with_fewer_blocks_than_tiles(monkeypatch):
    monkeypatch.setattr(turned_plan, "MOST_BLOCKS", 2)
    a = turned((3, 70, 40))
    got, is_turned = run(x, (a,))
    np.testing.assert_array_equal(got, a)
    assert is_turned


@pytest.mark.parametrize("shape", [(7, 64), (64, 7)])
def test_short_rows_go_element_by_element(shape):
    a = turned(shape)
    got, is_turned = run(x, (a,))
    np.testing.assert_array_equal(got, a)
    assert not is_turned


@pytest.mark.parametrize("count", [turned_text.MOST_TURNED, turned_text.MOST_TURNED + 1])
def test_as_many_turned_inputs_as_shared_memory_holds(count):
    inputs = [turned((40, 40), "f8") for _ in range(count)]
    formula = sum(map(symbol, "yzuvw"[: count - 1]), x)
    got, is_turned = run(formula, inputs, "f8")
    np.testing.assert_allclose(got, sum(inputs), rtol=1e-12)
    assert is_turned == (count <= turned_text.MOST_TURNED)


def test_few_elements_take_a_thread_each(monkeypatch):
    monkeypatch.setattr(programs, "FEW", 40 * 40)
    a = turned((40, 40))
    got, is_turned = run(x, (a,))
    np.testing.assert_array_equal(got, a)
    assert not is_turned


@pytest.mark.parametrize("barrier", [0, 1])
def test_each_barrier_is_needed(monkeypatch, barrier):
    write = turned_plan.turned_text

    def broken(program, form):
        made = write(program, form)
        parts = made.text.split("cuda.syncthreads()")
        assert len(parts) == 3
        text = "cuda.syncthreads()".join(parts[: barrier + 1]) + "pass"
        text += "cuda.syncthreads()".join(parts[barrier + 1 :])
        return gpu_kernel(text, made.signature, made.includes)

    monkeypatch.setattr(turned_plan, "turned_text", broken)
    monkeypatch.setattr(turned_plan, "MOST_BLOCKS", 1)  # a block has several tiles
    with pytest.raises(DataRaceError, match="tile_s_x"):
        run(x, (turned((64, 64)),))


def test_the_identity_is_remembered_for_each_layout():
    """One Program, as every copy is of one: turned and plain inputs do not share a kernel."""
    a = numbers(RNG, (64, 64), "f4")
    for data in (a, a.T, a):
        target = on(watched, np.empty((64, 64), "f4"))
        watched.elementwise(IDENTITY, (on(watched, data),), (target,))
        np.testing.assert_array_equal(watched.to_numpy(target), data)
