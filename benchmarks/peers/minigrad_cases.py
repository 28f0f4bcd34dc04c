"""minigrad's side of each row, as eager and compiled steps share it: `wrap` is what differs.

A step is written as a person would: a function of its inputs that reads and writes parameters, and
`wrap` is `mg.compile` or nothing.
"""

import functools
import gc

import minigrad as mg
from benchmarks import initial
from benchmarks.case import Case, repeated, training
from benchmarks.peers import minigrad_models as models


def variables(arrays):
    """Variables of the arrays' values, in memory of their own."""
    return {name: mg.variable(value) for name, value in arrays.items()}


def parameters_of(arrays):
    """Parameters of the arrays' values, by name."""
    return {name: mg.nn.Parameter(mg.variable(value)) for name, value in arrays.items()}


def started_anew(parameters, arrays, optimizer):
    """Writes the initial values into parameters, and zeros into the optimizer's state.

    Both stay the same arrays, for a compiled step knows them.
    """
    with mg.no_grad():
        for name, p in parameters.items():
            p.copy_(mg.variable(arrays[name]))
        for state in optimizer.state.values():
            for value in state.values():
                value.copy_(mg.zeros(value.shape, dtype=value.dtype))


def current_bytes():
    """Bytes in use, after what earlier rows left is gone."""
    gc.collect()
    return mg.memory.stats()["current_bytes"]


def held_bytes(step, before, users):
    """Bytes of activations, gradients, optimizer state and whatever else in one step, at its peak.

    The allocator's peak above `before`, less the parameters and the batch, which the user holds.
    Of three steps the least: a compiled step now and then compares itself with a fresh trace.
    """
    peaks = []
    for _ in range(3):
        mg.memory.reset_peak()
        step()
        peaks.append(mg.memory.stats()["peak_bytes"])
    return {"bytes": min(peaks) - before - sum(v.size * v.numpy().itemsize for v in users)}


def trained(wrap, loss, data, arrays, algorithm=mg.optim.Adam, learning_rate=1e-3):
    """A training step of `loss(parameters, x, y)`."""
    before = current_bytes()
    batch, parameters = variables(data), parameters_of(arrays)
    optimizer = algorithm(parameters.values(), learning_rate=learning_rate)
    x, y = batch["x"], batch["y"]

    @wrap
    def train(x, y):
        value = loss(parameters, x, y)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        return value

    def step():
        return train(x, y)

    def reset():
        started_anew(parameters, arrays, optimizer)

    users = [*batch.values(), *parameters.values()]
    return training(step, reset, held=lambda: held_bytes(step, before, users))


def differentiated(wrap, function, data, arrays):
    """Forward and backward of `function(x, parameters)` with the upstream gradient dy."""
    x, dy = mg.variable(data["x"], requires_grad=True), mg.variable(data["dy"])
    p = {name: mg.variable(value, requires_grad=True) for name, value in arrays.items()}
    seen = []

    @wrap
    def both(x, dy):
        value = function(x, p)
        return value, *mg.gradients(value, [x, *p.values()], dy)

    def step():
        seen[:] = both(x, dy)

    return repeated(step, lambda: [g.numpy() for g in seen[1:]])


def mlp(wrap, sizes, batch):
    """A training step of a multi-layer perceptron."""
    return trained(wrap, models.mlp_loss(len(sizes) - 1), *initial.mlp(sizes, batch))


def cnn(wrap, batch, channels, size):
    """A training step of a small convolutional network."""
    return trained(wrap, models.cnn_loss, *initial.cnn(batch, channels, size))


def recurrent(wrap, steps, inputs, units, batch):
    """A training step of a recurrent network, its loop unrolled."""
    arrays = initial.recurrent(steps, inputs, units, batch)
    return trained(wrap, models.recurrent_loss, *arrays, mg.optim.SGD, 0.1)


def transformer(wrap, width, heads, length, batch, layers, vocabulary):
    """A training step of a small language model."""
    arrays = initial.transformer(width, heads, length, batch, layers, vocabulary)
    return trained(wrap, models.transformer_loss(heads, layers), *arrays)


def block(wrap, width, heads, length, batch):
    """One transformer block, forward and backward."""
    arrays = initial.block(width, heads, length, batch)
    return differentiated(wrap, lambda x, p: models.block_output(x, p, heads), *arrays)


def softmax(wrap, rows, columns):
    """Softmax along rows."""
    data, _ = initial.rows(rows, columns)
    return differentiated(wrap, lambda x, p: mg.softmax(x, -1), data, {})


def layer_norm(wrap, rows, columns):
    """Layer norm along rows."""
    arrays = initial.rows(rows, columns)
    return differentiated(wrap, lambda x, p: mg.layer_norm(x, p["w"], p["b"]), *arrays)


def called(wrap, function, *arguments):
    """A case that calls a function of Variables, which returns Variables."""
    wrapped, seen = wrap(function), []

    def step():
        seen[:] = wrapped(*arguments)

    return repeated(step, lambda: [v.numpy() for v in seen])


def gelu(wrap, count):
    """The chain of ops, and the gradient of its sum."""
    x = mg.variable(initial.vector(count)[0]["x"], requires_grad=True)
    return called(wrap, lambda x: [mg.gradients(models.gelu_total(x), x)], x)


def conv2d_forward(wrap, **shape):
    """A convolution without recording."""
    data, parameters = initial.conv2d(**shape)

    def forward(x, w):
        with mg.no_grad():
            return [mg.conv2d(x, w, padding=1)]

    return called(wrap, forward, mg.variable(data["x"]), mg.variable(parameters["w"]))


def conv2d_gradients(wrap, **shape):
    """The gradients of a convolution; its value is not asked for."""
    data, parameters = initial.conv2d(**shape)

    def gradients(x, w, dy):
        return mg.gradients(mg.conv2d(x, w, padding=1), [x, w], dy)

    x, w = (mg.variable(a, requires_grad=True) for a in (data["x"], parameters["w"]))
    return called(wrap, gradients, x, w, mg.variable(data["dy"]))


def adam(wrap, shapes):
    """Adam alone: gradients stay as they are."""
    gradients, arrays = initial.adam(shapes)
    parameters = parameters_of(arrays)
    optimizer = mg.optim.Adam(parameters.values(), learning_rate=1e-3)
    for p, g in zip(parameters.values(), gradients.values(), strict=True):
        p.grad = mg.variable(g)

    @wrap
    def step():
        optimizer.step()

    def reset():
        started_anew(parameters, arrays, optimizer)

    def numbers():
        reset()
        for _ in range(3):
            step()
        moved = [abs(p.numpy() - arrays[name]).mean() for name, p in parameters.items()]
        return [float(value) for value in moved[:3]]

    return Case(step, reset, numbers)


def builders(wrap):
    """BUILDERS of a peer whose steps are wrapped in this way."""
    offered = {
        "mlp": mlp,
        "cnn": cnn,
        "recurrent": recurrent,
        "transformer": transformer,
        "gelu": gelu,
        "block": block,
        "conv2d_forward": conv2d_forward,
        "conv2d_backward": conv2d_gradients,
        "softmax": softmax,
        "layer_norm": layer_norm,
        "adam": adam,
    }
    return {kind: functools.partial(build, wrap) for kind, build in offered.items()}
