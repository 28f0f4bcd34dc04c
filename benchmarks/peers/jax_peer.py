"""JAX in its best form: whole steps under `jax.jit`, parameters and state donated.

The row of 2,000 operations on one element is left out: under `jit` it would measure the
compiled program, not the cost of an operation, and without it JAX is not in its best form.
"""

import jax
import jax.numpy as jnp
from jax import nn

from benchmarks import initial
from benchmarks.case import Case, repeated, training


def prepare(threads):
    """Nothing: JAX takes as many threads as the process may use, and flushes denormals itself."""


def version():
    """The version of the library."""
    return jax.__version__


def arrays_of(values):
    """JAX arrays of the same values, in memory of their own."""
    return {name: jnp.array(value) for name, value in values.items()}


def adam_update(values, m, v, t, g):
    """One step of Adam with the usual settings, over dicts of arrays."""
    t = t + 1
    m = {k: 0.9 * m[k] + 0.1 * g[k] for k in values}
    v = {k: 0.999 * v[k] + 0.001 * g[k] * g[k] for k in values}
    first, second = 1 - 0.9**t, 1 - 0.999**t
    values = {
        k: p - 1e-3 * (m[k] / first) / (jnp.sqrt(v[k] / second) + 1e-8) for k, p in values.items()
    }
    return values, m, v, t


def start_of(parameters):
    """Parameters, both moments and the number of steps, made anew: they will be donated."""
    values = arrays_of(parameters)
    moments = [{k: jnp.zeros_like(p) for k, p in values.items()} for _ in range(2)]
    return [values, *moments, jnp.array(0.0)]


def trained(loss, data, parameters):
    """A case that trains with `loss(batch, parameters)`."""
    batch = arrays_of(data)

    def update(values, m, v, t):
        value, g = jax.value_and_grad(lambda p: loss(batch, p))(values)
        return *adam_update(values, m, v, t, g), value

    compiled = jax.jit(update, donate_argnums=(0, 1, 2, 3))
    state = []

    def reset():
        state[:] = start_of(parameters)

    def step():
        *state[:], value = compiled(*state)
        return value

    return training(step, reset, finish=lambda: jax.block_until_ready(state))


def cross_entropy(logits, labels):
    """Mean of -log softmax at the labels."""
    rows = nn.log_softmax(logits)
    return -jnp.mean(jnp.take_along_axis(rows, labels[:, None], 1))


def linear(x, w, b=0.0):
    """The product x w^T, plus b."""
    return x @ w.T + b


def mlp(sizes, batch):
    """A training step of a multi-layer perceptron."""
    layers = len(sizes) - 1

    def loss(data, p):
        h = data["x"]
        for k in range(layers):
            h = linear(h, p[f"w{k}"], p[f"b{k}"])
            if k < layers - 1:
                h = nn.relu(h)
        return cross_entropy(h, data["y"])

    return trained(loss, *initial.mlp(sizes, batch))


def convolved(x, w):
    """A 3x3 convolution that keeps the size."""
    return jax.lax.conv_general_dilated(x, w, (1, 1), [(1, 1), (1, 1)])


def pooled(x):
    """2x2 max pooling."""
    window = (1, 1, 2, 2)
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")


def cnn(batch, channels, size):
    """A training step of a small convolutional network."""

    def loss(data, p):
        h = pooled(nn.relu(convolved(data["x"], p["c0"]) + p["d0"][:, None, None]))
        h = pooled(nn.relu(convolved(h, p["c1"]) + p["d1"][:, None, None]))
        h = h.reshape(h.shape[0], -1)
        return cross_entropy(linear(h, p["w"], p["b"]), data["y"])

    return trained(loss, *initial.cnn(batch, channels, size))


def layer_normed(x, w, b):
    """Layer norm along the last axis."""
    mean = x.mean(-1, keepdims=True)
    variance = x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * w + b


def block_output(x, p, heads, prefix=""):
    """A pre-norm transformer block with causal attention."""

    def get(name):
        return p[prefix + name]

    batch, length, width = x.shape
    h = layer_normed(x, get("norm1"), get("shift1"))
    qkv = linear(h, get("qkv"), get("qkv_bias"))
    q, k, v = jnp.moveaxis(qkv.reshape(batch, length, 3, heads, width // heads), 2, 0)
    h = nn.dot_product_attention(q, k, v, is_causal=True).reshape(batch, length, width)
    x = x + linear(h, get("out"), get("out_bias"))
    h = layer_normed(x, get("norm2"), get("shift2"))
    h = nn.gelu(linear(h, get("up"), get("up_bias")), approximate=True)
    return x + linear(h, get("down"), get("down_bias"))


def transformer(width, heads, length, batch, layers, vocabulary):
    """A training step of a small language model."""

    def loss(data, p):
        h = p["tokens"][data["x"]] + p["positions"]
        for k in range(layers):
            h = block_output(h, p, heads, f"{k}.")
        logits = linear(layer_normed(h, p["norm"], p["shift"]), p["head"])
        return cross_entropy(logits.reshape(-1, vocabulary), data["y"].reshape(-1))

    arrays = initial.transformer(width, heads, length, batch, layers, vocabulary)
    return trained(loss, *arrays)


def differentiated(function, data, parameters):
    """Forward and backward of `function(x, parameters)` with the upstream gradient dy."""
    x, dy = arrays_of(data).values()
    p = arrays_of(parameters)

    @jax.jit
    def compiled(x, p, dy):
        y, backward = jax.vjp(function, x, p)
        return y, backward(dy)

    seen = []

    def step():
        seen[:] = [compiled(x, p, dy)]

    def gradients():
        _, (dx, dp) = seen[0]
        return [dx, *(dp[name] for name in p)]  # JAX sorts dicts by name

    return repeated(step, gradients, lambda: jax.block_until_ready(seen))


def called(function, *arguments):
    """A compiled function of arrays that returns a list of arrays."""
    compiled, seen = jax.jit(function), []

    def step():
        seen[:] = compiled(*arguments)

    return repeated(step, lambda: seen, lambda: jax.block_until_ready(seen))


def gelu(count):
    """The same chain as a formula, and the gradient of its sum."""

    def total(x):
        return (0.5 * x * (1.0 + jnp.tanh(0.797885 * (x + 0.044715 * x * x * x)))).sum()

    data, _ = initial.vector(count)
    return called(lambda x: [jax.value_and_grad(total)(x)[1]], jnp.array(data["x"]))


def block(width, heads, length, batch):
    """One transformer block, forward and backward."""
    arrays = initial.block(width, heads, length, batch)
    return differentiated(lambda x, p: block_output(x, p, heads), *arrays)


def conv2d_forward(**shape):
    """A convolution."""
    data, parameters = initial.conv2d(**shape)
    x, w = jnp.array(data["x"]), jnp.array(parameters["w"])
    return called(lambda x, w: [convolved(x, w)], x, w)


def conv2d_backward(**shape):
    """The gradients of a convolution; its value is not asked for, so it is not computed."""
    data, parameters = initial.conv2d(**shape)
    x, dy = arrays_of(data).values()
    w = jnp.array(parameters["w"])
    return called(lambda x, w, dy: list(jax.vjp(convolved, x, w)[1](dy)), x, w, dy)


def softmax(rows, columns):
    """Softmax along rows."""
    data, _ = initial.rows(rows, columns)
    return differentiated(lambda x, p: nn.softmax(x), data, {})


def layer_norm(rows, columns):
    """Layer norm along rows."""
    arrays = initial.rows(rows, columns)
    return differentiated(lambda x, p: layer_normed(x, p["w"], p["b"]), *arrays)


def adam(shapes):
    """Adam alone: gradients stay as they are."""
    gradients, parameters = initial.adam(shapes)
    g = {"p" + name[1:]: jnp.array(value) for name, value in gradients.items()}
    compiled = jax.jit(adam_update, donate_argnums=(0, 1, 2, 3))
    state = []

    def reset():
        state[:] = start_of(parameters)

    def step():
        state[:] = compiled(*state, g)

    def numbers():
        reset()
        for _ in range(3):
            step()
        moved = [abs(p - parameters[name]).mean() for name, p in state[0].items()]
        return [float(value) for value in moved[:3]]

    return Case(step, reset, numbers, lambda: jax.block_until_ready(state))


BUILDERS = {
    "mlp": mlp,
    "cnn": cnn,
    "transformer": transformer,
    "gelu": gelu,
    "block": block,
    "conv2d_forward": conv2d_forward,
    "conv2d_backward": conv2d_backward,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "adam": adam,
}
