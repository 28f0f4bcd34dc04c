"""Arguments that are no Variables: which lead to another program, and which are refused."""

import collections
import enum
import functools
import gc

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.errors import TraceError

pytestmark = [
    pytest.mark.usefixtures("interpreted_plans"),
    pytest.mark.filterwarnings("ignore::minigrad.errors.RetraceWarning"),
]


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
        assert len(step.traces) == 9  # numbers that have changed are read by one program

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

        step, x = mg.compile(f), mg.variable([0.0, 1.0, 2.0, 3.0])
        for rest in [
            (slice(1, 3),), (slice(0, 2),), (None, ...), (range(3),), (b"x", 1j),
            ({1, 2}, frozenset("a")), (mg.float32,), (np.dtype("f4"),), (np.float64(2.0),),
            (np.int8(2),),
        ] * 2:  # fmt: skip
            np.testing.assert_array_equal(step(x, *rest).numpy(), f(x, *rest).numpy())
        assert len(step.traces) == 10

    @pytest.mark.parametrize("kind", [enum.Enum, enum.IntEnum, enum.Flag])
    def test_members_of_enums(self, kind):
        which = kind("Which", "first second")
        step = mg.compile(lambda x, how: x * float(how is which.first))
        for _ in range(3):
            assert step(mg.ones((1,)), which.first).item() == 1.0
            assert step(mg.ones((1,)), which.second).item() == 0.0
        assert len(step.traces) == 2

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
