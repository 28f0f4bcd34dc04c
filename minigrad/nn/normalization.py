"""Normalisation layers, and dropout."""

import math

from minigrad.arguments import number, share
from minigrad.array.dtypes import float32
from minigrad.nn import check
from minigrad.nn.module import Module
from minigrad.nn.parameter import Buffer, Parameter
from minigrad.ops.creation import ones, zeros
from minigrad.ops.table import functions


class LayerNorm(Module):
    """Normalises each row to mean 0 and variance 1, then scales and shifts (Ba et al. 2016).

    (..., n) -> (..., n). With size (m, n) it normalises over the last two axes together, and so on.
    weight and bias have the shape of the normalised axes.

    Args:
        size: the size of the last axis, or a tuple of the sizes of the last axes.
    """

    def __init__(self, size, eps=1e-5, dtype=float32):
        sizes = check.sizes("LayerNorm", "size", size)
        self.size = sizes[0] if len(sizes) == 1 else sizes
        self.eps = number("LayerNorm", "eps", eps, 0.0)
        self.weight = Parameter(ones(sizes, dtype))
        self.bias = Parameter(zeros(sizes, dtype))

    def forward(self, x):
        x = check.variable("LayerNorm", x, self.weight)
        if isinstance(self.size, tuple):
            return self._over_axes(x, self.size)
        check.last_axis("LayerNorm", x, self.size, "the features")
        return functions["layer_norm"](x, self.weight, self.bias, self.eps)

    def _over_axes(self, x, sizes):
        """Joins the last axes into one, n, and normalises along it. Contiguous x is not copied."""
        check.last_axes("LayerNorm", x, sizes)
        # (..., n)
        rows = functions["reshape"](x, (*x.shape[: x.ndim - len(sizes)], math.prod(sizes)))
        weight, bias = (functions["reshape"](p, (-1,)) for p in (self.weight, self.bias))  # (n,)
        y = functions["layer_norm"](rows, weight, bias, self.eps)  # (..., n)
        return functions["reshape"](y, x.shape)  # (..., *sizes)

    def extra_repr(self):
        return f"{self.size}, eps={self.eps}"


class RMSNorm(Module):
    """Divides each row by its root mean square, then scales (Zhang, Sennrich 2019).

    (..., n) -> (..., n).
    """

    def __init__(self, size, eps=1e-5, dtype=float32):
        self.size = check.size("RMSNorm", "size", size)
        self.eps = number("RMSNorm", "eps", eps, 0.0)
        self.weight = Parameter(ones((self.size,), dtype))

    def forward(self, x):
        x = check.variable("RMSNorm", x, self.weight)
        check.last_axis("RMSNorm", x, self.size, "the features")
        return functions["rms_norm"](x, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.size}, eps={self.eps}"


class _BatchNorm(Module):
    """Normalises each channel over the batch (Ioffe, Szegedy 2015). ranks: accepted input ranks."""

    ranks: tuple

    def __init__(self, channels, eps=1e-5, momentum=0.1, dtype=float32):
        self.size = check.size(type(self).__name__, "channels", channels)
        self.eps = number(type(self).__name__, "eps", eps, 0.0)
        self.momentum = share(type(self).__name__, "momentum", momentum)
        self.weight = Parameter(ones((self.size,), dtype))
        self.bias = Parameter(zeros((self.size,), dtype))
        self.running_mean = Buffer(zeros((self.size,), dtype))
        self.running_var = Buffer(ones((self.size,), dtype))

    def forward(self, x):
        """Normalises x, of the same shape. In training, also updates the running statistics."""
        x = check.variable(type(self).__name__, x, self.weight)
        rank = x.ndim if x.ndim in self.ranks else self.ranks[-1]
        check.channels(type(self).__name__, x, rank, self.size)
        return functions["batch_norm"](
            x, weight=self.weight, bias=self.bias, running_mean=self.running_mean,
            running_var=self.running_var, training=self.training, momentum=self.momentum,
            eps=self.eps,
        )  # fmt: skip

    def extra_repr(self):
        return f"{self.size}, eps={self.eps}, momentum={self.momentum}"


class BatchNorm1d(_BatchNorm):
    """Normalises each channel over the batch.  (b, c) or (b, c, length) -> the same.

    Training uses the mean and variance of the batch and updates the running statistics:
    running = (1 - momentum) running + momentum batch, with the unbiased variance. Evaluation uses
    the running statistics.
    """

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Like BatchNorm1d, for images.  (b, c, h, w) -> (b, c, h, w)."""

    ranks = (4,)


class Dropout(Module):
    """In training, sets each element to 0 with probability p and scales the others by 1 / (1 - p).

    (...) -> (...).  In evaluation, returns x itself.
    """

    def __init__(self, p=0.5):
        self.p = number("Dropout", "p", p, 0.0, below=1.0)

    def forward(self, x):
        return functions["dropout"](x, self.p, training=self.training)

    def extra_repr(self):
        return f"p={self.p}"
