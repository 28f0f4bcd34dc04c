"""The models in JAX: each takes parameters by name, and returns an output or a loss."""

import jax
import jax.numpy as jnp
from jax import nn


def cross_entropy(logits, labels):
    """Mean of -log softmax at the labels."""
    rows = nn.log_softmax(logits)
    return -jnp.mean(jnp.take_along_axis(rows, labels[:, None], 1))


def linear(x, w, b=0.0):
    """The product x w^T, plus b."""
    return x @ w.T + b


def mlp_loss(layers):
    """Linear layers with relu between them, and cross entropy."""

    def loss(p, x, y):
        h = x
        for k in range(layers):
            h = linear(h, p[f"w{k}"], p[f"b{k}"])
            if k < layers - 1:
                h = nn.relu(h)
        return cross_entropy(h, y)

    return loss


def convolved(x, w):
    """A 3x3 convolution that keeps the size."""
    return jax.lax.conv_general_dilated(x, w, (1, 1), [(1, 1), (1, 1)])


def pooled(x):
    """2x2 max pooling."""
    window = (1, 1, 2, 2)
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")


def cnn_loss(p, x, y):
    """Two convolutions, each with relu and max pooling, and a linear layer."""
    h = pooled(nn.relu(convolved(x, p["c0"]) + p["d0"][:, None, None]))
    h = pooled(nn.relu(convolved(h, p["c1"]) + p["d1"][:, None, None]))
    h = h.reshape(h.shape[0], -1)
    return cross_entropy(linear(h, p["w"], p["b"]), y)


def recurrent_loss(p, x, y):
    """A tanh cell over x (steps, batch, inputs), and a linear layer on its last state.

    Unrolled, for `jax.lax.scan` is no faster here.
    """
    h = jnp.tanh(linear(x[0], p["in"], p["bias"]))
    for t in range(1, x.shape[0]):
        h = jnp.tanh(linear(x[t], p["in"], p["bias"]) + linear(h, p["back"]))
    return cross_entropy(linear(h, p["w"], p["b"]), y)


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


def transformer_loss(heads, layers):
    """Embeddings, blocks, a last norm, and cross entropy of the next token."""

    def loss(p, x, y):
        h = p["tokens"][x] + p["positions"]
        for k in range(layers):
            h = block_output(h, p, heads, f"{k}.")
        logits = linear(layer_normed(h, p["norm"], p["shift"]), p["head"])
        return cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))

    return loss


def gelu_total(x):
    """The sum of 0.5 x (1 + tanh(0.797885 (x + 0.044715 x^3)))."""
    return (0.5 * x * (1.0 + jnp.tanh(0.797885 * (x + 0.044715 * x * x * x)))).sum()
