"""Each workload of the benchmarks, small: minigrad, eager and compiled, agrees with others."""

import importlib.util

import numpy as np
import pytest

from benchmarks import initial
from benchmarks.peers import compiled_peer, minigrad_peer
from benchmarks.peers.numpy_optimizers import SGD, Adam

TRANSFORMER = {"width": 8, "heads": 2, "length": 5, "batch": 2}
CONV2D = {"batch": 2, "channels": 3, "filters": 4, "size": 6}
SMALL = {
    "mlp": {"sizes": [6, 5, 4], "batch": 3},
    "cnn": {"batch": 2, "channels": [2, 3], "size": 8},
    "recurrent": {"steps": 4, "inputs": 3, "units": 5, "batch": 2},
    "block": TRANSFORMER,
    "transformer": {**TRANSFORMER, "layers": 2, "vocabulary": 7},
    "gelu": {"count": 1000},
    "conv2d_forward": CONV2D,
    "conv2d_backward": CONV2D,
    "softmax": {"rows": 6, "columns": 17},
    "layer_norm": {"rows": 6, "columns": 17},
    "adam": {"shapes": [[4, 5], [3]]},
}
PEERS = {"eager": minigrad_peer, "compiled": compiled_peer}
ways = pytest.mark.parametrize("way", PEERS)


def numbers(peer, kind):
    """What the first steps compute."""
    return peer.BUILDERS[kind](**SMALL[kind]).numbers()


def cross_entropy(logits, labels):
    """Mean of -log softmax at the labels, and the gradient by logits."""
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = e / e.sum(axis=1, keepdims=True)
    at = np.arange(len(labels)), labels
    loss = -np.log(probabilities[at]).mean()
    probabilities[at] -= 1
    return loss, probabilities / len(labels)


def trained(derive, arrays, algorithm):
    """The losses of five steps; derive(data, parameters) gives a loss and its gradients."""
    data, parameters = arrays
    values = [value.copy() for value in parameters.values()]
    optimizer, losses = algorithm(values), []
    for _ in range(5):
        loss, gradients = derive(data, values)
        optimizer.step(gradients)
        losses.append(loss)
    return losses


def mlp_by_hand(data, parameters):
    """The chain rule for one hidden layer."""
    w, b, v, c = parameters
    hidden = np.maximum(data["x"] @ w.T + b, 0)
    loss, d = cross_entropy(hidden @ v.T + c, data["y"])
    dh = d @ v * (hidden > 0)
    return loss, [dh.T @ data["x"], dh.sum(axis=0), d.T @ hidden, d.sum(axis=0)]


def recurrent_by_hand(data, parameters):
    """Backpropagation through time."""
    enter, bias, back, w, b = parameters
    states = [np.zeros((data["x"].shape[1], len(bias)), np.float32)]
    for x in data["x"]:
        states.append(np.tanh(x @ enter.T + bias + states[-1] @ back.T))
    loss, d = cross_entropy(states[-1] @ w.T + b, data["y"])
    gradients = [np.zeros_like(p) for p in (enter, bias, back)]
    dh = d @ w
    for t in reversed(range(len(data["x"]))):
        dz = dh * (1 - states[t + 1] ** 2)
        for total, part in zip(
            gradients, (dz.T @ data["x"][t], dz.sum(axis=0), dz.T @ states[t]), strict=True
        ):
            total += part
        dh = dz @ back
    return loss, [*gradients, d.T @ states[-1], d.sum(axis=0)]


@ways
@pytest.mark.parametrize(
    ("kind", "derive", "algorithm"),
    [("mlp", mlp_by_hand, Adam), ("recurrent", recurrent_by_hand, SGD)],
)
def test_losses_are_those_of_numpy(way, kind, derive, algorithm):
    expected = trained(derive, getattr(initial, kind)(**SMALL[kind]), algorithm)
    assert len(set(expected)) == 5
    np.testing.assert_allclose(numbers(PEERS[way], kind), expected, rtol=1e-5)


@pytest.mark.parametrize("kind", SMALL)
def test_compiled_numbers_are_those_of_eager(kind):
    expected = numbers(minigrad_peer, kind)
    assert all(np.isfinite(expected))
    np.testing.assert_allclose(numbers(compiled_peer, kind), expected, rtol=1e-5)


@ways
@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="PyTorch is not installed: extra [bench]"
)
def test_numbers_are_those_of_pytorch(way, kind):
    from benchmarks.peers import pytorch_peer

    expected = numbers(pytorch_peer, kind)
    np.testing.assert_allclose(numbers(PEERS[way], kind), expected, rtol=1e-4)


@ways
@pytest.mark.parametrize("kind", ["mlp", "cnn", "recurrent", "transformer", "adam"])
def test_a_reset_starts_anew(way, kind):
    case = PEERS[way].BUILDERS[kind](**SMALL[kind])
    first = case.numbers()
    np.testing.assert_allclose(case.numbers(), first, rtol=1e-6)


@ways
def test_bytes_held_count_what_a_step_needs(way):
    case = PEERS[way].BUILDERS["mlp"](sizes=[64, 32, 10], batch=32)
    for _ in range(2):
        case.step()
    parameters = 4 * (64 * 32 + 32 + 32 * 10 + 10)
    assert 2 * parameters <= case.held()["bytes"] <= 6 * parameters
