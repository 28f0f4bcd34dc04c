"""The mean cross entropy of class indices, the usual loss of classifiers, as one operation."""

from minigrad.devices.backend import device_of
from minigrad.formulas.expression import IDENTITY, Program, evaluate, symbol
from minigrad.ops.base import Structural
from minigrad.ops.rows import CrossEntropyRow

ROW_GRADIENT = CrossEntropyRow.gradient_formulas[0]


def _scaled_program():
    """The gradient of a row with dy scaled in the same kernel, which saves a division by n."""
    scaled = CrossEntropyRow.gradient(
        symbol("dy") * symbol("scale"), *map(symbol, ("x", "label", "smoothing"))
    )
    return Program(["dy", "scale", "x", "label", "smoothing"], [scaled])


SCALED = _scaled_program()


class CrossEntropy(Structural):
    """Mean over rows of -log softmax(x)[label]; `smoothing` is spread over all classes.

    (n, k), (n,) labels, number -> ().
    """

    samples = [((3, 4), (3,))]
    integer_inputs = {1: 4}
    numbers = (0.1,)

    def forward(x, label, smoothing):
        device = device_of(x)
        losses = device.empty((x.shape[0], 1), x.dtype)
        if x.size:
            column = label.view((*label.shape, 1), (*label.strides, 0))
            device.rows(
                CrossEntropyRow.program, ("row",), (x, column, smoothing), (losses,), x.shape
            )
        out = device.empty((), x.dtype)
        device.reduce(IDENTITY, "mean", (losses,), out, losses.shape, (0, 1))
        return out

    gradients = (
        lambda dy, x, label, smoothing: evaluate(
            ROW_GRADIENT,
            {
                "dy": dy * (1.0 / max(1, x.shape[0])),
                "x": x,
                "label": label.reshape((-1, 1)),
                "smoothing": smoothing,
            },
        ),
        None,
    )
    array_gradients = (
        lambda dy, x, label, smoothing: _row_gradients(dy, x, label, smoothing),
        None,
    )


def _row_gradients(dy, x, label, smoothing):
    device = device_of(x)
    out = device.empty(x.shape, x.dtype)
    if x.size:
        column = label.view((*label.shape, 1), (*label.strides, 0))
        inputs = (dy, 1.0 / x.shape[0], x, column, smoothing)
        device.rows(SCALED, ("store",), inputs, (out,), x.shape)
    return out
