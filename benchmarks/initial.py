"""Data and initial values, in NumPy, from fixed seeds: every peer starts from these.

A function for each kind of work returns `(batch, parameters)`: two dicts of arrays.
Weights are (outputs, inputs), images (batch, channels, height, width), all float32.
"""

from itertools import pairwise

import numpy as np


def _generator():
    return np.random.default_rng(0)


def _weight(rng, *shape):
    """Normal values of variance 1 / inputs."""
    inputs = np.prod(shape[1:])
    return (rng.standard_normal(shape) / np.sqrt(inputs)).astype(np.float32)


def _zeros(*shape):
    return np.zeros(shape, np.float32)


def _ones(*shape):
    return np.ones(shape, np.float32)


def _normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def mlp(sizes, batch):
    """Rows x with labels y; layer k has w{k} and b{k}."""
    rng = _generator()
    data = {"x": _normal(rng, batch, sizes[0]), "y": rng.integers(0, sizes[-1], batch)}
    parameters = {}
    for k, (inputs, outputs) in enumerate(pairwise(sizes)):
        parameters[f"w{k}"] = _weight(rng, outputs, inputs)
        parameters[f"b{k}"] = _zeros(outputs)
    return data, parameters


def cnn(batch, channels, size):
    """Images x with labels y; two 3x3 convolutions c0, c1, then a linear layer of 10."""
    rng = _generator()
    first, second = channels
    data = {"x": _normal(rng, batch, 1, size, size), "y": rng.integers(0, 10, batch)}
    features = second * (size // 4) ** 2
    return data, {
        "c0": _weight(rng, first, 1, 3, 3),
        "d0": _zeros(first),
        "c1": _weight(rng, second, first, 3, 3),
        "d1": _zeros(second),
        "w": _weight(rng, 10, features),
        "b": _zeros(10),
    }


def recurrent(steps, inputs, units, batch):
    """Sequences x (steps, batch, inputs) with labels y; a tanh cell, then a linear layer of 10."""
    rng = _generator()
    data = {"x": _normal(rng, steps, batch, inputs), "y": rng.integers(0, 10, batch)}
    return data, {
        "in": _weight(rng, units, inputs),
        "bias": _zeros(units),
        "back": _weight(rng, units, units),
        "w": _weight(rng, 10, units),
        "b": _zeros(10),
    }


def _block(rng, width, prefix=""):
    """The parameters of one pre-norm transformer block."""
    parameters = {
        "norm1": _ones(width),
        "shift1": _zeros(width),
        "qkv": _weight(rng, 3 * width, width),
        "qkv_bias": _zeros(3 * width),
        "out": _weight(rng, width, width),
        "out_bias": _zeros(width),
        "norm2": _ones(width),
        "shift2": _zeros(width),
        "up": _weight(rng, 4 * width, width),
        "up_bias": _zeros(4 * width),
        "down": _weight(rng, width, 4 * width),
        "down_bias": _zeros(width),
    }
    return {prefix + name: value for name, value in parameters.items()}


def block(width, heads, length, batch):
    """One block: input x, upstream gradient dy."""
    rng = _generator()
    x, dy = _normal(rng, batch, length, width), _normal(rng, batch, length, width)
    return {"x": x, "dy": dy}, _block(rng, width)


def transformer(width, heads, length, batch, layers, vocabulary):
    """A causal language model: tokens x, next tokens y; block k's names start with "k."."""
    rng = _generator()
    tokens = rng.integers(0, vocabulary, (batch, length + 1))
    parameters = {
        "tokens": _normal(rng, vocabulary, width),
        "positions": _normal(rng, length, width),
    }
    for k in range(layers):
        parameters |= _block(rng, width, f"{k}.")
    parameters |= {
        "norm": _ones(width),
        "shift": _zeros(width),
        "head": _weight(rng, vocabulary, width),
    }
    data = {"x": tokens[:, :-1].copy(), "y": tokens[:, 1:].copy()}
    return data, parameters


def conv2d(batch, channels, filters, size):
    """Images x, upstream gradient dy; filters w. Padding 1 keeps the size."""
    rng = _generator()
    x, dy = _normal(rng, batch, channels, size, size), _normal(rng, batch, filters, size, size)
    return {"x": x, "dy": dy}, {"w": _weight(rng, filters, channels, 3, 3)}


def rows(rows, columns):
    """A matrix x and an upstream gradient dy; scale and shift for layer norm."""
    rng = _generator()
    x, dy = _normal(rng, rows, columns), _normal(rng, rows, columns)
    return {"x": x, "dy": dy}, {"w": 1 + 0.1 * _normal(rng, columns), "b": _normal(rng, columns)}


def vector(count):
    """One vector x."""
    return {"x": _normal(_generator(), count)}, {}


def adam(shapes):
    """Parameters p{k} and their gradients g{k}."""
    rng = _generator()
    values = {f"p{k}": _normal(rng, *shape) for k, shape in enumerate(shapes)}
    return {f"g{k}": _normal(rng, *shape) for k, shape in enumerate(shapes)}, values
