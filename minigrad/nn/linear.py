"""Linear: the layer that multiplies by a matrix of weights."""

from minigrad.arguments import flag
from minigrad.array.dtypes import float32
from minigrad.nn import check, init
from minigrad.nn.module import Module
from minigrad.nn.parameter import Parameter
from minigrad.ops.creation import zeros
from minigrad.ops.table import functions


class Linear(Module):
    """x weight^T + bias.  (..., inputs) -> (..., outputs).

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
        x = check.variable("Linear", x, self.weight)
        if x.shape[-1:] != (self.inputs,):
            check.last_axis("Linear", x, self.inputs, "the inputs")
        return functions["linear"](x, self.weight, self.bias)

    def extra_repr(self):
        return f"{self.inputs}, {self.outputs}" + ("" if self.bias is not None else ", bias=False")
