"""Reading and writing at an index, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg

ARRAYS = "array", "list", "mask", "plane"


@st.composite
def arrays_and_indices(draw):
    """A shape and an index for it of any mixture of kinds."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    items, axis, has_dots = [], 0, False
    paired = draw(st.integers(1, 3))  # index arrays broadcast with one another
    while axis < len(shape):
        n = shape[axis]
        kind = draw(
            st.sampled_from([*ARRAYS, "int", "number", "slice", "truth", "new", "dots", "end"])
        )
        bound = st.integers(-n, n - 1)
        if kind == "int":
            items.append(draw(bound))
        elif kind == "number":
            made = draw(st.sampled_from([np.int64, np.int32, np.array]))
            items.append(made(draw(bound)))
        elif kind == "truth":
            if len(items) < 6 and not any(isinstance(i, bool) for i in items):
                items.append(paired == 1 or draw(st.booleans()))
            continue
        elif kind == "plane":
            if has_dots or axis + 1 >= len(shape):
                continue
            size = n * shape[axis + 1]
            values = draw(st.lists(st.booleans(), min_size=size, max_size=size))
            if sum(values) != paired:
                continue
            items.append(np.array(values).reshape(n, shape[axis + 1]))
            axis += 1
        elif kind == "slice":
            edge = st.none() | st.integers(-n - 2, n + 2)
            step = draw(st.sampled_from([None, 1, 2, 3, -1, -2]))
            items.append(slice(draw(edge), draw(edge), step))
        elif kind == "array":
            values = draw(st.lists(bound, min_size=paired, max_size=paired))
            items.append(np.array(values).reshape(draw(st.sampled_from([(paired,), (1, paired)]))))
        elif kind == "list":
            items.append(draw(st.lists(bound, min_size=paired, max_size=paired)))
        elif kind == "mask":
            values = draw(st.lists(st.booleans(), min_size=n, max_size=n))
            if sum(values) != paired:
                continue
            items.append(np.array(values))
        elif kind == "new":
            if len(items) < 6:
                items.append(None)
            continue
        elif kind == "dots":
            if not has_dots:
                items.append(...)  # it covers some axes; what follows must cover all others
                axis += draw(st.integers(0, len(shape) - axis))
                has_dots = True
            continue
        elif has_dots:
            continue
        else:
            break
        axis += 1
    return shape, tuple(items)


def with_variables(index, number):
    """An index with Variables in the place of its arrays, of every other one or of all."""
    return tuple(
        mg.variable(np.asarray(i))
        if isinstance(i, (np.ndarray, np.generic, list)) and (k + number) % 3
        else i
        for k, i in enumerate(index)
    )


@settings(max_examples=300, deadline=None)
@given(arrays_and_indices())
def test_reading_writing_and_gradient_at_any_index_equal_numpy(case):
    shape, index = case
    a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    try:
        want = a[index]
    except IndexError:
        for given in (index, with_variables(index, 0)):
            with pytest.raises((mg.errors.MinigradError, IndexError)):
                mg.variable(a)[given]
        return
    if want.ndim > 8:
        return
    plain, index = index, with_variables(index, want.size)
    x = mg.variable(a, requires_grad=True)
    y = x[index]
    assert y.shape == want.shape
    np.testing.assert_array_equal(y.numpy(), want)
    dy = np.arange(1, want.size + 1, dtype=np.float32).reshape(want.shape)
    y.backward(mg.variable(dy))
    grad = np.zeros_like(a)
    np.add.at(grad, plain, dy)
    np.testing.assert_array_equal(x.grad.numpy(), grad)
    z, b = mg.variable(a), a.copy()
    z[index], b[plain] = dy, dy
    np.testing.assert_array_equal(z.numpy(), b)
    z[index], b[plain] = 7, 7
    np.testing.assert_array_equal(z.numpy(), b)
    if want.ndim:  # one value for a whole axis of the region, of each in turn
        row = dy[:1] if want.size % 2 else dy[..., :1]
        z[index], b[plain] = row, row
        np.testing.assert_array_equal(z.numpy(), b)


def test_basic_index_is_a_view_and_an_array_index_a_copy():
    x = mg.zeros((4, 3))
    assert mg.memory.shares_storage(x[1:, ::2], x)
    assert not mg.memory.shares_storage(x[[1, 2]], x)


def test_mask_over_two_axes_equals_numpy():
    a = np.arange(24.0).reshape(2, 3, 4)
    mask = a[:, :, 0] % 8 == 0
    np.testing.assert_array_equal(mg.variable(a)[mg.variable(mask)].numpy(), a[mask])
    x = mg.variable(a)
    x[mask] = -1.0
    a[mask] = -1.0
    np.testing.assert_array_equal(x.numpy(), a)


def test_mask_of_a_comparison_selects():
    x = mg.variable([3.0, -1.0, 2.0])
    assert x[x > 0].tolist() == [3.0, 2.0]
    x[x < 0] = 0.0
    assert x.tolist() == [3.0, 0.0, 2.0]


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_index_of_any_integer_dtype_reads(dtype):
    x = mg.variable([10.0, 20.0, 30.0])
    index = mg.variable(np.array([2, 0], dtype))
    assert x[index].tolist() == [30.0, 10.0]


def test_write_through_a_strided_target_equals_numpy():
    a = np.zeros((4, 6), np.float32)
    x = mg.variable(a)
    x.T[1::2][[0, 2, 0]] = mg.variable([[1.0], [2.0], [3.0]])
    a.T[1::2][[0, 2, 0]] = [[1], [2], [3]]
    np.testing.assert_array_equal(x.numpy(), a)


def test_write_of_an_overlapping_view_reads_before_it_writes():
    x = mg.variable([0.0, 1.0, 2.0, 3.0])
    x[1:] = x[:-1]
    assert x.tolist() == [0.0, 0.0, 1.0, 2.0]
    x[:] = x[::-1]
    assert x.tolist() == [2.0, 1.0, 0.0, 0.0]


def test_write_converts_to_the_targets_dtype():
    x = mg.variable([1, 2, 3])
    x[0] = 7.9
    assert x.tolist() == [7, 2, 3]
    assert x.dtype is mg.int64


def test_recorded_write_gives_gradients_to_both_sides():
    w = mg.variable([1.0, 2.0, 3.0], requires_grad=True)
    y = mg.variable([10.0, 20.0], requires_grad=True)
    h = w * 2.0
    h[1:] = y * 3.0
    assert h.tolist() == [2.0, 30.0, 60.0]
    (h * mg.variable([1.0, 10.0, 100.0])).sum().backward()
    assert w.grad.tolist() == [2.0, 0.0, 0.0]
    assert y.grad.tolist() == [30.0, 300.0]


def test_recorded_write_at_repeated_indices_gives_the_gradient_to_the_last():
    y = mg.variable([5.0, 6.0, 7.0], requires_grad=True)
    x = mg.zeros((3,))
    x[[1, 1, 0]] = y
    assert x.tolist() == [7.0, 6.0, 0.0]
    (x * mg.variable([1.0, 2.0, 4.0])).sum().backward()
    assert y.grad.tolist() == [0.0, 2.0, 1.0]


def test_recorded_write_of_a_broadcast_value_sums_its_gradient():
    y = mg.variable(2.0, requires_grad=True)
    x = mg.zeros((2, 3))
    x[:, 1:] = y
    x.sum().backward()
    assert y.grad.item() == 4.0


def test_write_bumps_the_version_and_saved_values_notice():
    w = mg.variable([1.0, 2.0], requires_grad=True)
    h = w * 1.0
    y = (h * h).sum()
    version = h.version
    h[0] = 5.0
    assert h.version == version + 1
    with pytest.raises(mg.errors.SavedValueModifiedError):
        y.backward()


def test_write_into_a_leaf_that_requires_gradients_raises_and_writes_nothing():
    x = mg.variable([1.0, 2.0], requires_grad=True)
    with pytest.raises(mg.errors.InPlaceError):
        x[0] = 5.0
    assert x.tolist() == [1.0, 2.0]
    with mg.no_grad():
        x[0] = 5.0
    assert x.tolist() == [5.0, 2.0]


def test_write_into_a_broadcast_view_raises():
    x = mg.zeros((1, 3)).expand(2, 3)
    with pytest.raises(mg.errors.InPlaceError):
        x[0] = 1.0


def test_write_into_a_clone_leaves_the_original():
    x = mg.variable([1.0, 2.0])
    y = x.clone()
    y[0] = 9.0
    assert x.tolist() == [1.0, 2.0]
    assert y.tolist() == [9.0, 2.0]


def test_augmented_write_changes_one_element():
    x = mg.variable([1.0, 2.0, 3.0])
    x[1] += 10.0
    assert x.tolist() == [1.0, 12.0, 3.0]


def test_iteration_gives_rows_and_ends():
    rows = [row.tolist() for row in mg.variable([[1, 2], [3, 4]])]
    assert rows == [[1, 2], [3, 4]]
    with pytest.raises(TypeError):
        iter(mg.variable(1.0))


def test_embedding_gradient_adds_up_repeated_rows_in_any_split(monkeypatch):
    weight = np.arange(12.0).reshape(4, 3)
    index = np.array([[1, 3], [1, 1]])
    want = np.zeros_like(weight)
    np.add.at(want, index, np.ones((2, 2, 3)))
    monkeypatch.setattr("minigrad.devices.cpu.structural.SPLIT", 1)
    for parts in (1, 2):
        monkeypatch.setattr("minigrad.devices.threads.threads.count", parts)
        w = mg.variable(weight, requires_grad=True)
        y = mg.embedding(w, index) if parts == 1 else mg.embedding(w, index.reshape(4))
        np.testing.assert_array_equal(y.numpy().reshape(2, 2, 3), weight[index])
        y.sum().backward()
        np.testing.assert_array_equal(w.grad.numpy(), want)


def test_gather_and_scatter_add_are_adjoint():
    rng = np.random.default_rng(0)
    x, index = rng.standard_normal((3, 4)), rng.integers(-3, 3, (2, 4))
    y = mg.gather(mg.variable(x), index, 0)
    np.testing.assert_array_equal(y.numpy(), np.take_along_axis(x, index, 0))
    s = rng.standard_normal((2, 4))
    spread = mg.scatter_add(mg.zeros((3, 4), "float64"), index, mg.variable(s), 0)
    np.testing.assert_allclose((spread.numpy() * x).sum(), (y.numpy() * s).sum(), rtol=1e-12)


def test_one_hot_tril_triu_equal_numpy():
    index = np.array([[2, 0], [1, 1]])
    np.testing.assert_array_equal(mg.one_hot(index, 3).numpy(), np.eye(3)[index])
    a = np.arange(24.0).reshape(2, 3, 4)
    for k in (-1, 0, 2):
        np.testing.assert_array_equal(mg.tril(mg.variable(a), k).numpy(), np.tril(a, k))
        np.testing.assert_array_equal(mg.triu(mg.variable(a), k).numpy(), np.triu(a, k))


INDICES = (
    [2, 0], np.array([2, -1]), np.array([[1], [0]], np.uint8), [True, False, True], 1, [], None,
    (slice(None), [3, 0]), ([0, 1], [1, 2]), ([0, 1], slice(None), [1, 0]), (1, [2, 1]), ([1], 2),
    (..., [0, 1]), ([0, 2], None, slice(1, None)), (np.array([0, 1]), slice(2)),
    ([[0], [1]], [1, 3]),
    True, (slice(True, 2), [0]), ([True, False, True], [0, 1]), (slice(None), np.arange(4) > 1),
)  # fmt: skip


@pytest.mark.parametrize("kind", [list, mg.variable])
def test_an_index_that_comes_again_selects_the_same(kind):
    def made(item):
        is_data = isinstance(item, (list, np.ndarray)) and len(item)
        return mg.variable(item) if is_data and kind is mg.variable else item

    data = np.arange(24.0).reshape(3, 4, 2)
    for _ in range(3):
        for x in (mg.variable(data), mg.variable(data[::-1])[::-1], mg.variable(data + 24.0)):
            for index in INDICES:
                index = index if isinstance(index, tuple) else (index,)
                expected = x.numpy()[index]
                items = tuple(map(made, index))
                for found in (x[items], x[items[0]] if len(items) == 1 else x[items]):
                    assert found.shape == expected.shape, index
                    assert found.tolist() == expected.tolist(), index


def test_an_index_of_a_view_that_was_written_to_raises():
    index, mask = mg.variable([1, 0]), mg.variable([True, False])
    for _ in range(4):
        base = mg.ones((2, 2), requires_grad=True) * 1.0
        view = base[:]
        assert (view[index].shape, view[mask].shape, view[:, index].shape) == (
            (2, 2),
            (1, 2),
            (2, 2),
        )
        with mg.no_grad():
            base.fill_(2.0)
        for item in (index, mask, (slice(None), index)):
            with pytest.raises(mg.errors.InPlaceError, match="index: this view"):
                view[item]


@pytest.mark.parametrize("shape", [(3,), (3, 4), (2, 3, 4), (2, 0), (0, 2), (1, 1)])
def test_rows_of_a_loop_are_those_of_indices(shape):
    x = mg.rand(shape).requires_grad_()
    rows = list(x)
    assert [row.shape for row in rows] == [shape[1:]] * shape[0]
    assert [row.tolist() for row in rows] == x.tolist()
    for k, row in enumerate(rows):
        (g,) = mg.gradients(row.sum(), [x])
        wanted = np.zeros(shape)
        wanted[k] = 1.0
        np.testing.assert_array_equal(g.numpy(), wanted)
