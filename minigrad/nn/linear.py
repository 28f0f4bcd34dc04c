"""Layers that multiply by a table of weights: Linear and Embedding."""

from minigrad.arguments import flag
from minigrad.array.dtypes import float32
from minigrad.nn import check, init
from minigrad.nn.module import Module
from minigrad.nn.parameter import Parameter
from minigrad.ops.creation import randn, zeros
from minigrad.ops.table import functions


class Linear(Module):
    """x times weight transposed, plus bias.  (..., inputs) -> (..., outputs).

    weight (outputs, inputs) and bias (outputs,) start uniform in +-1 / sqrt(inputs), as in PyTorch.

    >>> import minigrad as mg
    >>> mg.nn.Linear(3, 2)(mg.zeros((5, 3))).shape
    (5, 2)
    """

    def __init__(self, inputs, outputs, bias=True, dtype=float32):
        self.inputs = check.size("Linear", "inputs", inputs)
        self.outputs, bias = check.size("Linear", "outputs", outputs), flag("Linear", "bias", bias)
        self.weight = Parameter(zeros((self.outputs, self.inputs), dtype))
        self.bias = Parameter(zeros((self.outputs,), dtype)) if bias else None
        init.default_(self.weight, self.bias)

    def forward(self, x):
        """(..., inputs) -> (..., outputs)."""
        x = check.variable("Linear", x, self.weight)
        if x.shape[-1:] != (self.inputs,):
            check.last_axis("Linear", x, self.inputs, "the inputs")
        return functions["linear"](x, self.weight, self.bias)

    def extra_repr(self):
        """Sizes."""
        return f"{self.inputs}, {self.outputs}" + ("" if self.bias is not None else ", bias=False")


class Embedding(Module):
    """Rows of a table by index.  ints (...) from 0 to count - 1 -> (..., size).

    weight (count, size) starts standard normal. The row of `padding_index` is zero, and takes no
    gradient.
    """

    def __init__(self, count, size, padding_index=None, dtype=float32):
        self.count = check.size("Embedding", "count", count)
        self.size = check.size("Embedding", "size", size)
        if padding_index is not None:
            padding_index = check.size("Embedding", "padding_index", padding_index, 0)
            check.below("Embedding", "padding_index", padding_index, count)
        self.padding_index = padding_index
        self.weight = Parameter(randn((self.count, self.size), dtype))
        if padding_index is not None:
            with self.weight.edit() as table:
                table[padding_index] = 0.0

    def forward(self, indices):
        """Ints (...) -> (..., size)."""
        indices = check.variable("Embedding", indices, self.weight)
        rows = functions["embedding"](self.weight, indices)
        if self.padding_index is None:
            return rows
        keep = functions["unsqueeze"](indices != self.padding_index, -1)
        return functions["where"](keep, rows, rows.detach())

    def extra_repr(self):
        """Sizes."""
        padding = "" if self.padding_index is None else f", padding_index={self.padding_index}"
        return f"{self.count}, {self.size}{padding}"
