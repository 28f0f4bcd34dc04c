"""Activations as layers, and Flatten."""

import math

from minigrad.arguments import choice, number, whole
from minigrad.errors import ShapeError
from minigrad.nn import check
from minigrad.nn.module import Module
from minigrad.ops.table import functions


class ReLU(Module):
    """max(x, 0).  (...) -> (...)."""

    def forward(self, x):
        return functions["relu"](x)


class LeakyReLU(Module):
    """x above 0, slope * x below.  (...) -> (...)."""

    def __init__(self, slope=0.01):
        self.slope = number("LeakyReLU", "slope", slope)

    def forward(self, x):
        return functions["leaky_relu"](x, self.slope)

    def extra_repr(self):
        return f"slope={self.slope}"


class ELU(Module):
    """x above 0, alpha (e^x - 1) below.  (...) -> (...)."""

    def __init__(self, alpha=1.0):
        self.alpha = number("ELU", "alpha", alpha)

    def forward(self, x):
        return functions["elu"](x, self.alpha)

    def extra_repr(self):
        return f"alpha={self.alpha}"


class GELU(Module):
    """x Phi(x), or its tanh formula with approximate='tanh'.  (...) -> (...)."""

    def __init__(self, approximate=None):
        self.approximate = choice("GELU", "approximate", approximate, (None, "none", "tanh"))

    def forward(self, x):
        return functions["gelu"](x, self.approximate)

    def extra_repr(self):
        return f"approximate={self.approximate!r}" if self.approximate else ""


class SiLU(Module):
    """x sigmoid(x).  (...) -> (...)."""

    def forward(self, x):
        return functions["silu"](x)


class Tanh(Module):
    """Hyperbolic tangent.  (...) -> (...)."""

    def forward(self, x):
        return functions["tanh"](x)


class Sigmoid(Module):
    """1 / (1 + e^-x).  (...) -> (...)."""

    def forward(self, x):
        return functions["sigmoid"](x)


class Softplus(Module):
    """log(1 + e^x).  (...) -> (...)."""

    def forward(self, x):
        return functions["softplus"](x)


class Softmax(Module):
    """exp(x) / sum exp(x) along an axis.  (..., n, ...) -> the same."""

    def __init__(self, axis=-1):
        self.axis = whole("Softmax", "axis", axis)

    def forward(self, x):
        return functions["softmax"](x, self.axis)

    def extra_repr(self):
        return f"axis={self.axis}"


class Flatten(Module):
    """Flattens each example to one row.  (batch, ...) -> (batch, n)."""

    def forward(self, x):
        x = check.variable("Flatten", x)
        if not x.ndim:
            raise ShapeError("Flatten: wanted a batch axis first", "shape ()")
        return functions["reshape"](x, (x.shape[0], math.prod(x.shape[1:])))
