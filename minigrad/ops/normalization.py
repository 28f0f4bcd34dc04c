"""Normalisations, and dropout."""

from minigrad.arguments import flag, instance, number, real, share
from minigrad.array.layout import normalize_axes
from minigrad.devices.backend import device_of
from minigrad.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from minigrad.formulas import expression as e
from minigrad.formulas.expression import IDENTITY, Program, call, symbol
from minigrad.ops import creation
from minigrad.ops.base import Structural
from minigrad.ops.inplace import apply_
from minigrad.ops.operands import as_variable, check_floats, constant
from minigrad.ops.reduction import Mean, Var
from minigrad.ops.rows import LayerNormRow, RmsNormRow
from minigrad.tape.modes import no_grad, state
from minigrad.tape.variable import Variable

x_, m_, v_, w_, b_, dy_ = map(symbol, ("x", "m", "v", "w", "b", "dy"))
eps_, s_, t_, n_ = map(symbol, ("eps", "s", "t", "n"))
SCALE = 1.0 / e.sqrt(v_ + eps_)
NORMALISED = Program(["x", "m", "v", "w", "b", "eps"], [(x_ - m_) * SCALE * w_ + b_])
TIMES_DEVIATION = Program(["dy", "x", "m", "v", "eps"], [dy_ * (x_ - m_) * SCALE])
GRADIENT = Program(  # s: the sum of dy; t: the sum of dy times the normalised x
    ["dy", "x", "m", "v", "w", "s", "t", "eps", "n"],
    [w_ * SCALE * (dy_ - (s_ + (x_ - m_) * SCALE * t_) * n_)],
)
MOVED = Program(["x", "m", "n"], [x_ + n_ * (m_ - x_)])


def _axes(shape):
    return (0, *range(2, len(shape)))


def _channels(array, rank):
    """Views an Array (c,) as (1, c, 1, ...) of `rank` axes, with strides 0 elsewhere."""
    array = device_of(array).contiguous(array)
    return array.view((1, array.shape[0], *(1,) * (rank - 2)), (0, 1, *(0,) * (rank - 2)))


class BatchNorm(Structural):
    """(x - mean) / sqrt(var + eps) * w + b per channel; mean and var must be those of x.

    (b, c, ...), (c,), (c,), (c,) mean, (c,) var, number -> (b, c, ...).  The gradients include the
    dependence of mean and var on x (Ioffe, Szegedy 2015).
    """

    samples = [((4, 3), (3,), (3,), (3,), (3,), 1e-5)]

    def forward(x, w, b, mean, var, eps):
        device = device_of(x)
        out = device.empty(x.shape, x.dtype)
        rest = [_channels(v, len(x.shape)) for v in (mean, var, w, b)]  # (1, c, 1, ...)
        device.elementwise(NORMALISED, (x, *rest, eps), (out,))
        return out

    gradients = (
        lambda dy, x, w, mean, var, eps: _input_gradient(dy, x, w, mean, var, eps),
        lambda dy, x, mean, var, eps: _sums(dy, x, mean, var, eps)[1],
        lambda dy: call("sum", dy, _axes(dy.shape), False),
        None,
        None,
    )


def _wide(v, rank):
    return call("reshape", v, (1, v.shape[0], *(1,) * (rank - 2)))


def _sums(dy, x, mean, var, eps):
    """Computes (sum of dy, sum of dy times the normalised x) per channel, both (c,).

    While recording, the sums are differentiable.
    """
    axes = _axes(x.shape)
    if not state.recording:
        device = device_of(x.array)
        sums = []
        inputs = [_channels(v.array, x.ndim) for v in (mean, var)]  # (1, c, 1, ...)
        for program, operands in (
            (IDENTITY, (dy.array,)),
            (TIMES_DEVIATION, (dy.array, x.array, *inputs, eps)),
        ):
            out = device.empty((x.shape[1],), x.dtype)
            device.reduce(program, "sum", operands, out, x.shape, axes)
            sums.append(Variable(out))
        return sums
    centred = x - Mean.apply(x, axes, True)
    scale = call("rsqrt", Var.apply(x, axes, True) + eps)
    return call("sum", dy, axes, False), call("sum", dy * centred * scale, axes, False)


def _input_gradient(dy, x, w, mean, var, eps):
    sums = _sums(dy, x, mean, var, eps)
    share = x.shape[1] / x.size
    if not state.recording:
        device = device_of(x.array)
        out = device.empty(x.shape, x.dtype)
        rest = [_channels(v.array, x.ndim) for v in (mean, var, w, *sums)]  # (1, c, 1, ...)
        device.elementwise(GRADIENT, (dy.array, x.array, *rest, eps, share), (out,))
        return Variable(out)
    axes = _axes(x.shape)
    s, t, wide = (_wide(v, x.ndim) for v in (*sums, w))  # (1, c, 1, ...)
    centred = x - Mean.apply(x, axes, True)
    scale = call("rsqrt", Var.apply(x, axes, True) + eps)
    return wide * scale * (dy - (s + centred * scale * t) * share)


def batch_norm(
    x, *, weight=None, bias=None, running_mean=None, running_var=None, training=None, momentum=0.1,
    eps=1e-5,
):  # fmt: skip
    """Normalises each channel over the batch and all other axes, then scales and shifts.

    (b, c, ...), (c,), (c,) -> (b, c, ...).

    Args:
        x: float Variable with at least two axes.
        weight: (c,) scale per channel, or None for 1.
        bias: (c,) shift per channel, or None for 0.
        running_mean: (c,). Training moves it in place towards the batch's mean by `momentum`;
            evaluation uses it instead of the batch's mean. None: always use the batch's.
        running_var: (c,), likewise for the batch's variance with ddof=1, as in PyTorch (the
            normalization itself uses ddof=0).
        training: whether to use the batch's mean and variance. Required with running values,
            because PyTorch's default is False.
        momentum: the fraction of the distance by which the running values move.
        eps: added to the variance.

    Raises:
        ShapeError: x has fewer than two axes, or one value per channel in training; or the shape
            of another argument is not (c,).
        DTypeError: an argument has no floats.
    """
    x = as_variable(x, "batch_norm")
    momentum, eps = share("batch_norm", "momentum", momentum), number("batch_norm", "eps", eps, 0.0)
    if training is None and running_mean is not None:
        raise ArgumentTypeError(
            "batch_norm: wanted training=True or False together with running values",
            "neither",
            "training=True moves them towards the batch's, training=False normalises by them",
        )
    training = True if training is None else flag("batch_norm", "training", training)
    if x.ndim < 2:
        raise ShapeError("batch_norm: wanted x (b, c, ...)", f"{x.shape}")
    check_floats("batch_norm", x)
    c, rank = x.shape[1], x.ndim
    names = ("weight", "bias", "running_mean", "running_var")
    for name, v in zip(names, (weight, bias, running_mean, running_var), strict=True):
        if v is not None and (not isinstance(v, Variable) or v.shape != (c,)):
            raise ShapeError(
                f"batch_norm: wanted {name} to be a Variable ({c},), by channel of x {x.shape}",
                v.describe() if isinstance(v, Variable) else type(v).__name__,
            )
        if v is not None and not v.dtype.is_float:
            raise DTypeError(f"batch_norm: wanted {name} to be floats", v.describe())
    if (running_mean is None) != (running_var is None):
        raise ArgumentError("batch_norm: wanted both running_mean and running_var, or neither")
    weight = creation.ones((c,), x.dtype, x.device) if weight is None else weight
    bias = creation.zeros((c,), x.dtype, x.device) if bias is None else bias
    if x.dtype.is_narrow:  # it may not hold the variance
        wide, weight, bias = (v.to(x.dtype.arithmetic) for v in (x, weight, bias))
        y = batch_norm(
            wide, weight=weight, bias=bias, running_mean=running_mean, running_var=running_var,
            training=training, momentum=momentum, eps=eps,
        )  # fmt: skip
        return y.to(x.dtype)
    if not training and running_mean is not None and running_var is not None:
        scale = weight * call("rsqrt", running_var + eps)
        return (x - _wide(running_mean, rank)) * _wide(scale, rank) + _wide(bias, rank)
    count = x.size // max(1, c)
    if training and count < 2:
        raise ShapeError(
            "batch_norm: wanted more than one value per channel when training", f"{x.shape}"
        )
    with no_grad():
        mean, var = (op.apply(x.detach(), _axes(x.shape), False) for op in (Mean, Var))
        if training and running_mean is not None and running_var is not None:
            unbiased = var * (count / (count - 1))
            apply_(running_mean, MOVED, mean.array, momentum)
            apply_(running_var, MOVED, unbiased.array, momentum)
    return BatchNorm.apply(x, weight, bias, mean, var, eps)


class Dropout(Structural):
    """x / (1 - p), but 0 with probability p.  (...), seed, counter, number -> (...).

    The random number of (seed, counter, i) decides about element i. Backward draws it again instead
    of storing a mask.
    """

    samples = [((3, 4), 7, 0, 0.4), ((5,), 7, 3, 0.0), ((0,), 7, 0, 0.5)]
    numbers = (7, 0)

    def forward(x, seed, counter, p):
        device = device_of(x)
        out = device.empty(x.shape, x.dtype)
        if x.size:
            drawn = device.empty(x.shape, x.dtype)
            device.random(drawn, "uniform", seed, counter)
            device.elementwise(DROPPED, (x, drawn, real(p), 1.0 / (1.0 - p)), (out,))
        return out

    gradients = (lambda dy, seed, counter, p: Dropout.apply(dy, seed, counter, p), None, None)
    array_gradients = "same"


u_, p_ = symbol("u"), symbol("p")
DROPPED = Program(["x", "u", "p", "s"], [e.where(u_ >= p_, x_ * s_, 0.0)])


def dropout(x, p=0.5, training=True, generator=None):
    """Sets elements to 0 with probability p, and scales the others by 1 / (1 - p).  (...) -> (...).

    Without training it returns x itself. generator: an mg.Generator; None for the default generator
    (mg.manual_seed).
    """
    x, p = as_variable(x, "dropout"), share("dropout", "p", p)
    training = flag("dropout", "training", training)
    if generator is not None:
        instance("dropout", "generator", generator, creation.Generator, "an mg.Generator")
    check_floats("dropout", x)
    if not training or p == 0.0:
        return x
    if p == 1.0:
        return e.zero_of(x)
    source = generator or creation.generator
    return Dropout.apply(x, *source.draw(x.size), real(p))


def normalize(x, *, axis, eps=1e-12):
    """Divides x by its Euclidean norm along one axis or several, or by eps where that is larger.

    (...), axis -> (...); float32 for ints. axis None takes the norm of all elements. The gradient
    at 0 is dy / eps. The axis is required, because PyTorch's default is 1.

    Raises:
        ShapeError: the axis does not exist.

    >>> import minigrad as mg
    >>> mg.normalize(mg.variable([3.0, 4.0]), axis=-1).tolist()
    [0.6000000238418579, 0.800000011920929]
    """
    x, eps = as_variable(x, "normalize"), number("normalize", "eps", eps, 0.0)
    axes = normalize_axes("normalize", axis, x.ndim or 1) if x.ndim else None
    if x.dtype.is_narrow:  # it may not hold eps
        return normalize(x.to(x.dtype.arithmetic), axis=axis, eps=eps).to(x.dtype)
    return x / call("maximum", call("norm", x, axes, True), eps)


def layer_norm(x, weight, bias, eps=1e-5):
    """Normalises along the last axis, then scales and shifts.  (..., n), (n,), (n,) -> (..., n)."""
    x = as_variable(x, "layer_norm")
    weight, bias = _of_features("layer_norm", x, weight=weight, bias=bias)
    eps = number("layer_norm", "eps", eps, 0.0)
    return LayerNormRow.apply(x, weight, bias, eps)


def rms_norm(x, weight, eps=1e-5):
    """Divides by the root mean square of the last axis and scales.  (..., n), (n,) -> (..., n)."""
    x = as_variable(x, "rms_norm")
    (weight,) = _of_features("rms_norm", x, weight=weight)
    return RmsNormRow.apply(x, weight, number("rms_norm", "eps", eps, 0.0))


def _of_features(name, x, **given):
    """Returns scale and shift as Variables, after checking that they have x's last size.

    A normalized_shape, as PyTorch takes it here, would scale by the number of features.
    """
    checked = []
    for what, value in given.items():
        value = value if isinstance(value, Variable) else constant(value, name, x)
        if not x.ndim or value.shape != x.shape[-1:]:
            raise ShapeError(
                f"{name}: wanted {what} of one element per feature of x {x.shape}",
                f"{value.shape}",
                f"mg.{name}(x, {', '.join(given)}): there is no normalized_shape, the last axis is "
                "normalised",
            )
        checked.append(value)
    return checked


functions = (batch_norm, dropout, normalize, layer_norm, rms_norm)
