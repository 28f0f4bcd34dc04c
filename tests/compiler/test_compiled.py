"""Calls of compiled functions: what they leave behind is what eager calls leave behind."""

import copy
import gc
import pickle
import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.errors import ArgumentError, ArgumentTypeError
from minigrad.ops.creation import generator

pytestmark = pytest.mark.usefixtures("interpreted_plans")


def values(*shape, seed=0):
    return mg.variable(np.random.default_rng(seed).normal(size=shape).astype("f4"))


class Scene:
    """A model, an optimizer and a step of them."""

    def __init__(self, algorithm=optim.Adam, managed=False):
        mg.manual_seed(3)
        self.model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Dropout(0.5), nn.Linear(5, 3))
        self.optimizer = algorithm(self.model, learning_rate=0.01)
        self.gm = mg.GradManager(list(self.model.parameters())) if managed else None

    def step(self, x, y):
        self.optimizer.zero_grad()
        if self.gm is None:
            loss = mg.cross_entropy(self.model(x), y)
            loss.backward()
        else:
            with self.gm:
                loss = mg.cross_entropy(self.model(x), y)
                self.gm.backward(loss)
        self.optimizer.step()
        return {"loss": loss, "sizes": (x.shape[0], [loss * 2.0, None])}

    def state(self):
        found = {}
        for k, p in enumerate(self.model.parameters()):
            found[k, "value"], found[k, "grad"] = p.numpy().copy(), p.grad.numpy().copy()
            found[k, "versions"] = p.version
            for name, value in self.optimizer.state.get(p.id, {}).items():
                found[k, name], found[k, name, "version"] = value.numpy().copy(), value.version
        found["counter"] = generator.counter
        return found


@pytest.mark.parametrize("managed", [False, True])
@pytest.mark.parametrize("algorithm", [optim.Adam, optim.SGD, optim.RMSprop])
def test_training_leaves_what_eager_training_leaves(algorithm, managed):
    data = [(values(6, 4, seed=k), mg.variable(np.arange(6) % 3)) for k in range(6)]
    found = []
    for compile in (lambda f: f, mg.compile):
        scene, losses = Scene(algorithm, managed), []
        step = compile(scene.step)
        for x, y in data:
            out = step(x, y)
            assert out["sizes"][0] == 6
            assert out["sizes"][1][1] is None
            losses.append((out["loss"].item(), out["sizes"][1][0].item()))
        found.append((losses, scene.state()))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=2e-4)
    assert found[0][1].keys() == found[1][1].keys()
    for key, value in found[0][1].items():
        np.testing.assert_allclose(found[1][1][key], value, rtol=1e-3, atol=1e-5, err_msg=str(key))
    assert step.traces[0].plan.runs == 6


def test_call_protocol_traced_at_first_and_traced_again():
    calls = []

    @mg.compile
    def step(x):
        calls.append(len(calls))
        return x * 2.0

    x, traced = mg.ones((2,)), []
    for k in range(1, 19):
        before = len(calls)
        assert step(x).tolist() == [2.0, 2.0]
        if len(calls) > before:
            traced.append(k)
    assert traced == [1, 3, 5, 9, 17]


@pytest.mark.parametrize(("mode", "count"), [("0", 6), ("check", 6), ("1", 3), ("", 3)])
def test_environment_variable_chooses(monkeypatch, mode, count):
    monkeypatch.setenv("MINIGRAD_COMPILE", mode)
    calls = []
    step = mg.compile(lambda x: calls.append(0) or x + 1.0)
    for _ in range(6):
        assert step(mg.ones((1,))).tolist() == [2.0]
    assert len(calls) == count
    assert len(step.traces) == (mode != "0")


def test_environment_variable_of_another_value_is_refused(monkeypatch):
    monkeypatch.setenv("MINIGRAD_COMPILE", "yes")
    with pytest.raises(ArgumentError, match="MINIGRAD_COMPILE"):
        mg.compile(lambda x: x)


class TestForms:
    def test_decorator_keeps_name_and_text(self):
        @mg.compile
        def named(x):
            """Doubles."""
            return x * 2.0

        @mg.compile(donate="x", strict=False)
        def also(x):
            return x

        assert (named.__name__, named.__doc__) == ("named", "Doubles.")
        assert named.__wrapped__(mg.ones((1,))).tolist() == [2.0]
        assert also.__name__ == "also"
        assert "named" in repr(named)

    def test_methods_have_a_program_per_object(self):
        class Scaler:
            def __init__(self, factor):
                self.factor = mg.variable([factor])

            @mg.compile
            def scale(self, x):
                """Times factor."""
                return x * self.factor

        a, b = Scaler(2.0), Scaler(3.0)
        for _ in range(4):
            assert a.scale(mg.ones((1,))).tolist() == [2.0]
            assert b.scale(mg.ones((1,))).tolist() == [3.0]
        assert len(Scaler.scale.traces) == 2
        del a
        gc.collect()
        assert b.scale(mg.ones((2,))).tolist() == [3.0, 3.0]
        assert len(Scaler.scale.traces) == 2, "the one of the dead object is gone"

    def test_modules_and_callables(self):
        model = nn.Linear(3, 2)
        run = mg.compile(model)
        x = values(4, 3)
        with mg.no_grad():
            for _ in range(3):
                np.testing.assert_allclose(run(x).numpy(), model(x).numpy(), rtol=1e-6)
        assert [p.name for p in run.parameters()] == ["weight", "bias"]
        with pytest.raises(AttributeError):
            run.nothing_like_it  # noqa: B018
        assert mg.compile(mg.exp)(mg.zeros((1,))).tolist() == [1.0]

    @pytest.mark.parametrize(
        ("bad", "match"),
        [
            (3, "that can be called"),
            (mg.compile(lambda: None), "compiled already"),
            (lambda: (yield), "generator"),
        ],
    )
    def test_what_cannot_be_compiled(self, bad, match):
        with pytest.raises(ArgumentTypeError, match=match):
            mg.compile(bad)

    @pytest.mark.parametrize(
        ("name", "match"),
        [
            ("mode", "one way to compile"),
            ("fullgraph", "one program, always"),
            ("dynamic", "pad the last batch"),
            ("backend", "Numba"),
            ("options", "there are none"),
            ("disable", "MINIGRAD_COMPILE=0"),
            ("static_argnums", "compared by value"),
            ("donate_argnums", "donate=, as it is called here"),
            ("jit", "it takes f, donate, strict"),
        ],
    )
    def test_options_of_other_libraries_are_refused(self, name, match):
        for f in (None, lambda x: x):
            with pytest.raises(ArgumentTypeError, match=f"no argument {name}") as error:
                mg.compile(f, **{name: 1})
            assert match in error.value.fix

    @pytest.mark.parametrize("kind", [classmethod, staticmethod])
    def test_decorators_in_the_other_order(self, kind):
        with pytest.raises(ArgumentTypeError, match=f"below @{kind.__name__}"):
            mg.compile(kind(lambda *args: args[-1]))

        class Doubler:
            double = kind(mg.compile(lambda *args: args[-1] * 2.0))

        for _ in range(3):
            assert Doubler.double(mg.ones((1,))).item() == 2.0
            assert Doubler().double(mg.ones((1,))).item() == 2.0

    def test_coroutines_are_refused(self):
        async def step(x):
            return x

        with pytest.raises(ArgumentTypeError, match="coroutine"):
            mg.compile(step)

    def test_copies_have_programs_of_their_own(self):
        class Scaler:
            def __init__(self):
                self.factor = mg.variable([2.0])
                self.step = mg.compile(self.scale)

            def scale(self, x):
                return x * self.factor

        first = Scaler()
        for _ in range(3):
            first.step(mg.ones((1,)))
        second = copy.deepcopy(first)
        second.factor.mul_(2.0)
        for _ in range(4):
            assert first.step(mg.ones((1,))).item() == 2.0
            assert second.step(mg.ones((1,))).item() == 4.0
        assert copy.copy(first.step)(mg.ones((1,))).item() == 2.0
        with pytest.raises(ArgumentTypeError, match="pickle"):
            pickle.dumps(first.step)

    def test_source_before_there_is_a_program(self):
        with pytest.raises(ArgumentError, match="no program yet"):
            mg.compile(lambda x: x).source()

    def test_source_where_there_never_is_one(self, monkeypatch):
        monkeypatch.setenv("MINIGRAD_COMPILE", "0")
        with pytest.raises(ArgumentError, match="leave MINIGRAD_COMPILE out"):
            mg.compile(lambda x: x).source()

    def test_inside_another_compiled_function_it_is_part_of_its_program(self):
        inner = mg.compile(lambda x: x * 3.0)
        outer = mg.compile(lambda x: inner(x) + 1.0)
        for _ in range(4):
            assert outer(mg.ones((1,))).tolist() == [4.0]
        assert not inner.traces
        assert len(outer.traces[0].capture.recording.instructions) == 2

    def test_recursion_runs_as_usual(self):
        @mg.compile
        def power(x, n):
            return x if n == 1 else x * power(x, n - 1)

        for _ in range(3):
            assert power(mg.full((1,), 2.0), 5).tolist() == [32.0]


class TestWatching:
    def test_who_looks_on_sees_the_operations(self):
        step = mg.compile(lambda x: (x * 2.0).sum())
        for _ in range(3):
            step(mg.ones((2,)))
        runs = step.traces[0].plan.runs
        with mg.memory.timeline() as timeline:
            step(mg.ones((2,)))
        assert {"mul", "sum"} <= {e.op for e in timeline.events}
        assert step.traces[0].plan.runs == runs
        step(mg.ones((2,)))
        assert step.traces[0].plan.runs == runs + 1

    def test_seams_take_part(self):
        w = nn.Parameter([3.0])

        @mg.compile
        def step():
            w.grad = None
            (w * w).sum().backward()

        for _ in range(3):
            step()
        with mg.use(gradients={"mul": lambda dy, a, b: (100 * dy * b, dy * a)}):
            step()
        assert w.grad.tolist() == [303.0]

    def test_anomalies_are_found(self):
        w = nn.Parameter([0.0])

        @mg.compile
        def step():
            w.grad = None
            mg.log(w).sum().backward()

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(3):
                step()
            with mg.debug.detect_anomaly(), pytest.raises(mg.errors.NonFiniteError):
                step()
