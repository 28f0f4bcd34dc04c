"""What lies around a call and leads to another program: modes, attributes, gradients."""

import copy

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim

pytestmark = [
    pytest.mark.usefixtures("interpreted_plans"),
    pytest.mark.filterwarnings("ignore::minigrad.errors.RetraceWarning"),
]


def floats(*shape):
    return mg.variable(np.arange(np.prod(shape), dtype="f4").reshape(shape))


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
        found = []
        for compile in (lambda f: f, mg.compile):
            mg.manual_seed(0)
            model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(3))
            step, out = compile(lambda x, model=model: model(x).detach()), []
            for k in range(9):
                model.train(k % 3 == 0)
                out.append(step(floats(4, 3)).tolist())
            found.append((out, model[1].running_mean.tolist()))
        for eager, compiled in zip(*found, strict=True):
            np.testing.assert_allclose(compiled, eager, rtol=1e-4, atol=1e-5)
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

    def test_hooks_of_modules_that_come_and_go(self):
        model = nn.Linear(1, 1)
        step, x = mg.compile(mg.no_grad()(lambda x: model(x))), mg.ones((1, 1))
        for k in range(12):
            if k % 4 == 1:
                handle = model.register_forward_hook(lambda module, inputs, y: y * 0.0)
            if k % 4 == 3:
                handle.remove()
            wanted = 0.0 if k % 4 in (1, 2) else step.function(x).item()
            assert step(x).item() == pytest.approx(wanted), k

    @pytest.mark.parametrize("kind", ["register_hook", "register_post_accumulate_hook"])
    def test_hooks_of_leaves_that_come_and_go(self, kind):
        w, found = nn.Parameter([1.0]), []

        @mg.compile
        def step():
            w.grad = None
            (w * 3.0).sum().backward()

        def hook(x):
            if kind == "register_hook":
                return x * 10.0
            x.grad = x.grad * 10.0
            return None

        for k in range(12):
            if k % 4 == 1:
                handle = getattr(w, kind)(hook)
            if k % 4 == 3:
                handle.remove()
            step()
            found.append(w.grad.item())
        assert found == [3.0, 30.0, 30.0, 3.0] * 3

    def test_hooks_of_one_graph_are_none_of_its_business(self):
        w, calls = nn.Parameter([1.0]), []
        step = mg.compile(lambda x: calls.append(0) or x * w.detach())
        for _ in range(32):
            y = w * 2.0
            with y.register_hook(lambda g: g):
                step(mg.ones((1,)))
        assert len(calls) == 5

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

    def test_a_parameter_with_other_memory(self):
        model = nn.Linear(1, 1)
        step = mg.compile(lambda p: (p * 2.0).detach())
        for _ in range(3):
            step(model.weight)
        model.to("float64").to("float32")
        model.weight.assign([[7.0]])
        assert [step(model.weight).item() for _ in range(3)] == [14.0] * 3


class TestSwitching:
    """train() and eval() in turn: what was traced with the same modes is found again."""

    def test_an_epoch_after_the_first_costs_no_tracing(self):
        model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.BatchNorm1d(4), nn.Linear(4, 2))
        optimizer, calls = optim.SGD(model, learning_rate=0.1), []

        @mg.compile
        def step(x, y):
            calls.append("step")
            optimizer.zero_grad()
            loss = mg.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        @mg.compile
        def evaluate(x):
            calls.append("evaluate")
            with mg.no_grad():
                return model(x)

        x, y = floats(4, 3), mg.variable([0, 1, 0, 1])
        for epoch in range(12):
            model.train()
            for _ in range(5):
                step(x, y)
            model.eval()
            for _ in range(5):
                out = evaluate(x)
            with mg.no_grad():
                np.testing.assert_allclose(out.numpy(), model(x).numpy(), rtol=1e-4, err_msg=epoch)
        assert calls.count("step") == calls.count("evaluate") == 6  # calls 1, 3, 5, 9, 17, 33

    def test_one_function_in_both_modes(self):
        model, calls = nn.Dropout(0.5), []
        step, x = mg.compile(lambda x: calls.append(0) or model(x)), mg.ones((1000,))
        for k in range(40):
            model.train(k % 2 == 0)
            assert (step(x).numpy() == 1.0).all() == bool(k % 2), k
        assert len(step.traces) == 2
        assert len(calls) <= 12

    def test_one_program_for_both_modes(self):
        model, calls = nn.Linear(3, 2), []
        step = mg.compile(mg.no_grad()(lambda x: calls.append(0) or model(x)))
        for k in range(32):
            model.train(k % 2 == 0)
            step(floats(4, 3))
        assert len(step.traces) == 1
        assert len(calls) == 6  # calls 1, 2, 3 (in the other mode), 5, 9, 17

    def test_one_module_switched_and_another_is_not_the_same(self):
        class Two(nn.Module):
            def __init__(self):
                self.first, self.second = nn.Dropout(0.5), nn.Dropout(0.9)

            def forward(self, x):
                return self.first(x) + 10.0 * self.second(x)

        model, x = Two(), mg.ones((500,))
        step = mg.compile(lambda x: model(x))
        for k in range(32):
            model.first.training, model.second.training = bool(k & 1), bool(k & 2)
            found = step(x).numpy()
            assert (found % 10.0 == 1.0).all() != bool(k & 1), k
            assert (found >= 10.0).all() != bool(k & 2), k
        assert len(step.traces) == 4

    def test_what_was_set_meanwhile_is_seen(self):
        model = nn.Dropout(0.5)
        step, x = mg.compile(lambda x: model(x) * model.scale), mg.ones((4,))
        model.eval()
        for scale in (1.0, 2.0, 3.0):
            model.scale = scale
            for training in (False, True, False):
                model.train(training)
                for _ in range(3):
                    found = step(x).tolist()
            assert found == [scale] * 4

    def test_a_copy_is_another_module(self):
        model = nn.Dropout(0.5)
        twin = copy.deepcopy(model.eval())
        step, x = mg.compile(lambda x: model(x) + 10.0 * twin(x)), mg.ones((100,))
        for _ in range(3):
            assert step(x).tolist() == [11.0] * 100
        model.train(), twin.train()
        assert step(x).tolist() != [11.0] * 100
        model.eval(), twin.eval()
        assert step(x).tolist() == [11.0] * 100

    def test_training_that_is_no_bool_is_an_attribute(self):
        model = nn.Linear(1, 1)
        step, x = mg.compile(lambda x: x * float(model.training)), mg.ones((1,))
        for k, value in enumerate([False, 3, True, 2, False, 5] * 3):
            model.training = value
            assert step(x).item() == float(value), k
