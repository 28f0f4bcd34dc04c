"""What leads to another program, what does not, and which arguments are refused."""

import collections
import functools
import gc

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
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


class TestValues:
    def test_numbers_strings_and_structures_are_compared_by_value(self):
        def f(x, how, options=(), **more):
            return x * (len(how) + sum(options) + sum(more.values()))

        step, x = mg.compile(f), mg.ones((1,))
        for _ in range(2):
            for args, more in [
                (("ab",), {}),
                (("abc",), {}),
                (("ab", (1, 2)), {}),
                (("ab", [1, 2]), {}),
                (("ab", (1, 2.0)), {}),
                (("ab",), {"k": 1, "m": 2}),
                (("ab",), {"m": 2, "k": 1}),
                (("ab",), {"k": True}),
                (("ab",), {"k": 0.0}),
                (("ab",), {"k": -0.0}),
                (("ab",), {"k": float("inf")}),
            ]:
                np.testing.assert_allclose(
                    step(x, *args, **more).numpy(), f(x, *args, **more).numpy()
                )
        assert len(step.traces) == 11

    def test_nan_is_itself(self):
        step = mg.compile(lambda x, v: x * v)
        for _ in range(5):
            assert np.isnan(step(mg.ones((1,)), float("nan")).item())
        assert len(step.traces) == 1

    def test_order_of_keywords_is_one_program_where_it_cannot_be_seen(self):
        step = mg.compile(lambda x, y: x - y)
        a, b = mg.full((1,), 5.0), mg.full((1,), 3.0)
        for _ in range(3):
            assert step(x=a, y=b).item() == 2.0
            assert step(y=b, x=a).item() == 2.0
        assert len(step.traces) == 1

    def test_more_plain_values(self):
        def f(x, *rest):
            return x[rest[0]] if isinstance(rest[0], slice) else x * len(rest)

        step, x = mg.compile(f), floats(4)
        for rest in [
            (slice(1, 3),), (slice(0, 2),), (None, ...), (range(3),), (b"x", 1j),
            ({1, 2}, frozenset("a")), (mg.float32,), (np.dtype("f4"),), (np.float64(2.0),),
            (np.int8(2),),
        ] * 2:  # fmt: skip
            np.testing.assert_array_equal(step(x, *rest).numpy(), f(x, *rest).numpy())
        assert len(step.traces) == 10

    def test_nested_arguments(self):
        Batch = collections.namedtuple("Batch", "x y")

        @mg.compile
        def step(batch, state):
            return batch.x + batch.y[0] + state["h"]["c"]

        for k in range(5):
            one = mg.full((1,), float(k))
            out = step(Batch(one, [one * 10.0]), {"h": collections.OrderedDict(c=one * 100.0)})
            assert out.item() == 111.0 * k
        assert len(step.traces) == 1

    def test_unused_numbers_share_a_program(self):
        step = mg.compile(lambda x, epoch: x * 2.0)
        for k in range(5):
            step(mg.ones((1,)), k)
        assert len({t.plan for t in step.traces}) == 1


class TestObjects:
    def test_functions_and_modules_by_identity(self):
        step, x = mg.compile(lambda f, x: f(x)), mg.ones((2, 3))
        functions = [
            nn.Linear(3, 2),
            nn.Linear(3, 2),
            mg.exp,
            x.exp,
            functools.partial(mg.matmul, x.T),
        ]
        functions[3] = functions[0].forward
        with mg.no_grad():
            for _ in range(3):
                for f in functions:
                    np.testing.assert_allclose(step(f, x).numpy(), f(x).numpy(), rtol=1e-6)
        assert len(step.traces) == 5

    def test_parameters_by_identity(self):
        step = mg.compile(lambda p, x: p.detach() * x)
        ps = [nn.Parameter([2.0]), nn.Parameter([3.0])]
        for _ in range(4):
            assert [step(p, mg.ones((1,))).item() for p in ps] == [2.0, 3.0]
        assert len(step.traces) == 2

    def test_programs_of_dead_objects_go(self):
        step = mg.compile(lambda f, x: f(x))
        with mg.no_grad():
            for _ in range(4):
                layer = nn.Linear(2, 2)
                for _ in range(3):
                    step(layer, mg.ones((1, 2)))
            del layer
            gc.collect()
            step(nn.Linear(2, 2), mg.ones((1, 2)))
        assert len(step.traces) <= 1

    @pytest.mark.parametrize(
        ("bad", "match"),
        [
            (np.ones(3), "NumPy array"),
            ([np.ones(3)], r"argument 0 \('x'\)\[0\] is a NumPy array"),
            ((k for k in range(3)), "used up"),
            (iter([1]), "used up"),
            ({(1, object): 2}, "keys"),
            (type("Slotted", (), {"__slots__": ()})(), "known again"),
        ],
    )
    def test_refused(self, bad, match):
        step = mg.compile(lambda x: None)
        for _ in range(3):
            with pytest.raises(TraceError, match=match):
                step(bad)

    def test_a_list_within_itself_is_refused(self):
        endless = []
        endless.append(endless)
        with pytest.raises(TraceError, match="nested"):
            mg.compile(lambda x: None)(endless)


class TestModes:
    def test_recording_and_inference(self):
        w = nn.Parameter([2.0])

        @mg.compile
        def step(x):
            y = (w * x).sum()
            if mg.is_recording():
                w.grad = None
                y.backward()
            return y.detach()

        for _ in range(4):
            w.grad = None
            with mg.no_grad():
                step(mg.ones((1,)))
            assert w.grad is None
            step(mg.ones((1,)))
            assert w.grad.item() == 1.0
            x = mg.ones((1,))
            with mg.inference():
                assert step(x).item() == 2.0

    def test_training_and_evaluation(self):
        model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(3))
        step, x = mg.compile(lambda x: model(x).detach()), floats(4, 3)
        found = []
        for run in (lambda x: model(x).detach(), step):
            mg.manual_seed(0)
            model.train()
            out = []
            for k in range(9):
                model.train(k % 3 == 0)
                out.append(run(x).tolist())
            found.append(out)
            model[1].running_mean.fill_(0.0) if hasattr(model[1].running_mean, "fill_") else None
        np.testing.assert_allclose(np.shape(found[0]), np.shape(found[1]))
        model.eval()
        np.testing.assert_allclose(step(x).numpy(), model(x).numpy(), rtol=1e-5)
        model.train()
        assert len({t.plan for t in step.traces}) == 2

    def test_attributes_that_change_nothing_keep_the_program(self):
        model = nn.Linear(3, 2)
        step, x = mg.compile(lambda x: model(x).detach()), floats(4, 3)
        for _ in range(3):
            step(x)
        plan = step.traces[0].plan
        for k in range(3):
            model.note = k
            step(x)
        assert step.traces[0].plan is plan
        assert len(step.traces) == 1

    def test_attributes_that_matter_lead_to_another(self):
        model = nn.Linear(3, 2)
        optimizer = optim.SGD(model, learning_rate=1.0)

        @mg.compile
        def step(x):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            return x * model.scale

        x, found = mg.ones((1, 3)), []
        for k, (scale, momentum, frozen) in enumerate(
            [(1.0, 0.0, False)] * 3 + [(2.0, 0.0, False), (2.0, 0.5, False), (2.0, 0.5, True)]
        ):
            model.scale = scale
            optimizer.groups[0].momentum = momentum
            model.bias.requires_grad = not frozen
            before = model.bias.tolist()
            assert step(x).tolist() == [[scale] * 3]
            found.append((k, model.bias.tolist() == before))
        assert [same for _, same in found] == [False] * 5 + [True]

    def test_none_ness_of_gradients(self):
        w = nn.Parameter([1.0])
        step = mg.compile(lambda: w.sum().backward())
        wanted = 0.0
        for k in range(9):
            if k % 4 == 0:
                w.grad, wanted = None, 0.0
            step()
            wanted += 1.0
            assert w.grad.item() == wanted

    def test_another_object_as_gradient(self):
        w = nn.Parameter([1.0])
        step = mg.compile(lambda: w.sum().backward())
        for _ in range(4):
            step()
        w.grad = mg.full((1,), 10.0)
        step()
        assert w.grad.item() == 11.0

    def test_converted_parameters(self):
        model = nn.Linear(2, 1)
        step = mg.compile(lambda x: model(x).detach())
        for _ in range(3):
            step(mg.ones((1, 2)))
        model.to("float64")
        x = mg.ones((1, 2), dtype="float64")
        assert step(x).dtype is mg.float64
        np.testing.assert_allclose(step(x).numpy(), model(x).numpy())
