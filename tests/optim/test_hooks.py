"""The places where other code does an optimizer's work."""

import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors, nn
from minigrad.seams import seams


@pytest.fixture
def update(monkeypatch):
    """Sets seams.update for one test."""
    return lambda f: monkeypatch.setattr(seams, "update", f)


def train(kind, options, seed=0):
    rng = np.random.default_rng(seed)
    ps = [nn.Parameter(rng.standard_normal(s)) for s in [(3, 2), (4,)]]
    optimizer = getattr(mg.optim, kind)(ps, learning_rate=0.1, **options)
    for step in range(5):
        for k, p in enumerate(ps):
            g = rng.standard_normal(p.shape)
            p.grad = None if (step, k) == (1, 1) else mg.variable(g)
        optimizer.step()
    return ps, optimizer


def test_update_hook_sees_flat_copies_and_its_results_are_written_back(update):
    seen = []

    def adam(algorithm, values, gradient, state, hyperparameters):
        seen.append((algorithm, values.shape, sorted(state), state["step"]))
        h, t = hyperparameters, state["step"]
        state["first_moment"] += (1 - h["betas"][0]) * (gradient - state["first_moment"])
        state["second_moment"] += (1 - h["betas"][1]) * (gradient**2 - state["second_moment"])
        mean = state["first_moment"] / (1 - h["betas"][0] ** t)
        square = state["second_moment"] / (1 - h["betas"][1] ** t)
        values -= h["learning_rate"] * mean / (np.sqrt(square) + h["eps"])
        gradient[:] = np.nan  # a copy: nobody minds

    expected, reference_optimizer = train("Adam", {})
    update(adam)
    ps, optimizer = train("Adam", {})
    for p, q in zip(ps, expected, strict=True):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-12)
        for name, value in optimizer.state[p.id].items():
            other = reference_optimizer.state[q.id][name]
            np.testing.assert_allclose(value.numpy(), other.numpy(), rtol=1e-12)
    names = ["first_moment", "second_moment", "step"]
    assert seen[:2] == [("Adam", (6,), names, 1), ("Adam", (4,), names, 1)]
    assert [s[3] for s in seen if s[1] == (4,)] == [1, 2, 3, 4]
    assert not np.isnan(ps[0].grad.numpy()).any()


def test_update_hook_of_sgd_gets_its_momentum_and_hyperparameters(update):
    def sgd(algorithm, values, gradient, state, hyperparameters):
        assert hyperparameters.keys() == {"learning_rate", "momentum", "nesterov", "weight_decay"}
        state["momentum"] *= hyperparameters["momentum"]
        state["momentum"] += gradient
        values -= hyperparameters["learning_rate"] * state["momentum"]

    expected, _ = train("SGD", {"momentum": 0.9})
    update(sgd)
    ps, _ = train("SGD", {"momentum": 0.9})
    for p, q in zip(ps, expected, strict=True):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-12)


def test_update_hook_that_rebinds_state_raises(update):
    def rebinds(algorithm, values, gradient, state, hyperparameters):
        state["momentum"] = state["momentum"] + gradient

    update(rebinds)
    with pytest.raises(errors.SeamError, match="written in place"):
        train("SGD", {"momentum": 0.9})


def test_update_hook_is_of_its_thread_alone(update):
    update(lambda *args: pytest.fail("called in another thread"))
    worker = threading.Thread(target=train, args=("SGD", {}))
    worker.start()
    worker.join()
    assert seams.update is not None


def test_clip_hook_gets_copies_and_its_results_are_written_back(monkeypatch):
    def clip(gradients, max_norm):
        norm = np.sqrt(sum((g**2).sum() for g in gradients))
        for g in gradients:
            g *= max_norm / norm
        return norm

    monkeypatch.setattr(seams, "clip_grad_norm_", clip)
    p, q = nn.Parameter(np.zeros((1, 2))), nn.Parameter(np.zeros(1))
    p.grad, q.grad = mg.variable(np.array([[3.0, 0.0]])), mg.variable(np.array([4.0]))
    version = p.grad.version
    assert mg.optim.clip_grad_norm_([p, q], 1.0) == 5.0
    np.testing.assert_allclose(p.grad.numpy(), [[0.6, 0.0]])
    np.testing.assert_allclose(q.grad.numpy(), [0.8])
    assert p.grad.version > version
