"""minigrad in eager mode."""

import gc
from importlib import metadata

import minigrad as mg
from benchmarks import initial
from benchmarks.case import Case, repeated, training


def prepare(threads):
    """Nothing: the number of threads is set by the environment."""


def version():
    """The version of the library."""
    return metadata.version("minigrad")


def variables(arrays):
    """Variables of the arrays' values, in memory of their own."""
    return {name: mg.variable(value) for name, value in arrays.items()}


def parameters_of(arrays):
    """Parameters of the arrays' values, by name."""
    return {name: mg.nn.Parameter(mg.variable(value)) for name, value in arrays.items()}


def write(parameters, arrays):
    """Writes the arrays' values into the parameters."""
    with mg.no_grad():
        for name, p in parameters.items():
            p.copy_(mg.variable(arrays[name]))


def trained(loss, data, arrays):
    """A step of Adam on `loss(batch, parameters)`: the case, and what the user holds."""
    batch, parameters = variables(data), parameters_of(arrays)
    optimizer = mg.optim.Adam(parameters.values(), learning_rate=1e-3)

    def step():
        value = loss(batch, parameters)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        return value

    def reset():
        nonlocal optimizer
        write(parameters, arrays)
        optimizer = mg.optim.Adam(parameters.values(), learning_rate=1e-3)

    return training(step, reset), [*batch.values(), *parameters.values()]


def mlp_loss(layers):
    """Linear layers with relu between them, and cross entropy."""

    def loss(batch, p):
        h = batch["x"]
        for k in range(layers):
            h = mg.linear(h, p[f"w{k}"], p[f"b{k}"])
            if k < layers - 1:
                h = mg.relu(h)
        return mg.cross_entropy(h, batch["y"])

    return loss


def cnn_loss(batch, p):
    """Two convolutions, each with relu and max pooling, and a linear layer."""
    h = mg.max_pool2d(mg.relu(mg.conv2d(batch["x"], p["c0"], p["d0"], padding=1)), 2)
    h = mg.max_pool2d(mg.relu(mg.conv2d(h, p["c1"], p["d1"], padding=1)), 2)
    return mg.cross_entropy(mg.linear(mg.flatten(h, 1), p["w"], p["b"]), batch["y"])


def block_output(x, p, heads, prefix=""):
    """A pre-norm transformer block with causal attention."""

    def get(name):
        return p[prefix + name]

    batch, length, width = x.shape
    h = mg.layer_norm(x, get("norm1"), get("shift1"))
    qkv = mg.linear(h, get("qkv"), get("qkv_bias"))
    qkv = mg.permute(qkv.reshape((batch, length, 3, heads, width // heads)), (2, 0, 3, 1, 4))
    h = mg.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], is_causal=True)
    h = mg.permute(h, (0, 2, 1, 3)).reshape((batch, length, width))
    x = x + mg.linear(h, get("out"), get("out_bias"))
    h = mg.layer_norm(x, get("norm2"), get("shift2"))
    h = mg.gelu(mg.linear(h, get("up"), get("up_bias")), approximate="tanh")
    return x + mg.linear(h, get("down"), get("down_bias"))


def transformer_loss(heads, layers):
    """Embeddings, blocks, a last norm, and cross entropy of the next token."""

    def loss(batch, p):
        h = mg.embedding(p["tokens"], batch["x"]) + p["positions"]
        for k in range(layers):
            h = block_output(h, p, heads, f"{k}.")
        logits = mg.linear(mg.layer_norm(h, p["norm"], p["shift"]), p["head"])
        return mg.cross_entropy(logits.reshape((-1, logits.shape[-1])), batch["y"].reshape((-1,)))

    return loss


def step_of_mlp(sizes, batch):
    """A training step of a multi-layer perceptron."""
    return trained(mlp_loss(len(sizes) - 1), *initial.mlp(sizes, batch))


def step_of_cnn(batch, channels, size):
    """A training step of a small convolutional network."""
    return trained(cnn_loss, *initial.cnn(batch, channels, size))


def step_of_transformer(width, heads, length, batch, layers, vocabulary):
    """A training step of a small language model."""
    arrays = initial.transformer(width, heads, length, batch, layers, vocabulary)
    return trained(transformer_loss(heads, layers), *arrays)


def differentiated(function, data, parameters):
    """Forward and backward of `function(x, parameters)` with the upstream gradient dy."""
    x, dy = mg.variable(data["x"], requires_grad=True), mg.variable(data["dy"])
    p = {name: mg.variable(value, requires_grad=True) for name, value in parameters.items()}
    leaves = [x, *p.values()]

    def step():
        for leaf in leaves:
            leaf.grad = None
        function(x, p).backward(dy)

    return repeated(step, lambda: [leaf.grad.numpy() for leaf in leaves if leaf.grad is not None])


def chain(count):
    """Repeats v = v * a + a on one element."""
    a = mg.variable([1.0001], requires_grad=True)

    def step():
        v = a
        for _ in range(count):
            v = v * a + a
        a.grad = None
        v.backward()

    return repeated(step, lambda: [a.grad.numpy()])


def gelu(count):
    """0.5 x (1 + tanh(0.797885 (x + 0.044715 x^3))), op by op, and the gradient of its sum."""
    x = mg.variable(initial.vector(count)[0]["x"], requires_grad=True)

    def step():
        x.grad = None
        (0.5 * x * (1.0 + mg.tanh(0.797885 * (x + 0.044715 * x * x * x)))).sum().backward()

    return repeated(step, lambda: [x.grad.numpy()])


def block(width, heads, length, batch):
    """One transformer block, forward and backward."""
    arrays = initial.block(width, heads, length, batch)
    return differentiated(lambda x, p: block_output(x, p, heads), *arrays)


def conv2d_forward(**shape):
    """A convolution without recording."""
    data, parameters = initial.conv2d(**shape)
    x, w, seen = mg.variable(data["x"]), mg.variable(parameters["w"]), []

    def step():
        with mg.no_grad():
            seen[:] = [mg.conv2d(x, w, padding=1)]

    return repeated(step, lambda: [seen[0].numpy()])


def conv2d_backward(**shape):
    """The backward pass of a convolution, again and again over one graph."""
    data, parameters = initial.conv2d(**shape)
    x, dy = mg.variable(data["x"], requires_grad=True), mg.variable(data["dy"])
    w = mg.variable(parameters["w"], requires_grad=True)
    y = mg.conv2d(x, w, padding=1)

    def step():
        x.grad = w.grad = None
        y.backward(dy, retain_graph=True)

    return repeated(step, lambda: [x.grad.numpy(), w.grad.numpy()])


def softmax(rows, columns):
    """Softmax along rows."""
    data, _ = initial.rows(rows, columns)
    return differentiated(lambda x, p: mg.softmax(x, -1), data, {})


def layer_norm(rows, columns):
    """Layer norm along rows."""
    return differentiated(
        lambda x, p: mg.layer_norm(x, p["w"], p["b"]), *initial.rows(rows, columns)
    )


def adam(shapes):
    """Adam alone: gradients stay as they are."""
    gradients, arrays = initial.adam(shapes)
    parameters = parameters_of(arrays)
    optimizer = mg.optim.Adam(parameters.values(), learning_rate=1e-3)

    def reset():
        nonlocal optimizer
        write(parameters, arrays)
        optimizer = mg.optim.Adam(parameters.values(), learning_rate=1e-3)
        for p, g in zip(parameters.values(), gradients.values(), strict=True):
            p.grad = mg.variable(g)

    def numbers():
        reset()
        for _ in range(3):
            optimizer.step()
        moved = [abs(p.numpy() - arrays[name]).mean() for name, p in parameters.items()]
        return [float(value) for value in moved[:3]]

    return Case(lambda: optimizer.step(), reset, numbers)


def held_bytes(build, settings):
    """Bytes of activations, gradients and optimizer state at the peak of one step.

    The allocator's peak above what was in use before, less the parameters and the batch.
    """
    gc.collect()  # what earlier rows left
    before = mg.memory.stats()["current_bytes"]
    case, users = build(**settings)
    for _ in range(3):
        case.step()
    mg.memory.reset_peak()
    case.step()
    users_bytes = sum(v.size * v.numpy().itemsize for v in users)
    return mg.memory.stats()["peak_bytes"] - before - users_bytes


BUILDERS = {
    "chain": chain,
    "mlp": lambda **s: step_of_mlp(**s)[0],
    "cnn": lambda **s: step_of_cnn(**s)[0],
    "transformer": lambda **s: step_of_transformer(**s)[0],
    "gelu": gelu,
    "block": block,
    "conv2d_forward": conv2d_forward,
    "conv2d_backward": conv2d_backward,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "adam": adam,
    "memory_mlp": lambda **s: held_bytes(step_of_mlp, s),
    "memory_cnn": lambda **s: held_bytes(step_of_cnn, s),
    "memory_transformer": lambda **s: held_bytes(step_of_transformer, s),
}
