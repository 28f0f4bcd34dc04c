"""PyTorch's side of each row, as eager and compiled steps share it: `wrap` is what differs.

`wrap` is given the forward pass, or an optimizer's step where the row is nothing else. The backward
pass of a compiled function is compiled with it, and the fused optimizer beats a compiled one.
"""

import functools

import torch
from torch.nn import functional as F

from benchmarks import initial
from benchmarks.case import Case, repeated, training
from benchmarks.peers import pytorch_memory as memory
from benchmarks.peers import pytorch_models as models


def tensors(arrays):
    """Tensors of the arrays' values, in memory of their own."""
    return {name: torch.tensor(value) for name, value in arrays.items()}


def started_anew(parameters, start, optimizer):
    """Writes the initial values into parameters, and zeros into the optimizer's state."""
    with torch.no_grad():
        for p, value in zip(parameters, start, strict=True):
            p.copy_(value)
    for state in optimizer.state.values():
        for value in state.values():
            if value is not None:  # SGD without momentum
                value.zero_()


def trained(wrap, loss, data, arrays, algorithm=torch.optim.Adam, learning_rate=1e-3):
    """A training step of `loss(parameters, x, y)`."""
    x, y = tensors(data).values()
    values = {name: p.requires_grad_() for name, p in tensors(arrays).items()}
    parameters, start = list(values.values()), tensors(arrays).values()
    optimizer = algorithm(parameters, learning_rate, fused=True)
    forward = wrap(loss)

    def step():
        value = forward(values, x, y)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        return value

    def reset():
        started_anew(parameters, start, optimizer)

    def held():
        # What a compiled function saves passes no hooks: only eager PyTorch can be asked.
        is_eager = forward is loss
        kept = memory.kept(step, (x, y), parameters, optimizer) if is_eager else None
        return {"bytes": kept, "allocated": memory.allocated(step, optimizer)}

    return training(step, reset, lambda value: value.item(), held=held)


def mlp(wrap, sizes, batch):
    """A training step of a multi-layer perceptron."""
    return trained(wrap, models.mlp_loss(len(sizes) - 1), *initial.mlp(sizes, batch))


def cnn(wrap, batch, channels, size):
    """A training step of a small convolutional network."""
    return trained(wrap, models.cnn_loss, *initial.cnn(batch, channels, size))


def recurrent(wrap, steps, inputs, units, batch):
    """A training step of a recurrent network, its loop unrolled."""
    arrays = initial.recurrent(steps, inputs, units, batch)
    return trained(wrap, models.recurrent_loss, *arrays, torch.optim.SGD, 0.1)


def transformer(wrap, width, heads, length, batch, layers, vocabulary):
    """A training step of a small language model."""
    arrays = initial.transformer(width, heads, length, batch, layers, vocabulary)
    return trained(wrap, models.transformer_loss(heads, layers), *arrays)


def differentiated(wrap, function, data, parameters):
    """Forward and backward of `function(x, parameters)` with the upstream gradient dy."""
    x, dy = tensors(data).values()
    p = tensors(parameters)
    leaves = [x, *p.values()]
    for leaf in leaves:
        leaf.requires_grad_()
    forward = wrap(function)

    def step():
        for leaf in leaves:
            leaf.grad = None
        forward(x, p).backward(dy)

    return repeated(step, lambda: [leaf.grad for leaf in leaves if leaf.grad is not None])


def block(wrap, width, heads, length, batch):
    """One transformer block, forward and backward."""
    arrays = initial.block(width, heads, length, batch)
    return differentiated(wrap, lambda x, p: models.block_output(x, p, heads), *arrays)


def softmax(wrap, rows, columns):
    """Softmax along rows."""
    data, _ = initial.rows(rows, columns)
    return differentiated(wrap, lambda x, p: F.softmax(x, -1), data, {})


def layer_norm(wrap, rows, columns):
    """Layer norm along rows."""

    def normed(x, p):
        return F.layer_norm(x, (columns,), p["w"], p["b"])

    return differentiated(wrap, normed, *initial.rows(rows, columns))


def gelu(wrap, count):
    """The chain of ops, and the gradient of its sum."""
    x = tensors(initial.vector(count)[0])["x"].requires_grad_()
    total = wrap(models.gelu_total)

    def step():
        x.grad = None
        total(x).backward()

    return repeated(step, lambda: [x.grad])


def conv2d_forward(wrap, **shape):
    """A convolution without recording."""
    data, parameters = initial.conv2d(**shape)
    x, w, seen = torch.tensor(data["x"]), torch.tensor(parameters["w"]), []
    forward = wrap(lambda x, w: F.conv2d(x, w, padding=1))

    def step():
        with torch.no_grad():
            seen[:] = [forward(x, w)]

    return repeated(step, lambda: seen)


def adam(wrap, shapes):
    """Adam alone: gradients stay as they are."""
    gradients, values = initial.adam(shapes)
    parameters = [torch.tensor(v, requires_grad=True) for v in values.values()]
    for p, g in zip(parameters, gradients.values(), strict=True):
        p.grad = torch.tensor(g)
    optimizer = torch.optim.Adam(parameters, 1e-3, fused=True)
    start = [p.detach().clone() for p in parameters]
    step = wrap(optimizer.step)

    def reset():
        started_anew(parameters, start, optimizer)

    def numbers():
        reset()
        for _ in range(3):
            step()
        return [
            float((p.detach() - s).abs().mean()) for p, s in zip(parameters, start, strict=True)
        ][:3]

    return Case(step, reset, numbers)


def builders(wrap):
    """BUILDERS of a peer whose forward passes are wrapped in this way."""
    offered = {
        "mlp": mlp,
        "cnn": cnn,
        "recurrent": recurrent,
        "transformer": transformer,
        "gelu": gelu,
        "block": block,
        "conv2d_forward": conv2d_forward,
        "softmax": softmax,
        "layer_norm": layer_norm,
        "adam": adam,
    }
    return {kind: functools.partial(build, wrap) for kind, build in offered.items()}
