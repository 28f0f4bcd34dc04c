"""Indices in compiled steps: what they read, write and refuse, against eager execution.

The programs are interpreted, so that thousands of them cost no compilation; `test_kinds_of_steps`
compiles.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad.errors import BoundsError, TraceError

pytestmark = pytest.mark.usefixtures("interpreted_plans")


@st.composite
def cases(draw):
    """(shape, index, seed): an index with what is to be an argument of the step in a list [array].

    Bools that are arguments stand alone, since the step may only write where they say.
    """
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    if draw(st.integers(0, 4)) == 0:
        axes = draw(st.integers(1, len(shape)))
        first = draw(st.integers(0, len(shape) - axes))
        size = int(np.prod(shape[first : first + axes]))
        mask = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
        mask = mask.reshape(shape[first : first + axes])
        before = [draw(st.sampled_from([0, slice(None), slice(None, None, -1)]))] * first
        return shape, (*before, [mask]), draw(st.integers(0, 99))
    items, axis, paired, has_dots = [], 0, draw(st.integers(1, 3)), False
    kinds = ["int", "slice", "array", "argument", "one", "list", "mask", "new", "dots", "end"]
    while axis < len(shape):
        n, kind = shape[axis], draw(st.sampled_from(kinds))
        bound = st.integers(-n, n - 1)
        if kind == "int":
            items.append(draw(bound))
        elif kind == "slice":
            edge = st.none() | st.integers(-n, n)
            items.append(slice(draw(edge), draw(edge), draw(st.sampled_from([None, 2, -1]))))
        elif kind in ("array", "argument", "list"):
            values = draw(st.lists(bound, min_size=paired, max_size=paired))
            array = np.array(values).reshape(draw(st.sampled_from([(paired,), (paired, 1)])))
            items.append({"array": array, "argument": [array], "list": tuple(values)}[kind])
            if kind == "list":
                items[-1] = np.array(values)
        elif kind == "one":
            items.append([np.array(draw(bound))])
        elif kind == "mask":
            values = draw(st.lists(st.booleans(), min_size=n, max_size=n))
            if sum(values) != paired:
                continue
            items.append(np.array(values))
        elif kind == "new":
            if len(items) < 5:
                items.append(None)
            continue
        elif kind == "dots":
            if not has_dots:
                items.append(...)
                axis, has_dots = axis + draw(st.integers(0, len(shape) - axis)), True
            continue
        elif has_dots:
            continue
        else:
            break
        axis += 1
    return shape, tuple(items), draw(st.integers(0, 99))


def made(index, arguments):
    """The index with arguments in the place of the lists."""
    arguments = iter(arguments)
    return tuple(next(arguments) if isinstance(i, list) else i for i in index)


def region_of(shape, index):
    """The shape of one value for what the index points to, and whether its size is unknown."""
    given = [i[0] for i in index if isinstance(i, list)]
    is_unknown = any(g.dtype == bool for g in given)
    return np.empty(shape)[made(index, given)].shape, is_unknown


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cases())
def test_reads_writes_and_gradients_at_any_index_equal_eager(case):
    shape, index, seed = case
    rng = np.random.default_rng(seed)
    try:
        region, is_unknown = region_of(shape, index)
    except IndexError:  # arrays that do not broadcast
        return
    if len(region) > 7:
        return
    w = mg.variable(rng.standard_normal(shape).astype("f4"), requires_grad=True)
    given = [i[0] for i in index if isinstance(i, list)]

    def step(x, y, *arguments):
        at = made(index, arguments)
        h = x * 1.0 * w
        out = [] if is_unknown else [h[at] * 2.0]
        h[at] = y * w.sum()
        x[at] = 3
        if not is_unknown:
            x[at] += 1
            out.append(x[at])
        sum([(r * r).sum() for r in out], (h * h).sum()).backward()
        gradient, w.grad = w.grad.detach(), None
        return [h.detach(), gradient, *(r.detach() for r in out)]

    compiled = mg.compile(step)
    value = () if is_unknown else region[len(region) // 2 :]
    for _ in range(4):
        data = rng.standard_normal(shape).astype("f4")
        y = rng.standard_normal(value).astype("f4")
        given = [rng.permutation(g.reshape(-1)).reshape(g.shape) for g in given]
        both = []
        for run in (step, compiled):
            x = mg.variable(data)
            found = run(x, mg.variable(y), *map(mg.variable, given))
            both.append([f.numpy() for f in (*found, x)])
        for want, got in zip(*both, strict=True):
            assert want.shape == got.shape
            np.testing.assert_allclose(got, want, 1e-4, 1e-4)
    assert len(compiled.traces) == 1


# -- numbers that only the run knows ---------------------------------------------------------------


def test_index_of_one_int_is_read_at_each_run():
    x = mg.variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    row = mg.compile(lambda i: x[i] * 1.0)
    element = mg.compile(lambda i, j: x[i, j] * 1.0)
    listed = mg.compile(lambda i: x[[0, i]] * 1.0)
    for k in (0, 1, 2, -1, -3):
        i, j = mg.variable(k), mg.variable(k % 2)
        assert row(i).tolist() == x.tolist()[k]
        assert element(i, j).item() == x.tolist()[k][k % 2]
        assert listed(i).tolist() == [x.tolist()[0], x.tolist()[k]]
    assert [len(step.traces) for step in (row, element, listed)] == [1, 1, 1]


@pytest.mark.parametrize("number", [np.int64(1), np.int32(-2), np.array([2, 1])[1], True, np.True_])
def test_numpys_numbers_are_indices(number):
    x = mg.variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    step = mg.compile(lambda x: x[number] * 1.0)
    for _ in range(3):
        np.testing.assert_array_equal(step(x).numpy(), x.numpy()[number])


def test_what_eager_gives_as_a_view_may_be_written_through_x_alone():
    h = mg.zeros((3, 2))

    @mg.compile
    def add(i):
        h[i] += 1.0
        h[i, 0] = 5.0
        return h.sum()

    for k in (0, 1, 2, 1):
        add(mg.variable(k))
    assert h.tolist() == [[5.0, 1.0], [5.0, 2.0], [5.0, 1.0]]

    @mg.compile
    def through_the_copy(i):
        row = h[i]
        row += 1.0
        return h.sum()

    @mg.compile
    def dropped(i):
        h[i].copy_(mg.ones((2,)))

    @mg.compile
    def old_row(i):
        row = h[i]
        h[i] = 0.0
        return row * 2.0

    @mg.compile
    def old_clone(i):
        row = h[i].clone()
        h[i] = 0.0
        return row * 2.0

    for step, said in ((through_the_copy, "write to x itself"), (dropped, "write to x itself")):
        step(mg.variable(0))
        with pytest.raises(TraceError, match=said):
            step(mg.variable(0))
    old_row(mg.variable(0))
    with pytest.raises(TraceError, match="take it again after the write"):
        old_row(mg.variable(0))
    for k in (1, 1, 2):
        wanted = [2.0 * v for v in h.tolist()[k]]
        assert old_clone(mg.variable(k)).tolist() == wanted


# -- masks -----------------------------------------------------------------------------------------


def test_mask_of_numpy_picks_and_writes():
    mask = np.tri(3, dtype=bool)

    @mg.compile
    def step(x):
        y = x * 1.0
        y[~mask] = -1.0
        y[mask] += 1.0
        return y, x[mask] * 1.0, x[mg.variable(mask)] * 1.0

    for k in range(3):
        x = mg.arange(9, dtype="float32").reshape(3, 3) + k
        y, picked, again = step(x)
        np.testing.assert_array_equal(y.numpy(), np.where(mask, x.numpy() + 1.0, -1.0))
        np.testing.assert_array_equal(picked.numpy(), x.numpy()[mask])
        np.testing.assert_array_equal(again.numpy(), x.numpy()[mask])


def test_mask_of_numpy_that_changes_is_found():
    mask = np.array([True, False, True])
    step = mg.compile(lambda x: x[mask].sum())
    for _ in range(2):
        step(mg.ones((3,)))
    mask[:] = [False, True, True]
    with pytest.raises(TraceError, match="data that the step makes"):
        step(mg.ones((3,)))


@pytest.mark.parametrize(
    "work",
    [
        lambda x: x[x > 0].sum(),
        lambda x: x[x > 0] + 1.0,
        lambda x: x.__setitem__(x > 0, mg.ones((2,))),
        lambda x: x.__setitem__(x > 0, x[x > 0] + 1.0),
    ],
)
def test_mask_that_decides_a_shape_raises_and_shows_the_way(work):
    step = mg.compile(work)
    x = mg.variable([1.0, -1.0, 2.0])
    step(x)
    with pytest.raises(TraceError, match="fixed shapes") as caught:
        step(mg.variable([1.0, -1.0, 2.0]))
    assert "mg.where(mask, x, 0.0).sum() in the place of x[mask].sum()" in str(caught.value)
    assert "x = mg.where(mask, x + y, x)" in str(caught.value)


def test_variable_in_a_slice_raises_and_shows_the_way():
    x = mg.arange(8)
    step = mg.compile(lambda i: x[i : i + 3])
    step(mg.variable(1))
    with pytest.raises(TraceError, match="arange"):
        step(mg.variable(1))
    step = mg.compile(lambda i: x[i + mg.arange(3)])
    for k in range(4):
        assert step(mg.variable(k)).tolist() == [k, k + 1, k + 2]


# -- out of bounds ---------------------------------------------------------------------------------


def test_index_out_of_bounds_raises_as_eager_and_nothing_is_written():
    kept, x = mg.zeros((3, 2)), mg.zeros((3, 2))

    @mg.compile
    def step(i, j):
        kept[i] = 1.0
        x[i, j] = 2.0
        return kept.sum()

    good = mg.variable([0, 1]), mg.variable([1, 0])
    for _ in range(3):
        step(*good)
    before = kept.tolist(), x.tolist(), kept.version, x.version
    for i, j in (([0, 3], [0, 0]), ([0, 1], [0, -3])):
        with pytest.raises(BoundsError) as caught:
            step(mg.variable(i), mg.variable(j))
        with pytest.raises(BoundsError) as eager:
            x.clone()[mg.variable(i), mg.variable(j)] = 2.0
        assert eager.value.wanted.startswith(caught.value.wanted)
    step(*good)
    assert (kept.tolist(), x.tolist()) == before[:2]


def test_constant_index_out_of_bounds_raises_when_the_step_is_traced():
    step = mg.compile(lambda x, n: x[[0, n]])
    x = mg.zeros((3,))
    step(x, 1), step(x, 1)
    with pytest.raises(BoundsError, match="from -3 to 2"):
        step(x, 3)
