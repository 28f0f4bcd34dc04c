"""The models in PyTorch: each takes parameters by name, and returns an output or a loss."""

import torch
from torch.nn import functional as F


def mlp_loss(layers):
    """Linear layers with relu between them, and cross entropy."""

    def loss(p, x, y):
        h = x
        for k in range(layers):
            h = F.linear(h, p[f"w{k}"], p[f"b{k}"])
            if k < layers - 1:
                h = F.relu(h)
        return F.cross_entropy(h, y)

    return loss


def cnn_loss(p, x, y):
    """Two convolutions, each with relu and max pooling, and a linear layer."""
    h = F.max_pool2d(F.relu(F.conv2d(x, p["c0"], p["d0"], padding=1)), 2)
    h = F.max_pool2d(F.relu(F.conv2d(h, p["c1"], p["d1"], padding=1)), 2)
    return F.cross_entropy(F.linear(h.flatten(1), p["w"], p["b"]), y)


def recurrent_loss(p, x, y):
    """A tanh cell over x (steps, batch, inputs), and a linear layer on its last state."""
    h = torch.tanh(F.linear(x[0], p["in"], p["bias"]))
    for t in range(1, x.shape[0]):
        h = torch.tanh(F.linear(x[t], p["in"], p["bias"]) + F.linear(h, p["back"]))
    return F.cross_entropy(F.linear(h, p["w"], p["b"]), y)


def block_output(x, p, heads, prefix=""):
    """A pre-norm transformer block with causal attention."""

    def get(name):
        return p[prefix + name]

    batch, length, width = x.shape
    h = F.layer_norm(x, (width,), get("norm1"), get("shift1"))
    qkv = F.linear(h, get("qkv"), get("qkv_bias"))
    q, k, v = qkv.view(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
    h = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    h = h.transpose(1, 2).reshape(batch, length, width)
    x = x + F.linear(h, get("out"), get("out_bias"))
    h = F.layer_norm(x, (width,), get("norm2"), get("shift2"))
    h = F.gelu(F.linear(h, get("up"), get("up_bias")), approximate="tanh")
    return x + F.linear(h, get("down"), get("down_bias"))


def transformer_loss(heads, layers):
    """Embeddings, blocks, a last norm, and cross entropy of the next token."""

    def loss(p, x, y):
        h = F.embedding(x, p["tokens"]) + p["positions"]
        for k in range(layers):
            h = block_output(h, p, heads, f"{k}.")
        h = F.layer_norm(h, (h.shape[-1],), p["norm"], p["shift"])
        logits = F.linear(h, p["head"])
        return F.cross_entropy(logits.flatten(0, 1), y.flatten())

    return loss


def gelu_total(x):
    """The sum of 0.5 x (1 + tanh(0.797885 (x + 0.044715 x^3))), op by op."""
    return (0.5 * x * (1.0 + torch.tanh(0.797885 * (x + 0.044715 * x * x * x)))).sum()
