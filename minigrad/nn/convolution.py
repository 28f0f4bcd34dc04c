"""Convolution and pooling layers. Images are (batch, channels, height, width)."""

from minigrad.arguments import flag
from minigrad.array.dtypes import float32
from minigrad.errors import ArgumentError
from minigrad.nn import check, init
from minigrad.nn.module import Module
from minigrad.nn.parameter import Parameter
from minigrad.ops.creation import zeros
from minigrad.ops.table import functions


class _Convolution(Module):
    """The base class of convolutions. rank: of the input. op: the name of the operation."""

    rank: int
    op: str

    def __init__(
        self, inputs, outputs, size, stride=1, padding=0, dilation=1, groups=1, bias=True,
        dtype=float32,
    ):  # fmt: skip
        layer = type(self).__name__
        bias = flag(layer, "bias", bias)
        self.inputs = check.size(layer, "inputs", inputs)
        self.outputs = check.size(layer, "outputs", outputs)
        self.groups = check.size(layer, "groups", groups)
        if self.inputs % self.groups or self.outputs % self.groups:
            raise ArgumentError(
                f"{layer}: wanted inputs and outputs that groups divides",
                f"inputs {inputs}, outputs {outputs}, groups {groups}",
            )
        self.size = self._window(layer, "size", size)
        self.stride = self._window(layer, "stride", stride)
        self.padding = self._window(layer, "padding", padding, 0)
        self.dilation = self._window(layer, "dilation", dilation)
        field = self.size if isinstance(self.size, tuple) else (self.size,)
        shape = (self.outputs, self.inputs // self.groups, *field)
        self.weight = Parameter(zeros(shape, dtype))
        self.bias = Parameter(zeros((self.outputs,), dtype)) if bias else None
        init.default_(self.weight, self.bias)

    def _window(self, layer, name, value, at_least=1):
        return check.pair(layer, name, value, at_least)

    def forward(self, x):
        """Convolves x."""
        x = check.variable(type(self).__name__, x, self.weight)
        check.channels(type(self).__name__, x, self.rank, self.inputs)
        return functions[self.op](
            x, self.weight, self.bias, stride=self.stride, padding=self.padding,
            dilation=self.dilation, groups=self.groups,
        )  # fmt: skip

    def extra_repr(self):
        one, none = ((1, 1), (0, 0)) if self.rank == 4 else (1, 0)
        shown = [f"{self.inputs}, {self.outputs}, size={self.size}"]
        for name, default in (
            ("stride", one), ("padding", none), ("dilation", one), ("groups", 1),
        ):  # fmt: skip
            if getattr(self, name) != default:
                shown.append(f"{name}={getattr(self, name)}")
        return ", ".join(shown) + ("" if self.bias is not None else ", bias=False")


class Conv2d(_Convolution):
    """Slides filters over images.  (batch, inputs, h, w) -> (batch, outputs, h', w').

    h' = (h + 2 padding - dilation (size - 1) - 1) // stride + 1, and likewise w'. weight (outputs,
    inputs / groups, size, size) and bias (outputs,) start uniform in +-1 / sqrt(fan_in).

    Args:
        inputs: number of channels of the images.
        outputs: number of filters.
        size: the size of a filter; like stride, padding and dilation an int or (height, width).
        groups: the channels are split into this many groups, each with separate filters.
    """

    rank, op = 4, "conv2d"


class Conv1d(_Convolution):
    """Slides filters along sequences.  (batch, inputs, length) -> (batch, outputs, length').

    Arguments as for Conv2d, each one int. weight is (outputs, inputs / groups, size).
    """

    rank, op = 3, "conv1d"

    def _window(self, layer, name, value, at_least=1):
        return check.size(layer, name, value, at_least)


class _Pool2d(Module):
    """The base class of poolings. op: the name of the operation."""

    op: str

    def __init__(self, size, stride=None, padding=0):
        layer = type(self).__name__
        self.size = check.pair(layer, "size", size)
        self.stride = self.size if stride is None else check.pair(layer, "stride", stride)
        self.padding = check.pair(layer, "padding", padding, 0)

    def forward(self, x):
        """Pools x."""
        return functions[self.op](x, self.size, stride=self.stride, padding=self.padding)

    def extra_repr(self):
        return f"{self.size}, stride={self.stride}, padding={self.padding}"


class MaxPool2d(_Pool2d):
    """Takes the largest element of each window.

    (batch, channels, h, w) -> (batch, channels, h', w'). stride defaults to the size, so that the
    windows tile the image.
    """

    op = "max_pool2d"


class AvgPool2d(_Pool2d):
    """Takes the mean of each window, zeros of the padding included.

    (batch, channels, h, w) -> (batch, channels, h', w').
    """

    op = "avg_pool2d"
