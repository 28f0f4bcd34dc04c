"""Which Variables lead to another program, and which do not."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import TraceError

pytestmark = [
    pytest.mark.usefixtures("interpreted_plans"),
    pytest.mark.filterwarnings("ignore::minigrad.errors.RetraceWarning"),
]


def count(step, *calls, warm=3):
    """How many programs a step has after the first call, repeated, and after each other."""
    for _ in range(warm):
        step(*calls[0])
    found = [len(step.traces)]
    for call in calls[1:]:
        step(*call)
        found.append(len(step.traces))
    return found


def floats(*shape):
    return mg.variable(np.arange(np.prod(shape), dtype="f4").reshape(shape))


class TestVariables:
    def test_shapes_dtypes_and_layouts_are_programs_of_their_own(self):
        step = mg.compile(lambda x: x * 2.0)
        calls = [floats(4, 3), floats(3, 4), floats(3, 4).T, floats(4, 3).to("float64")]
        assert count(step, *((x,) for x in calls)) == [1, 2, 3, 4]
        for x in calls:
            np.testing.assert_array_equal(step(x).numpy(), x.numpy() * 2)
            assert step(x).dtype is x.dtype
        assert len(step.traces) == 4

    def test_values_are_not(self):
        step = mg.compile(lambda x: x + 1.0)
        assert count(step, *((mg.full((2,), float(k)),) for k in range(9))) == [1] * 9

    def test_slices_of_a_data_set_are_one_program(self):
        data = floats(40, 3)
        step = mg.compile(lambda x: x * 2.0)
        for k in range(8):
            batch = data[4 * k : 4 * k + 4]
            np.testing.assert_array_equal(step(batch).numpy(), batch.numpy() * 2)
        assert len(step.traces) == 1

    @pytest.mark.parametrize(
        "layout",
        [
            lambda x: x[::-1],
            lambda x: x[:, 1:],
            lambda x: x[1::2, ::-1],
            lambda x: x.T,
            lambda x: x[0],
            lambda x: x[2:2],
            lambda x: x[:1].expand((5, 6)),
        ],
    )
    def test_views_of_any_layout_are_read_and_written_right(self, layout):
        double, found = mg.compile(lambda x: x * 2.0), []
        add = mg.compile(lambda x: x.add_(1.0))
        for _ in range(4):
            x = floats(4, 6)
            view = layout(x)
            np.testing.assert_array_equal(double(view).numpy(), view.numpy() * 2)
            if 0 not in view.strides:
                add(view)
                found.append((x.tolist(), x.version))
        assert all(f == found[0] for f in found)

    def test_sharing_of_memory_is_seen(self):
        def f(x, y):
            x.add_(y)
            return y * 1.0

        step = mg.compile(f)
        for k in range(6):
            results = []
            for run in (f, step):
                x = mg.ones((6,))
                pairs = [(x[:3], x[3:]), (x[:3], x[1:4]), (x[:3], mg.ones((3,))), (x[:3],) * 2]
                a, b = pairs[k % 4]
                y = run(a, b)
                results.append((y.tolist(), x.tolist()))
            assert results[0] == results[1], k
        for _ in range(3):
            x = mg.ones((6,))
            step(x[:3], x[3:])
        assert len(step.traces) == 4

    def test_requires_grad(self):
        step = mg.compile(lambda x: x.requires_grad)
        plain, leaf = mg.ones((1,)), mg.variable([1.0], requires_grad=True)
        assert [step(x) for x in (plain, plain, plain, leaf, leaf, plain)] == [
            False, False, False, True, True, False,
        ]  # fmt: skip

    def test_an_argument_that_is_written_and_reached_from_outside_is_refused(self):
        h = mg.ones((3,))
        step = mg.compile(lambda x: x.add_(h))
        for _ in range(3):
            step(mg.ones((3,)))
        with pytest.raises(TraceError, match="also reaches its memory from outside"):
            step(h)
        assert h.tolist() == [1.0] * 3

    def test_an_argument_that_is_also_read_from_outside_is_fine(self):
        h = mg.ones((3,))
        step = mg.compile(lambda x: x + h)
        for x in (h, h, h, mg.zeros((3,)), h[:], h):
            np.testing.assert_array_equal(step(x).numpy(), x.numpy() + 1)


@pytest.mark.parametrize("is_outside", [False, True])
def test_foreign_bytes_under_two_arrays_are_not_written(is_outside):
    one, two = np.arange(8, dtype="f4"), np.arange(8, dtype="f4")
    last = mg.from_numpy(one[:6])

    @mg.compile
    @mg.no_grad()
    def step(x, y):
        x = last if is_outside else x
        x.mul_(2.0)
        return x + y

    def call(y):
        return step(mg.ones(()) if is_outside else mg.from_numpy(one[:6]), mg.from_numpy(y))

    for k in range(1, 4):
        assert call(two[2:]).tolist() == [2**k * a + a + 2 for a in range(6)]
    before = one.copy()
    for _ in range(2):
        with pytest.raises(TraceError, match="its bytes through another array"):
            call(one[2:])
    assert one.tolist() == before.tolist()


def test_foreign_bytes_under_two_arrays_may_be_read():
    tokens = np.arange(8, dtype="f4")
    step = mg.compile(lambda x, y: x * y)
    for _ in range(3):
        got = step(mg.from_numpy(tokens[:-1]), mg.from_numpy(tokens[1:]))
        assert got.tolist() == (tokens[:-1] * tokens[1:]).tolist()
    assert len(step.traces) == 1
