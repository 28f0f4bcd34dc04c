"""HIPS autograd. It has no convolution with NumPy's speed and no optimizer in place.

Optimizers are therefore NumPy's, and the rows of the CNN and of the transformer are left out.
"""

import autograd
import autograd.numpy as np
import numpy

from benchmarks import initial
from benchmarks.case import repeated, training
from benchmarks.peers.numpy_optimizers import SGD, Adam


def prepare(threads):
    """Nothing: NumPy's threads are set by the environment."""


def version():
    """The version of the library."""
    from importlib.metadata import version as installed

    return installed("autograd")


def cross_entropy(logits, labels):
    """Mean of -log softmax at the labels."""
    shifted = logits - np.max(logits, axis=1, keepdims=True)
    total = np.log(np.sum(np.exp(shifted), axis=1))
    return np.mean(total - shifted[numpy.arange(len(labels)), labels])


def trained(loss, data, parameters, algorithm=Adam):
    """A case that trains with `loss(data, parameters)`; parameters are a list there."""
    values = [value.copy() for value in parameters.values()]
    differentiate = autograd.value_and_grad(lambda p: loss(data, p))
    optimizer = algorithm(values)

    def step():
        value, gradients = differentiate(values)
        optimizer.step(gradients)
        return value

    return training(step, optimizer.reset)


def mlp(sizes, batch):
    """A training step of a multi-layer perceptron."""
    layers = len(sizes) - 1

    def loss(data, p):
        h = data["x"]
        for k in range(layers):
            h = np.dot(h, p[2 * k].T) + p[2 * k + 1]
            if k < layers - 1:
                h = np.maximum(h, 0)
        return cross_entropy(h, data["y"])

    return trained(loss, *initial.mlp(sizes, batch))


def recurrent(steps, inputs, units, batch):
    """A training step of a recurrent network, its loop unrolled."""

    def loss(data, p):
        x, (enter, bias, back, w, b) = data["x"], p
        h = np.tanh(np.dot(x[0], enter.T) + bias)
        for t in range(1, steps):
            h = np.tanh(np.dot(x[t], enter.T) + bias + np.dot(h, back.T))
        return cross_entropy(np.dot(h, w.T) + b, data["y"])

    return trained(loss, *initial.recurrent(steps, inputs, units, batch), SGD)


def gradient_of(function, x):
    """A case that takes one gradient."""
    gradient, seen = autograd.grad(function), []

    def step():
        seen[:] = [gradient(x)]

    return repeated(step, lambda: seen)


def chain(count):
    """Repeats v = v * a + a on one element."""

    def last(a):
        v = a
        for _ in range(count):
            v = v * a + a
        return v[0]

    return gradient_of(last, numpy.array([1.0001], numpy.float32))


def gelu(count):
    """The chain of ops, and the gradient of its sum."""

    def total(x):
        return np.sum(0.5 * x * (1.0 + np.tanh(0.797885 * (x + 0.044715 * x * x * x))))

    return gradient_of(total, initial.vector(count)[0]["x"])


def differentiated(function, data, parameters):
    """Forward and backward of `function(x, *parameters)` with the upstream gradient dy."""
    arguments = (data["x"], *parameters.values())
    seen = []

    def step():
        backward, _ = autograd.make_vjp(lambda p: function(*p))(arguments)
        seen[:] = backward(data["dy"])

    return repeated(step, lambda: seen)


def softmax(rows, columns):
    """Softmax along rows, as a chain: there is no such operation."""

    def soft(x):
        e = np.exp(x - np.max(x, axis=1, keepdims=True))
        return e / np.sum(e, axis=1, keepdims=True)

    return differentiated(soft, initial.rows(rows, columns)[0], {})


def layer_norm(rows, columns):
    """Layer norm along rows, as a chain: there is no such operation."""

    def normed(x, w, b):
        centred = x - np.mean(x, axis=1, keepdims=True)
        variance = np.mean(centred * centred, axis=1, keepdims=True)
        return centred / np.sqrt(variance + 1e-5) * w + b

    return differentiated(normed, *initial.rows(rows, columns))


BUILDERS = {
    "chain": chain,
    "mlp": mlp,
    "recurrent": recurrent,
    "gelu": gelu,
    "softmax": softmax,
    "layer_norm": layer_norm,
}
