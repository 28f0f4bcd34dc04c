"""What a capture knows of a step: its arguments, its results, and the gradients it leaves."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.compiler.program.program import ARGUMENT, CAPTURED, TEMPORARY
from minigrad.compiler.trace.capture import capture
from minigrad.compiler.trace.structure import StepOutput
from minigrad.devices.cpu.device import cpu
from tests.compiler.interpreter import memory_of, run
from tests.compiler.replay import replay, run_captured


def ops(captured):
    return [i.op for i in captured.recording.instructions]


def test_arguments_are_known_by_their_storage():
    w = mg.variable([3.0, 4.0])

    def step(pair, scale, *, named):
        a, b = pair
        return a * b + named["z"] * scale + w

    x, z = mg.variable([[1.0, 2.0], [5.0, 6.0]]), mg.variable([7.0, 8.0])
    captured = capture(step, ((x[0], x[1]), 2), {"named": {"z": z}})
    values = captured.recording.arguments
    assert [v.kind for v in values] == [ARGUMENT, ARGUMENT]
    assert [v.index for v in values] == [0, 1]
    assert values[0].storage is x.array
    assert [v.storage for v in captured.recording.values(CAPTURED)] == [w.array]
    found = run(captured.recording, [x, z])
    np.testing.assert_allclose(found[0], [5.0 + 14.0 + 3.0, 12.0 + 16.0 + 4.0])
    other = np.arange(4.0, dtype=np.float32)
    np.testing.assert_allclose(
        run(captured.recording, [other, other[:2]])[0], [0 * 2 + 0 + 3, 1 * 3 + 2 + 4]
    )


def test_donated_arguments():
    x, y = mg.ones((2,)), mg.ones((2,))
    captured = capture(lambda x, y: x + y, (x, y), donated=[y])
    assert captured.recording.donated == {captured.recording.arguments[1]}


def test_the_structure_of_results():
    w = nn.Parameter([1.0, 2.0])

    def step(x):
        y = x * 2.0
        again = x + 1.0
        return {"y": y, "more": [y, y.reshape(2, 1), x, w, again[:1]], "n": (3, None, "a")}

    x = mg.variable([1.0, 5.0])
    captured = capture(step, (x,))
    found = captured.structure
    assert found["n"] == (3, None, "a")
    assert found["y"] == found["more"][0] == StepOutput("result", 0)
    assert found["more"][1] == StepOutput("result", 1)
    assert found["more"][2] == StepOutput("argument", 0)
    assert found["more"][3].variable is w
    assert found["more"][4] == StepOutput("result", 2)
    values = [ref.value for ref in captured.recording.results]
    assert len(set(values)) == 3
    assert all(v.kind == TEMPORARY for v in values)
    assert all(ref.covers() for ref in captured.recording.results)
    results = run_captured(captured)
    assert results["more"][1].tolist() == [[2.0], [10.0]]
    assert results["more"][4].tolist() == [2.0]
    assert results["y"] is results["more"][0]


def test_a_view_of_what_was_captured_shares_its_memory():
    w = mg.variable([1.0, 2.0])
    found = replay(lambda: (w[1:], w.detach()))
    assert all(mg.memory.shares_storage(x, w) for x in found)


def test_a_view_of_an_argument_is_copied():
    x = mg.variable([1.0, 2.0])
    captured = capture(lambda x: x[1:], (x,))
    assert captured.structure == StepOutput("result", 0)
    assert ops(captured) == ["elementwise"]
    assert run(captured.recording, [x])[0].tolist() == [2.0]


class TestGradients:
    def test_of_a_leaf_without_a_group(self):
        w = mg.variable([1.0, 2.0], requires_grad=True)

        def step(x):
            (w * x).sum().backward()

        x = mg.variable([3.0, 4.0])
        captured = capture(step, (x,))
        (effect,) = captured.grads
        assert w.grad is None
        assert (effect.leaf, effect.before, effect.after) == (w, None, StepOutput("result", 0))
        run_captured(captured)
        assert w.grad.tolist() == [3.0, 4.0]
        first = w.grad
        captured = capture(step, (x,))
        (effect,) = captured.grads
        assert effect.before is first
        assert effect.is_read
        assert effect.after.variable is first
        assert w.grad is first
        assert first.tolist() == [3.0, 4.0]
        run_captured(captured)
        assert first.tolist() == [6.0, 8.0]

    def test_zeroed_first_nobody_reads_what_was_there(self):
        w = mg.variable([1.0, 2.0], requires_grad=True)

        def step(x):
            w.grad = None
            (w * x).sum().backward()
            return w.grad

        x = mg.variable([3.0, 4.0])
        step(x)
        captured = capture(step, (x,))
        (effect,) = captured.grads
        assert not effect.is_read
        assert effect.after == captured.structure == StepOutput("result", 0)

    def test_of_an_argument(self):
        x = mg.variable([3.0, 4.0], requires_grad=True)
        captured = capture(lambda x: (x * x).sum().backward(), (x,))
        (effect,) = captured.grads
        assert effect.leaf is None
        assert effect.argument == 0
        run_captured(captured)
        assert x.grad.tolist() == [6.0, 8.0]

    def test_of_a_group_that_is_kept(self):
        model = nn.Linear(2, 3)
        manager = mg.GradManager(model.parameters())
        x = mg.ones((4, 2))

        def step(x):
            with manager:
                manager.backward(model(x).sum())

        step(x)
        grads = [p.grad for p in model.parameters()]
        before = [g.tolist() for g in grads]
        captured = capture(step, (x,))
        assert [e.after.variable for e in captured.grads] == grads
        assert [p.grad for p in model.parameters()] == grads
        assert [g.tolist() for g in grads] == before
        assert not captured.idle
        run_captured(captured)
        assert model.bias.grad.tolist() == [8.0, 8.0, 8.0]

    def test_idle_slices_are_those_of_gradients_that_come_and_go(self):
        model = nn.Linear(2, 3)
        optimizer = optim.SGD(model)
        manager = mg.GradManager(model.parameters())

        def step(x, keeps):
            with manager:
                manager.backward(model(x).sum())
            optimizer.step()
            if keeps:
                model.weight.grad = None
            else:
                optimizer.zero_grad()

        x = mg.ones((4, 2))
        step(x, False)
        flat = model.weight.group[0].flat
        captured = capture(step, (x, False))
        assert [(v.storage, o, n) for v, o, n in captured.idle] == [(flat, 0, 6), (flat, 16, 3)]
        captured = capture(step, (x, True))
        assert [(o, n) for _, o, n in captured.idle] == [(0, 6)]
        after = {e.leaf: e.after for e in captured.grads}
        assert after[model.bias].variable is model.bias.group[0].slices[1][1]

    def test_a_slice_that_is_returned_is_not_idle(self):
        w = nn.Parameter([1.0, 2.0])
        manager = mg.GradManager([w])

        def step(x):
            with manager:
                manager.backward((w * x).sum())
            g, w.grad = w.grad, None
            return g

        x = mg.variable([3.0, 4.0])
        step(x)
        assert not capture(step, (x,)).idle
        assert replay(step, x).tolist() == [3.0, 4.0]

    def test_two_passes_add_up(self):
        w = nn.Parameter([1.0, 2.0])
        manager = mg.GradManager([w])

        def step(x):
            for _ in range(2):
                with manager:
                    manager.backward((w * x).sum())
            return w.grad * 1.0

        assert replay(step, mg.variable([3.0, 4.0])).tolist() == [6.0, 8.0]
        assert w.grad.tolist() == [6.0, 8.0]


def test_real_memory_never_takes_a_fast_path(monkeypatch):
    """dy and saved values that are flat and real: the eager plans would compute at once."""
    a = mg.variable([1.0, 2.0], requires_grad=True)
    b = mg.variable([3.0, 4.0], requires_grad=True)
    dy = mg.variable([1.0, 1.0])
    (a * b).backward(dy)
    a.grad = b.grad = None
    (a * b + a).tanh().backward(dy)
    takes = cpu.pool.takes

    def step():
        a.grad = b.grad = None
        (a * b).backward(dy)
        (a * b + a).tanh().backward(dy)

    captured = capture(step)
    assert cpu.pool.takes == takes
    assert len(ops(captured)) > 5
    run_captured(captured)
    assert a.grad.tolist() == pytest.approx([3.0, 4.0], abs=0.1)


def test_memory_of_a_recording_is_a_copy():
    h = mg.zeros((2,))
    captured = capture(lambda: h.add_(1.0))
    memory = memory_of(captured.recording)
    run(captured.recording)
    assert h.tolist() == [0.0, 0.0]
    assert [data.tolist() for data in memory.values()] == [[0.0, 0.0]]
