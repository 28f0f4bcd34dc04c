"""Multi-head attention and the transformer block."""

from minigrad.arguments import flag
from minigrad.array.dtypes import float32
from minigrad.errors import ArgumentError, ShapeError
from minigrad.nn import check, init
from minigrad.nn.activation import GELU
from minigrad.nn.containers import Sequential
from minigrad.nn.linear import Linear
from minigrad.nn.module import Module
from minigrad.nn.normalization import Dropout, LayerNorm
from minigrad.ops.table import functions


class MultiHeadAttention(Module):
    """Attention in several subspaces at once (Vaswani et al. 2017).

    query (batch, n, size), key and value (batch, m, size) -> (batch, n, size).

    Args:
        size: the size of the vectors; a multiple of heads.
        heads: the number of subspaces.
        causal: position i of the query sees only positions up to i.
        dropout: the dropout probability of the output.
    """

    def __init__(self, size, heads, causal=False, dropout=0.0, bias=True, dtype=float32):
        self.size = check.size("MultiHeadAttention", "size", size)
        self.heads = check.size("MultiHeadAttention", "heads", heads)
        if self.size % self.heads:
            raise ArgumentError(
                "MultiHeadAttention: wanted a size that heads divides",
                f"size {size}, heads {heads}",
            )
        self.causal = flag("MultiHeadAttention", "causal", causal)
        bias = flag("MultiHeadAttention", "bias", bias)
        self.query = Linear(size, size, bias, dtype)
        self.key = Linear(size, size, bias, dtype)
        self.value = Linear(size, size, bias, dtype)
        self.output = Linear(size, size, bias, dtype)
        self.dropout = Dropout(dropout)
        for layer in (self.query, self.key, self.value):
            # the gain gives each weight the bound of one joint weight (3 size, size)
            init.xavier_uniform_(layer.weight, gain=0.5**0.5)
        if bias:
            for layer in (self.query, self.key, self.value, self.output):
                init.zeros_(layer.bias)

    def forward(self, query, key=None, value=None, *, mask=None):
        """Attends from query to key and value.

        query (batch, n, size), key and value (batch, m, size) -> (batch, n, size).

        Args:
            query: a Variable of floats.
            key: the default is query.
            value: the default is key.
            mask: broadcasts to (batch, heads, n, m). Bool: True where a query may see a key (in
                PyTorch's layer, unlike its function, True means the opposite). Float: added to the
                scores; -inf hides a key. A query that sees no key gets zeros.

        Raises:
            ShapeError: query does not have three axes, or the shapes do not fit together.
        """
        query = check.variable("MultiHeadAttention", query, self.query.weight)
        key = query if key is None else key
        value = key if value is None else value
        if query.ndim != 3:
            raise ShapeError(
                f"MultiHeadAttention: wanted x (batch, positions, {self.size})",
                f"{query.shape}",
                "add a batch axis: x.unsqueeze(0)" if query.ndim == 2 else None,
            )
        q, k, v = (  # (batch, heads, n or m, size / heads)
            self._split(layer(x))
            for layer, x in ((self.query, query), (self.key, key), (self.value, value))
        )
        y = functions["scaled_dot_product_attention"](q, k, v, mask, self.causal)
        # (batch, heads, n, size / heads) -> (batch, n, size)
        y = functions["reshape"](functions["permute"](y, (0, 2, 1, 3)), query.shape)
        return self.dropout(self.output(y))

    def _split(self, x):
        """Splits the last axis into heads.  (batch, n, size) -> (batch, heads, n, size / heads)."""
        batch, n, size = x.shape
        # (batch, n, heads, size / heads)
        x = functions["reshape"](x, (batch, n, self.heads, size // self.heads))
        return functions["permute"](x, (0, 2, 1, 3))  # (batch, heads, n, size / heads)

    def extra_repr(self):
        return f"{self.size}, heads={self.heads}" + (", causal=True" if self.causal else "")


class TransformerBlock(Module):
    """x + attention(norm(x)), then x + mlp(norm(x)): pre-norm.  (batch, n, size) -> the same.

    Args:
        size, heads, causal, dropout: as for MultiHeadAttention.
        hidden: the hidden units of the two-layer GELU network; 4 * size by default.
    """

    def __init__(self, size, heads, hidden=None, causal=False, dropout=0.0, dtype=float32):
        size = check.size("TransformerBlock", "size", size)
        hidden = 4 * size if hidden is None else check.size("TransformerBlock", "hidden", hidden)
        self.attention_norm = LayerNorm(size, dtype=dtype)
        self.attention = MultiHeadAttention(size, heads, causal, dropout, dtype=dtype)
        self.mlp_norm = LayerNorm(size, dtype=dtype)
        self.mlp = Sequential(
            Linear(size, hidden, dtype=dtype), GELU(), Linear(hidden, size, dtype=dtype),
            Dropout(dropout),
        )  # fmt: skip

    def forward(self, x, *, mask=None):
        x = x + self.attention(self.attention_norm(x), mask=mask)
        return x + self.mlp(self.mlp_norm(x))
