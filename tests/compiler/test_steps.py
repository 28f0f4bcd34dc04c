"""Whole steps: recorded and run by the interpreter, they do what eager execution does."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.compiler.trace.capture import capture
from minigrad.devices.cpu.device import cpu
from minigrad.ops.creation import generator
from tests.compiler.replay import replay
from tests.optim.reference import CASES, FEW


class Language(nn.Module):
    """Characters to the logits of the next ones."""

    def __init__(self, classes=11, width=16, length=6):
        self.table, self.places = nn.Embedding(classes, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(
            *(nn.TransformerBlock(width, 4, causal=True, dropout=0.1) for _ in range(2))
        )
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        h = self.table(x) + self.places(mg.arange(x.shape[1]))
        return self.head(self.blocks(h))


def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


def dropping():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.4), nn.Linear(16, 4))


def normed():
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Linear(16, 4))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 2 * 2, 4),
    )  # fmt: skip


def rows():
    return mg.randn((12, 8)), mg.randint(0, 4, (12,))


def images():
    return mg.randn((5, 1, 8, 8)), mg.randint(0, 4, (5,))


def sentences():
    return mg.randint(0, 11, (3, 6)), mg.randint(0, 11, (3, 6))


def sgd(model):
    return optim.SGD(model, learning_rate=0.1)


STEPS = {
    **{str(row): (mlp, rows, row.make) for row in CASES},
    "dropout": (dropping, rows, sgd),
    "batch norm": (normed, rows, sgd),
    "CNN": (cnn, images, FEW["momentum"].make),
    # a key's bias has no gradient but rounding, which Adam with its usual eps makes large
    "transformer": (Language, sentences, lambda m: optim.AdamW(m, 0.01, eps=1e-2)),
}


class Training:
    """A model, an optimizer, and a step that trains."""

    def __init__(self, make_model, make_data, make_optimizer, dtype="float32"):
        mg.manual_seed(7)
        self.model = make_model().to(dtype)
        self.optimizer = make_optimizer(self.model)
        self.manager = mg.GradManager(self.model.parameters())
        self.data = make_data()
        if self.data[0].dtype.is_float:
            self.data = self.data[0].to(dtype), self.data[1]

    def step(self, x, y):
        with self.manager:
            loss = mg.cross_entropy(self.model(x), y)
            self.manager.backward(loss)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss

    def arrays(self):
        """Everything that a step may change, by name."""
        found = {name: x.numpy().copy() for name, x in self.model.state_dict().items()}
        for name, p in self.optimizer.named_parameters():
            for key, x in (self.optimizer.state.get(p.id) or {}).items():
                found[f"{name} {key}"] = x.numpy().copy()
        return found

    def versions(self):
        """The version counters of parameters, buffers and state."""
        found = [x.version for x in (*self.model.parameters(), *self.model.buffers())]
        for p in self.optimizer.parameters:
            found += [x.version for x in (self.optimizer.state.get(p.id) or {}).values()]
        return found


def same(a, b, error):
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_allclose(a[name], b[name], error, error, err_msg=name)


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize(("dtype", "error"), [("float32", 2e-5), ("float64", 1e-12)])
def test_a_recorded_step_does_what_eager_does(name, dtype, error):
    eager, recorded = Training(*STEPS[name], dtype), Training(*STEPS[name], dtype)
    start = generator.counter
    for _ in range(3):
        loss = eager.step(*eager.data)
    moved = generator.counter - start
    generator.counter = start
    recorded.step(*recorded.data)
    for _ in range(2):
        found = replay(recorded.step, *recorded.data)
    assert generator.counter - start == moved
    np.testing.assert_allclose(found.numpy(), loss.numpy(), error, error)
    same(eager.arrays(), recorded.arrays(), error)
    assert all(p.grad is None for p in recorded.model.parameters())
    assert eager.versions() == recorded.versions()


@pytest.mark.parametrize("name", STEPS)
def test_a_capture_changes_nothing_and_computes_nothing(name, monkeypatch):
    case = Training(*STEPS[name])
    case.step(*case.data)
    before, versions = case.arrays(), case.versions()
    counter, takes = generator.counter, cpu.pool.takes
    for work in (
        "elementwise", "reduce", "rows", "matmul", "gather", "scatter_add", "put", "wrap_index",
        "cumsum", "arg_reduce", "argsort", "solve", "cholesky", "random", "unfold", "fold",
        "largest", "all_within", "convolve",
        "convolve_back", "correlate",
    ):  # fmt: skip
        monkeypatch.setattr(cpu, work, lambda *a, work=work, **k: pytest.fail(f"cpu.{work} ran"))
    captured = capture(case.step, case.data)
    monkeypatch.undo()
    constants = captured.recording.values("constant")
    assert len(constants) == (name == "transformer")  # mg.arange is data that the step makes
    assert cpu.pool.takes == takes + len(constants)
    assert captured.escaped() is None
    assert (generator.counter, case.versions()) == (counter, versions)
    after = case.arrays()
    for key, values in before.items():
        assert values.tobytes() == after[key].tobytes(), key
    assert all(p.grad is None for p in case.model.parameters())
