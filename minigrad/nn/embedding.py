"""Embedding: the layer that looks up rows of a table of weights."""

from minigrad.array.dtypes import float32
from minigrad.errors import ArgumentError
from minigrad.nn import check
from minigrad.nn.module import Module
from minigrad.nn.parameter import Parameter
from minigrad.ops.creation import randn
from minigrad.ops.table import functions


class Embedding(Module):
    """Looks up rows of a table by index.  ints (...) from 0 to count - 1 -> (..., size).

    weight (count, size) starts with standard normal numbers. The row at `padding_index` starts at 0
    and gets no gradient.
    """

    def __init__(self, count, size, padding_index=None, dtype=float32):
        self.count = check.size("Embedding", "count", count)
        self.size = check.size("Embedding", "size", size)
        if padding_index is not None:
            padding_index = check.size("Embedding", "padding_index", padding_index, 0)
            if padding_index >= self.count:
                raise ArgumentError(
                    f"Embedding: wanted padding_index below {self.count}", f"{padding_index}"
                )
        self.padding_index = padding_index
        self.weight = Parameter(randn((self.count, self.size), dtype))
        if padding_index is not None:
            with self.weight.edit() as table:
                table[padding_index] = 0.0

    def forward(self, indices):
        indices = check.variable("Embedding", indices, self.weight)
        rows = functions["embedding"](self.weight, indices)
        if self.padding_index is None:
            return rows
        keep = functions["unsqueeze"](indices != self.padding_index, -1)
        return functions["where"](keep, rows, rows.detach())

    def extra_repr(self):
        padding = "" if self.padding_index is None else f", padding_index={self.padding_index}"
        return f"{self.count}, {self.size}{padding}"
