"""MyGrad, with its guarding of memory off as its documentation advises for speed.

It has no optimizers and no attention: they are NumPy's, and the rows of the transformer are
left out.
"""

import mygrad as mg
import numpy as np
from mygrad.nnet.activations import relu, softmax
from mygrad.nnet.layers import conv_nd, max_pool
from mygrad.nnet.losses import softmax_crossentropy

from benchmarks import initial
from benchmarks.case import repeated, training
from benchmarks.peers.numpy_optimizers import SGD, Adam


def prepare(threads):
    """Turns the guarding of memory off; NumPy's threads are set by the environment."""
    mg.turn_memory_guarding_off()


def version():
    """The version of the library."""
    return mg.__version__


def trained(loss, data, parameters, algorithm=Adam):
    """A case that trains with `loss(batch, parameters)`."""
    values = {name: mg.tensor(value.copy()) for name, value in parameters.items()}
    optimizer = algorithm([p.data for p in values.values()])

    def step():
        value = loss(data, values)
        value.backward()
        optimizer.step([p.grad for p in values.values()])
        return value

    return training(step, optimizer.reset, lambda value: value.item())


def mlp(sizes, batch):
    """A training step of a multi-layer perceptron."""
    layers = len(sizes) - 1

    def loss(data, p):
        h = data["x"]
        for k in range(layers):
            h = mg.matmul(h, p[f"w{k}"].T) + p[f"b{k}"]
            if k < layers - 1:
                h = relu(h)
        return softmax_crossentropy(h, data["y"])

    return trained(loss, *initial.mlp(sizes, batch))


def cnn(batch, channels, size):
    """A training step of a small convolutional network."""

    def loss(data, p):
        h = conv_nd(data["x"], p["c0"], stride=1, padding=1) + p["d0"].reshape(-1, 1, 1)
        h = max_pool(relu(h), (2, 2), 2)
        h = conv_nd(h, p["c1"], stride=1, padding=1) + p["d1"].reshape(-1, 1, 1)
        h = max_pool(relu(h), (2, 2), 2)
        h = h.reshape(h.shape[0], -1)
        return softmax_crossentropy(mg.matmul(h, p["w"].T) + p["b"], data["y"])

    return trained(loss, *initial.cnn(batch, channels, size))


def recurrent(steps, inputs, units, batch):
    """A training step of a recurrent network, its loop unrolled."""

    def loss(data, p):
        x = data["x"]
        h = mg.tanh(mg.matmul(x[0], p["in"].T) + p["bias"])
        for t in range(1, steps):
            h = mg.tanh(mg.matmul(x[t], p["in"].T) + p["bias"] + mg.matmul(h, p["back"].T))
        return softmax_crossentropy(mg.matmul(h, p["w"].T) + p["b"], data["y"])

    return trained(loss, *initial.recurrent(steps, inputs, units, batch), SGD)


def chain(count):
    """Repeats v = v * a + a on one element."""
    a = mg.tensor(np.array([1.0001], np.float32))

    def step():
        v = a
        for _ in range(count):
            v = v * a + a
        v.backward()

    return repeated(step, lambda: [a.grad])


def gelu(count):
    """The chain of ops, and the gradient of its sum."""
    x = mg.tensor(initial.vector(count)[0]["x"])

    def step():
        (0.5 * x * (1.0 + mg.tanh(0.797885 * (x + 0.044715 * x * x * x)))).sum().backward()

    return repeated(step, lambda: [x.grad])


def differentiated(function, data, parameters):
    """Forward and backward of `function(x, parameters)` with the upstream gradient dy."""
    x = mg.tensor(data["x"])
    p = {name: mg.tensor(value) for name, value in parameters.items()}

    def step():
        function(x, p).backward(data["dy"])

    return repeated(step, lambda: [x.grad, *(value.grad for value in p.values())])


def softmax_rows(rows, columns):
    """Softmax along rows."""
    return differentiated(lambda x, p: softmax(x), initial.rows(rows, columns)[0], {})


def layer_norm(rows, columns):
    """Layer norm along rows, as a chain: there is no such operation."""

    def normed(x, p):
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred**2).mean(axis=-1, keepdims=True)
        return centred / mg.sqrt(variance + 1e-5) * p["w"] + p["b"]

    return differentiated(normed, *initial.rows(rows, columns))


def convolution(shape):
    """The case's arrays and the call."""
    data, parameters = initial.conv2d(**shape)
    x, w = mg.tensor(data["x"]), mg.tensor(parameters["w"])
    return x, w, data["dy"]


def conv2d_forward(**shape):
    """A convolution without recording."""
    x, w, _ = convolution(shape)
    seen = []

    def step():
        with mg.no_autodiff:
            seen[:] = [conv_nd(x, w, stride=1, padding=1).data]

    return repeated(step, lambda: seen)


BUILDERS = {
    "chain": chain,
    "mlp": mlp,
    "cnn": cnn,
    "recurrent": recurrent,
    "gelu": gelu,
    "softmax": softmax_rows,
    "layer_norm": layer_norm,
    "conv2d_forward": conv2d_forward,
}
