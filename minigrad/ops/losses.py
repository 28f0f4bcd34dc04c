"""Losses: compositions and row formulas, reduced to their mean by default.

The mean cross entropy of class indices, the usual loss of classifiers, is one operation.
"""

import numpy as np

from minigrad.arguments import choice, number, real, share, whole
from minigrad.array.dtypes import float32, float64
from minigrad.array.layout import normalize_axis
from minigrad.devices.backend import device_of
from minigrad.devices.backend import values as values_of
from minigrad.errors import ArgumentTypeError, BoundsError, DTypeError, ShapeError
from minigrad.formulas import expression as e
from minigrad.formulas.expression import IDENTITY, Program, call, evaluate, symbol, where
from minigrad.ops.base import Elementwise, Structural
from minigrad.ops.operands import constant, variables
from minigrad.ops.quiet import Quiet
from minigrad.ops.reduction import Mean, Sum
from minigrad.ops.rows import CrossEntropyRow, LogSoftmaxRow
from minigrad.ops.shape import Reshape
from minigrad.tape.probe import check_as
from minigrad.tape.variable import Variable

PAIRS = [((3, 4), (3, 4)), ((5,), ())]


class BceWithLogits(Elementwise):
    """-t log s(x) - (1 - t) log(1 - s(x)) with s the sigmoid, without overflow.

    (...), (...) targets in [0, 1] -> (...).
    """

    samples = PAIRS
    domains = ((-3.0, 3.0), (0.0, 1.0))
    result = "real"

    def formula(x, t):
        share = where(x > 0.0, 1.0 - t, -t)
        linear = where(e.equal(share, 0.0), 0.0, x * share)  # 0 even if x is infinite
        return linear + e.log1p(e.exp(-e.absolute(x)))

    def gradient(dy, x, t):
        return dy * (e.sigmoid(x) - t), -dy * x


class HuberElement(Elementwise):
    """d^2/2 for |d| <= delta, delta (|d| - delta/2) beyond, d = x - t (Huber 1964).

    (...), (...), number -> (...).
    """

    samples = PAIRS
    numbers = (0.7,)
    result = "real"

    def formula(x, t, delta):
        d = x - t
        size = e.absolute(d)
        return where(size <= delta, 0.5 * d * d, delta * (size - 0.5 * delta))

    def gradient(dy, x, t, delta):
        slope = dy * e.minimum(e.maximum(x - t, -delta), delta)
        return slope, -slope


ROW_GRADIENT = CrossEntropyRow.gradient_formulas[0]


NAMES = ("x", "label", "smoothing")
DY = symbol("dy") * symbol("scale")  # scaling by 1 / n in this kernel saves another one
SCALED = Program(["dy", "scale", *NAMES], [CrossEntropyRow.gradient(DY, *map(symbol, NAMES))])


def _column(label):
    return label.view((*label.shape, 1), (*label.strides, 0))


def _row_gradients(dy, x, label, smoothing):
    device = device_of(x)
    out = device.empty(x.shape, x.dtype)
    if x.size:
        inputs = (dy, 1.0 / x.shape[0], x, _column(label), smoothing)
        device.rows(SCALED, ("store",), inputs, (out,), x.shape)
    return out


class CrossEntropy(Structural):
    """Mean over rows of -log softmax(x)[label]; `smoothing` is spread over all classes.

    (n, k), (n,) labels, number -> ().
    """

    samples = [((3, 4), (3,), 0.1)]
    integer_inputs = {1: 4}

    def forward(x, label, smoothing):
        device = device_of(x)
        check_labels(Variable(label), x.shape[1])
        losses = device.empty((x.shape[0], 1), x.dtype)
        if x.size:
            inputs = (x, _column(label), smoothing)
            device.rows(CrossEntropyRow.program, ("row",), inputs, (losses,), x.shape)
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
    array_gradients = (_row_gradients, None)


def reduce_loss(loss, reduction):
    """Reduces a loss per element: 'mean', 'sum' or 'none'."""
    reduction = choice("loss", "reduction", reduction, ("mean", "sum", "none"))
    if reduction == "mean":
        return Mean.apply(loss, None, False)
    if reduction == "sum":
        return Sum.apply(loss, None, False)
    return loss


def _same_shape(name, x, target):
    x, target = variables(name, x, target)
    if x.shape != target.shape:
        raise ShapeError(
            f"{name}: wanted predictions and targets of one shape",
            f"{x.shape} and {target.shape}",
            "broadcasting here would be a silent mistake: reshape one of them",
        )
    return x, target


def _compared(name, of_elements, x, target, reduction, *numbers):
    """Reduces a loss per element. It computes losses of ints in float64: differences may wrap."""
    x, target = _same_shape(name, x, target)
    if x.dtype.is_float or target.dtype.is_float:
        return reduce_loss(of_elements(x, target, *numbers), reduction)
    loss = of_elements(x.to(float64), target.to(float64), *numbers)
    return reduce_loss(loss, reduction).to(float32)


def mse(x, target, reduction="mean"):
    """Mean squared error; float32 for ints.

    (...), (...) -> (), or (...) with reduction='none'.
    """
    return _compared("mse", lambda x, t: call("square", x - t), x, target, reduction)


def bce_with_logits(x, target, reduction="mean"):
    """Binary cross entropy of logits; targets in [0, 1].

    (...), (...) -> (), or (...) with reduction='none'.
    """
    return _compared("bce_with_logits", BceWithLogits.apply, x, target, reduction)


def huber(x, target, delta=1.0, reduction="mean"):
    """Huber loss: quadratic near 0, linear beyond delta.

    (...), (...) -> (), or (...) with reduction='none'.
    """
    delta = number("huber", "delta", delta, above=0.0)
    return _compared("huber", HuberElement.apply, x, target, reduction, delta)


def cross_entropy(
    logits, labels, weight=None, *, ignore_index=None, label_smoothing=0.0, reduction="mean",
    axis=None,
):  # fmt: skip
    """Cross entropy: -log softmax(logits) at the label, or against class probabilities.

    (..., k), (...) -> (), or (...) with reduction='none'.

    Args:
        logits: (..., k), or with the classes along another axis.
        labels: ints (...) from 0 to k - 1, or probabilities of the logits' shape.
        weight: (k,), a weight per class; 'mean' is then the weighted mean.
        ignore_index: a label; rows with it are ignored.
        label_smoothing: the share of each target that is spread over all classes.
        reduction: 'mean', 'sum' or 'none'.
        axis: the axis of the classes. The default is the last for logits (k,) and (n, k). With more
            axes it is the axis that the labels lack: the second (as in PyTorch) or the last. It is
            required if both fit.

    Raises:
        BoundsError: a label is not from 0 to k - 1.
        ShapeError: the shapes of logits, labels or weight do not fit together.
        DTypeError: the logits are not floats.
    """
    logits, labels = variables("cross_entropy", logits, labels)
    if not logits.dtype.is_float or not logits.ndim:
        raise DTypeError("cross_entropy: wanted float logits (..., k)", logits.describe())
    label_smoothing = share("cross_entropy", "label_smoothing", label_smoothing)
    choice("cross_entropy", "reduction", reduction, ("mean", "sum", "none"))
    if ignore_index is not None:
        ignore_index = whole("cross_entropy", "ignore_index", ignore_index)
    if logits.ndim > 2 or axis is not None:
        logits, labels = _classes_last(logits, labels, axis)
    k = logits.shape[-1]
    if weight is not None:
        weight = variables("cross_entropy", logits, weight)[1]
        if weight.shape != (k,):
            raise ShapeError(f"cross_entropy: wanted weight ({k},), per class", f"{weight.shape}")
    if labels.dtype.is_float:
        return _of_probabilities(logits, labels, weight, label_smoothing, reduction)
    if labels.shape != logits.shape[:-1]:
        raise ShapeError(
            "cross_entropy: wanted labels of the logits' shape without the last axis",
            f"labels {labels.shape}, logits {logits.shape} with the classes last",
            "class indices are ints (...); probabilities are floats (..., k)",
        )
    if weight is None and ignore_index is None and reduction == "mean" and logits.ndim == 2:
        return CrossEntropy.apply(logits, labels, real(label_smoothing))
    if ignore_index is None:
        labels = Labels.apply(labels, k)
    else:
        check_labels(labels, k, ignore_index)
    rows = Reshape.apply(logits, (-1, k)) if logits.ndim != 2 else logits
    column = Reshape.apply(labels, (-1, 1))
    if weight is None and ignore_index is None:
        loss = CrossEntropyRow.apply(rows, column, real(label_smoothing))
        return _shaped(loss, labels.shape, reduction)
    return _weighted(rows, column, labels.shape, weight, ignore_index, label_smoothing, reduction)


def _classes_last(logits, labels, axis):
    """Moves the axis of the classes last, in logits and in labels that are probabilities."""
    shape, last = logits.shape, logits.ndim - 1
    if axis is not None:
        axis = normalize_axis("cross_entropy", axis, logits.ndim)
    elif labels.dtype.is_float:
        if labels.shape == shape:
            raise ArgumentTypeError(
                "cross_entropy: wanted the axis of the classes: with probabilities of this shape "
                "it may be the second, as in PyTorch, or the last",
                f"logits {shape}",
                "axis=1 or axis=-1",
            )
        return logits, labels
    else:
        fits = [d for d in (1, last) if labels.shape == (*shape[:d], *shape[d + 1 :])]
        if len(fits) > 1:
            raise ArgumentTypeError(
                "cross_entropy: wanted the axis of the classes: with labels of this shape it may "
                "be the second, as in PyTorch, or the last",
                f"labels {labels.shape}, logits {shape}",
                "axis=1 or axis=-1",
            )
        axis = fits[0] if fits else last
    if axis == last:
        return logits, labels
    order = (*(d for d in range(last + 1) if d != axis), axis)
    if labels.dtype.is_float and labels.ndim == logits.ndim:
        labels = call("permute", labels, order)
    return call("permute", logits, order), labels


def _without(labels, ignore_index, instead):
    """Replaces each ignored label with `instead`."""
    if ignore_index is None:
        return labels
    return call("where", call("equal", labels, ignore_index), instead, labels)


def _shaped(loss, shape, reduction):
    if reduction != "none":
        return reduce_loss(loss, reduction)
    return Reshape.apply(loss, shape)


class Labels(Quiet):
    """A view of labels, after the check that they are from 0 to k - 1.  (...), k -> (...)."""

    inputs, attributes = ("labels",), ("k",)

    def forward(labels, k):
        check_labels(Variable(labels), k)
        return labels.view(labels.shape, labels.strides)


def check_labels(labels, k, ignore_index=None):
    """Raises BoundsError unless labels are from 0 to k - 1, or are ignored."""
    check_as("cross_entropy", _check_labels, labels, k, ignore_index)


def _check_labels(labels, k, ignore_index):
    safe = _without(labels, ignore_index, 0)
    if device_of(safe.array).all_within(safe.array, 0, k - 1):
        return
    values = values_of(labels.array)
    bad = (values < 0) | (values >= k)
    if ignore_index is not None:
        bad &= values != ignore_index
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise BoundsError(
            f"cross_entropy: wanted labels from 0 to {k - 1}", f"{values[place]} at index {place}"
        )


def _weighted(rows, column, shape, weight, ignore_index, smoothing, reduction):
    k, label = rows.shape[-1], _without(column, ignore_index, -1)
    if ignore_index is None:
        keep = call("equal", column, column)
    else:
        keep = call("not_equal", column, ignore_index)
    counts = keep.to(rows.dtype)
    if weight is None:
        loss = where(keep, CrossEntropyRow.apply(rows, label, real(smoothing)), 0.0)
        total = Sum.apply(counts, None, False)
    else:
        if ignore_index is not None:
            rows = where(keep, rows, 0.0)  # 0 * NaN is NaN
        logs = LogSoftmaxRow.apply(rows)
        one_hot = call("equal", label, constant(np.arange(k), near=label)).to(rows.dtype)
        target = one_hot * (1.0 - smoothing) + counts * (smoothing / k)
        # a class of probability 0 may have the logit -inf, and 0 * inf is NaN
        shares = where(call("equal", target, 0.0), 0.0, logs * (target * weight))
        loss = -Sum.apply(shares, -1, True)
        total = Sum.apply(one_hot * weight, None, False)
    if reduction == "mean":
        return Sum.apply(loss, None, False) / total
    return _shaped(loss, shape, reduction)


def _of_probabilities(logits, target, weight, smoothing, reduction):
    if target.shape != logits.shape:
        raise ShapeError(
            "cross_entropy: wanted probabilities of the logits' shape",
            f"{target.dtype} labels {target.shape}, logits {logits.shape} with the classes last",
            "class indices are ints: labels.to('int64')",
        )
    k = logits.shape[-1]
    if smoothing:
        target = target * (1.0 - smoothing) + smoothing / k
    if weight is not None:
        target = target * weight
    loss = -Sum.apply(LogSoftmaxRow.apply(logits) * target, -1, False)
    return reduce_loss(loss, reduction)


functions = (mse, bce_with_logits, huber, cross_entropy)
