"""JAX in its best form: whole steps under `jax.jit`, parameters and state donated.

The row of 2,000 operations on one element is left out: under `jit` it would measure the
compiled program, not the cost of an operation, and without it JAX is not in its best form.
"""

import jax
import jax.numpy as jnp
from jax import nn

from benchmarks import initial
from benchmarks.case import Case, repeated, training
from benchmarks.peers import jax_models as models


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


def sgd_update(values, g):
    """One step of gradient descent, over dicts of arrays."""
    return ({k: p - 0.1 * g[k] for k, p in values.items()},)


def adam_state(parameters):
    """Parameters, both moments and the number of steps, made anew: they will be donated."""
    values = arrays_of(parameters)
    moments = [{k: jnp.zeros_like(p) for k, p in values.items()} for _ in range(2)]
    return [values, *moments, jnp.array(0.0)]


def sgd_state(parameters):
    """Parameters alone."""
    return [arrays_of(parameters)]


def trained(loss, data, parameters, update=adam_update, start=adam_state):
    """A case that trains with `loss(parameters, x, y)`."""
    x, y = arrays_of(data).values()

    def train(state, x, y):
        value, g = jax.value_and_grad(loss)(state[0], x, y)
        return [*update(*state, g)], value

    compiled = jax.jit(train, donate_argnums=0)
    state = start(parameters)

    def reset():
        state[:] = start(parameters)

    def step():
        state[:], value = compiled(state, x, y)
        return value

    def held():
        # XLA's plan says what a step needs besides its arguments; of these count the moments.
        plan = compiled.lower(state, x, y).compile().memory_analysis()
        moments = jax.tree.leaves(state[1:])
        return {"bytes": plan.temp_size_in_bytes + sum(a.nbytes for a in moments)}

    return training(step, reset, finish=lambda: jax.block_until_ready(state), held=held)


def mlp(sizes, batch):
    """A training step of a multi-layer perceptron."""
    return trained(models.mlp_loss(len(sizes) - 1), *initial.mlp(sizes, batch))


def cnn(batch, channels, size):
    """A training step of a small convolutional network."""
    return trained(models.cnn_loss, *initial.cnn(batch, channels, size))


def recurrent(steps, inputs, units, batch):
    """A training step of a recurrent network, its loop unrolled."""
    arrays = initial.recurrent(steps, inputs, units, batch)
    return trained(models.recurrent_loss, *arrays, sgd_update, sgd_state)


def transformer(width, heads, length, batch, layers, vocabulary):
    """A training step of a small language model."""
    arrays = initial.transformer(width, heads, length, batch, layers, vocabulary)
    return trained(models.transformer_loss(heads, layers), *arrays)


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
    """The chain of ops as a formula, and the gradient of its sum."""
    data, _ = initial.vector(count)
    return called(lambda x: [jax.grad(models.gelu_total)(x)], jnp.array(data["x"]))


def block(width, heads, length, batch):
    """One transformer block, forward and backward."""
    arrays = initial.block(width, heads, length, batch)
    return differentiated(lambda x, p: models.block_output(x, p, heads), *arrays)


def conv2d_forward(**shape):
    """A convolution."""
    data, parameters = initial.conv2d(**shape)
    x, w = jnp.array(data["x"]), jnp.array(parameters["w"])
    return called(lambda x, w: [models.convolved(x, w)], x, w)


def conv2d_backward(**shape):
    """The gradients of a convolution; its value is not asked for, so it is not computed."""
    data, parameters = initial.conv2d(**shape)
    x, dy = arrays_of(data).values()
    w = jnp.array(parameters["w"])
    return called(lambda x, w, dy: list(jax.vjp(models.convolved, x, w)[1](dy)), x, w, dy)


def softmax(rows, columns):
    """Softmax along rows."""
    data, _ = initial.rows(rows, columns)
    return differentiated(lambda x, p: nn.softmax(x), data, {})


def layer_norm(rows, columns):
    """Layer norm along rows."""
    arrays = initial.rows(rows, columns)
    return differentiated(lambda x, p: models.layer_normed(x, p["w"], p["b"]), *arrays)


def adam(shapes):
    """Adam alone: gradients stay as they are."""
    gradients, parameters = initial.adam(shapes)
    g = {"p" + name[1:]: jnp.array(value) for name, value in gradients.items()}
    compiled = jax.jit(adam_update, donate_argnums=(0, 1, 2, 3))
    state = adam_state(parameters)

    def reset():
        state[:] = adam_state(parameters)

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
    "recurrent": recurrent,
    "transformer": transformer,
    "gelu": gelu,
    "block": block,
    "conv2d_forward": conv2d_forward,
    "conv2d_backward": conv2d_backward,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "adam": adam,
}
