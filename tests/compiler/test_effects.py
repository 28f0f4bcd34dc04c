"""What a captured step does besides its results: writes, constants, the host's actions, checks."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.compiler.program.program import CONSTANT
from minigrad.compiler.trace.capture import capture
from minigrad.compiler.trace.structure import StepOutput
from minigrad.compiler.trace.trace import Trace
from minigrad.errors import NonFiniteError
from minigrad.seams import Effects
from tests.compiler.interpreter import Stopped, run
from tests.compiler.replay import replay, run_captured


def test_a_trace_answers_every_effect():
    announced = {name for name in vars(Effects) if not name.startswith("__")}
    assert len(announced) > 10
    assert not {name for name in announced if getattr(Trace, name) is getattr(Effects, name)}


def ops(captured):
    return [i.op for i in captured.recording.instructions]


class TestWrites:
    def test_in_place_writes_are_counted_and_put_back(self):
        h, x = mg.zeros((3,)), mg.ones((3,))

        def step(x):
            h.add_(x)
            h[1:] = x[:2] * 3.0
            return h.sum()

        version = h.version
        captured = capture(step, (x,))
        assert h.version == version
        assert h.tolist() == [0.0, 0.0, 0.0]
        assert {v.storage: n for v, n in captured.written.items()} == {h.array: 2}
        assert run_captured(captured).tolist() == 7.0
        assert h.tolist() == [1.0, 3.0, 3.0]
        assert h.version == version + 2

    def test_a_saved_value_that_is_written_to_is_found(self):
        w, h = mg.variable([2.0], requires_grad=True), mg.ones((1,))

        def step():
            y = (w * h).sum()
            h.add_(1.0)
            y.backward()

        with pytest.raises(mg.errors.SavedValueModifiedError, match=r"written at.*h\.add_"):
            capture(step)
        assert h.version == 0

    def test_an_argument_that_is_written(self):
        x = mg.ones((2,))
        captured = capture(lambda x: x.mul_(3.0), (x,))
        assert captured.written == {captured.recording.arguments[0]: 1}
        assert captured.structure == StepOutput("argument", 0)

    def test_clones_stay_copies_on_write(self):
        w = mg.variable([1.0, 2.0])
        twin = w.clone()
        assert w.refcount == 2

        def step():
            inner = w.clone()
            w.mul_(2.0)
            return inner + w, twin * 1.0

        captured = capture(step)
        assert w.refcount == 2
        assert {v.storage for v in captured.written} == {w.array}
        both, twin_after = run(captured.recording)
        assert both.tolist() == [3.0, 6.0]
        assert twin_after.tolist() == [1.0, 2.0]

    def test_constants_belong_to_the_program(self):
        def step(x):
            table = mg.variable([[1.0, 2.0], [3.0, 4.0]])
            table += x
            return table.sum() + mg.variable([1.0, 1.0]).sum()

        captured = capture(step, (mg.ones((2,)),))
        assert captured.escaped() is None
        values = captured.recording.values(CONSTANT)
        assert [v.size for v in values] == [4, 2]
        for _ in range(2):  # the constant itself is not written
            assert run(captured.recording, [mg.ones((2,))])[0] == 16.0

    def test_zeros_and_ones_are_no_constants(self):
        captured = capture(lambda: mg.zeros((2,)) + mg.ones((2,), device="cpu"))
        assert not captured.recording.values(CONSTANT)
        assert run(captured.recording)[0].tolist() == [1.0, 1.0]


class TestHost:
    def model(self):
        model = nn.Linear(2, 1)
        optimizer = optim.SGD(model, learning_rate=1.0)
        return model, optimizer, optim.ExponentialDecay(optimizer, 0.5)

    def test_a_schedule_steps_before_or_after_the_program(self):
        model, optimizer, schedule = self.model()
        x = mg.ones((3, 2))

        def update(x):
            model(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

        def after(x):
            update(x)
            schedule.step()

        def before(x):
            schedule.step()
            update(x)

        update(x)
        for step, when in ((after, "after"), (before, "before")):
            captured = capture(step, (x,))
            assert (schedule.t, optimizer.learning_rate) == (0, 1.0)
            assert [w for _, w in captured.actions] == [when]
        start = model.bias.tolist()
        run_captured(captured)
        assert (schedule.t, optimizer.learning_rate) == (1, 0.5)
        assert model.bias.tolist() == pytest.approx([start[0] - 1.5])
        replay(after, x)
        assert (schedule.t, optimizer.learning_rate) == (2, 0.25)
        assert model.bias.tolist() == pytest.approx([start[0] - 3.0])

    def test_the_learning_rate_is_read_when_the_program_runs(self):
        model, optimizer, _ = self.model()
        x = mg.ones((3, 2))

        def step(x):
            model(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            return model.bias * 1.0

        step(x)
        captured = capture(step, (x,))
        bias = model.bias.item()
        for rate in (0.1, 0.01):
            optimizer.learning_rate = rate
            assert run(captured.recording, [x])[0] == pytest.approx(bias - 3 * rate)

    def test_state_that_is_missing_is_made_for_real(self):
        model = nn.Linear(2, 1)
        optimizer = optim.Adam(model)
        x = mg.ones((3, 2))

        def step(x):
            model(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

        captured = capture(step, (x,))
        assert captured.escaped() is None
        state = optimizer.state[model.weight.id]
        assert state["step"].item() == 0.0
        run_captured(captured)
        assert state["step"].item() == 1.0
        assert state["first_moment"].tolist() == pytest.approx(np.full((1, 2), 0.3))


class TestChecks:
    def test_labels_and_indices_stop_the_step(self):
        table = mg.variable([[1.0], [2.0]])
        captured = capture(
            lambda index, labels: mg.cross_entropy(mg.embedding(table, index), labels),
            (mg.variable([1]), mg.variable([0])),
        )
        assert ops(captured)[:3] == ["wrap_index", "check", "gather"]
        for index, labels, what in (([2], [0], "embedding"), ([-1], [0], "embedding"),
                                    ([1], [1], "cross_entropy")):  # fmt: skip
            with pytest.raises(Stopped) as caught:
                run(captured.recording, [np.array(index), np.array(labels)])
            error = caught.value.instruction.attributes["error"]()
            assert isinstance(error, mg.errors.BoundsError)
            assert what in error.where
            assert "test_effects.py" in error.where

    def test_gradients_that_are_not_finite(self):
        w = nn.Parameter([1.0, 2.0], name="w")
        x = mg.variable([3.0, np.inf])

        def step(x):
            (w * x).sum().backward()
            norm = optim.clip_grad_norm_([w], 1.0)
            w.grad = None
            return norm

        captured = capture(step, (x,))
        assert captured.structure == StepOutput("result", 0, is_number=True)
        with pytest.raises(Stopped) as caught:
            run(captured.recording, [x])
        error = caught.value.instruction.attributes["error"]()
        assert isinstance(error, NonFiniteError)
        assert "gradient of 'w'" in error.got
        assert replay(step, mg.variable([3.0, 4.0])) == 5.0

    @pytest.mark.parametrize("most", [0.5, 100.0])
    @pytest.mark.parametrize("clip", ["clip_grad_norm_", "clip_grad_norm_per_param_"])
    def test_clipping_as_eager_does(self, clip, most):
        w, b = nn.Parameter([1.0, 2.0]), nn.Parameter(np.float64([3.0]))
        manager = mg.GradManager([w, b])
        x = mg.variable([3.0, 4.0])

        def step(x):
            w.grad = b.grad = None
            with manager:
                manager.backward((w * x).sum().to("float64") + (b * 12.0).sum())
            norms = getattr(optim, clip)([w, b], most)
            return norms, w.grad * 1.0, b.grad * 1.0

        norms, *eager = step(x)
        found, *grads = replay(step, x)
        assert found == pytest.approx(norms)
        for g, e in zip(grads, eager, strict=True):
            np.testing.assert_allclose(g.numpy(), e.numpy(), 1e-6)

    def test_a_norm_is_a_number(self):
        w = nn.Parameter([1.0, 2.0])

        def step(x):
            w.grad = None
            (w * x).sum().backward()
            norm = optim.clip_grad_norm_([w], 100.0)
            return [norm, 2.0 * norm + 1, -norm / norm, sum([norm, norm]), norm * x, x / norm]

        x = mg.variable([3.0, 4.0])
        *numbers, product, quotient = replay(step, x)
        assert numbers == [5.0, 11.0, -1.0, 10.0]
        assert all(type(n) is float for n in numbers)
        assert (product.dtype, product.tolist()) == ("float32", [15.0, 20.0])
        assert quotient.tolist() == pytest.approx([0.6, 0.8])

    def test_clipping_values_and_parameters(self):
        w = nn.Parameter([1.0, -9.0])
        x = mg.variable([3.0, -0.25])

        def step(x):
            w.grad = None
            (w * x).sum().backward()
            optim.clip_grad_value_([w], 0.5)
            optim.clip_params_([w], -2.0, 2.0)
            w.map(lambda value: value * 2.0)
            return w.grad * 1.0

        assert replay(step, x).tolist() == [0.5, -0.25]
        assert w.tolist() == [2.0, -4.0]
