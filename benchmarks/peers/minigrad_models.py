"""The models in minigrad: each takes parameters by name, and returns an output or a loss.

Eager and compiled steps are made of the same functions.
"""

import minigrad as mg


def mlp_loss(layers):
    """Linear layers with relu between them, and cross entropy."""

    def loss(p, x, y):
        h = x
        for k in range(layers):
            h = mg.linear(h, p[f"w{k}"], p[f"b{k}"])
            if k < layers - 1:
                h = mg.relu(h)
        return mg.cross_entropy(h, y)

    return loss


def cnn_loss(p, x, y):
    """Two convolutions, each with relu and max pooling, and a linear layer."""
    h = mg.max_pool2d(mg.relu(mg.conv2d(x, p["c0"], p["d0"], padding=1)), 2)
    h = mg.max_pool2d(mg.relu(mg.conv2d(h, p["c1"], p["d1"], padding=1)), 2)
    return mg.cross_entropy(mg.linear(mg.flatten(h, 1), p["w"], p["b"]), y)


def recurrent_loss(p, x, y):
    """A tanh cell over x (steps, batch, inputs), and a linear layer on its last state."""
    h = mg.tanh(mg.linear(x[0], p["in"], p["bias"]))
    for t in range(1, x.shape[0]):
        h = mg.tanh(mg.linear(x[t], p["in"], p["bias"]) + mg.linear(h, p["back"]))
    return mg.cross_entropy(mg.linear(h, p["w"], p["b"]), y)


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

    def loss(p, x, y):
        h = mg.embedding(p["tokens"], x) + p["positions"]
        for k in range(layers):
            h = block_output(h, p, heads, f"{k}.")
        logits = mg.linear(mg.layer_norm(h, p["norm"], p["shift"]), p["head"])
        return mg.cross_entropy(logits.reshape((-1, logits.shape[-1])), y.reshape((-1,)))

    return loss


def gelu_total(x):
    """The sum of 0.5 x (1 + tanh(0.797885 (x + 0.044715 x^3))), op by op."""
    return (0.5 * x * (1.0 + mg.tanh(0.797885 * (x + 0.044715 * x * x * x)))).sum()
