"""Whole models under poison: a byte used after it was freed would show as NaN in the losses."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.memory.monitor import pool_of

nn = mg.nn


class Language(nn.Module):
    """Embedding, attention, normalisation: 8 tokens, 5 words."""

    def __init__(self):
        self.words = nn.Embedding(5, 8)
        self.block = nn.TransformerBlock(8, 2)
        self.out = nn.Linear(8, 5)

    def forward(self, tokens):
        return self.out(self.block(self.words(tokens)))


def images():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 3, stride=2), nn.GELU(), nn.Flatten(), nn.Dropout(0.2), nn.Linear(4, 3),
    )  # fmt: skip


def dense():
    return nn.Sequential(
        nn.Linear(6, 16), nn.LayerNorm(16), nn.Tanh(), nn.Linear(16, 16), nn.RMSNorm(16),
        nn.SiLU(), nn.Linear(16, 3),
    )  # fmt: skip


MODELS = {
    "language": (Language, lambda r: r.integers(0, 5, size=(4, 8)), (4, 8), 5),
    "images": (images, lambda r: r.normal(size=(4, 1, 8, 8)).astype("f4"), (4,), 3),
    "dense": (dense, lambda r: r.normal(size=(4, 6)).astype("f4"), (4,), 3),
}


def train(name, optimizer_type, manager, steps=6):
    make, data, shape, classes = MODELS[name]
    rng = np.random.default_rng(0)
    mg.manual_seed(0)
    model = make()
    optimizer = optimizer_type(model, learning_rate=0.01)
    gm = mg.GradManager(model.parameters()) if manager else None
    losses = []
    for _ in range(steps):
        x, labels = mg.variable(data(rng)), rng.integers(0, classes, size=shape)
        if gm is None:
            loss = mg.cross_entropy(model(x), labels)
            loss.backward()
        else:
            with gm:
                loss = mg.cross_entropy(model(x), labels)
                gm.backward(loss)
        mg.optim.clip_grad_norm_(model, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("manager", [False, True], ids=["backward", "manager"])
@pytest.mark.parametrize("name", list(MODELS))
def test_training_is_the_same_under_poison(name, manager):
    optimizer = {"language": mg.optim.AdamW, "images": mg.optim.SGD, "dense": mg.optim.Adam}[name]
    plain = train(name, optimizer, manager)
    with mg.memory.poison():
        poisoned = train(name, optimizer, manager)
    assert np.isfinite(plain).all()
    assert poisoned == plain


@pytest.mark.parametrize("name", list(MODELS))
def test_training_is_the_same_while_everybody_watches(name):
    plain = train(name, mg.optim.Adam, True)
    with (
        mg.debug.detect_anomaly(),
        mg.debug.record_grad_function() as log,
        mg.memory.timeline() as events,
    ):
        watched = train(name, mg.optim.Adam, True)
    np.testing.assert_allclose(watched, plain, rtol=1e-4)
    assert len(log) > 10
    assert len(events) > 10


@pytest.mark.parametrize("name", list(MODELS))
def test_training_leaves_no_bytes_behind_from_step_to_step(name):
    pool, levels = pool_of("cpu"), []
    for steps in (3, 6, 9):
        train(name, mg.optim.Adam, True, steps)
        levels.append(pool.current_bytes)
    assert levels[0] == levels[1] == levels[2]
