"""From the classes to the names people use: Variable's operators and methods, and `mg.<op>`.

One table each. Nothing here computes.
"""

from minigrad.array.layout import normalize_axes, normalize_axis, size_of
from minigrad.errors import ArgumentError
from minigrad.graph import backward
from minigrad.graph.variable import FUNCTIONS, Variable
from minigrad.ops import (
    activations,
    attention,
    binary,
    comparison,
    contraction,
    convolution,
    devices,
    gathering,
    indexing,
    inplace,
    joining,
    linear,
    losses,
    normalisation,
    reduction,
    rows,
    scan,
    shape,
    unary,
    windows,
)
from minigrad.ops.base import registry
from minigrad.ops.fast import make_binary, make_unary
from minigrad.ops.operands import InferenceVariable, constant, operand, variables
from minigrad.ops.operators import logical_operator, operator
from minigrad.ops.signatures import check_count, teaching

_ = binary, unary, backward  # loading them fills the registry and completes Variable


def _simple(op):
    """The public function of an op whose arguments are just its inputs."""

    def function(*args):
        if len(args) != len(op.inputs):
            check_count(op.name, op.inputs, args)
        return op.apply(*args)

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.__doc__
    return function


def _with_axis(op):
    def function(x, axis=None, keepdims=False):
        return op.apply(x, axis, keepdims)

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.__doc__
    return function


def last_axis(op, x, axis, *others):
    """Runs a row op along any axis."""
    axis = normalize_axis(op.name, axis, x.ndim) if x.ndim else 0
    if not x.ndim:
        return shape.reshape(op.apply(shape.reshape(x, (1,)), *others), ())
    if axis == x.ndim - 1:
        return op.apply(x, *others)
    order = [d for d in range(x.ndim) if d != axis] + [axis]
    y = op.apply(shape.permute(x, order), *others)
    return shape.permute(y, [order.index(d) for d in range(x.ndim)])


def softmax(x, axis=-1):
    """exp(x) / sum exp(x) along an axis, without overflow.  (..., n, ...) -> the same shape."""
    return last_axis(rows.SoftmaxRow, as_variable(x), axis)


def log_softmax(x, axis=-1):
    """x - log sum exp(x) along an axis.  (..., n, ...) -> the same shape."""
    return last_axis(rows.LogSoftmaxRow, as_variable(x), axis)


def logsumexp(x, axis=None, keepdims=False):
    """log sum exp(x) over axes, without overflow.  (...), axis -> (...) without the axes."""
    x = as_variable(x)
    axes = normalize_axes("logsumexp", axis, x.ndim)
    kept = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    rest = [d for d in range(x.ndim) if d not in axes]
    if tuple(range(len(rest), x.ndim)) != axes:
        x = shape.permute(x, (*rest, *axes))
    if len(axes) != 1:
        x = shape.reshape(x, (*x.shape[: len(rest)], size_of(x.shape[len(rest) :])))
    y = reduction.LogSumExpRow.apply(x)
    return shape.reshape(y, kept if keepdims else y.shape[:-1])


def layer_norm(x, weight, bias, eps=1e-5):
    """Normalised along the last axis, scaled and shifted.  (..., n), (n,), (n,) -> (..., n)."""
    return rows.LayerNormRow.apply(x, weight, bias, float(eps))


def rms_norm(x, weight, eps=1e-5):
    """Divided by the root mean square of the last axis, scaled.  (..., n), (n,) -> (..., n)."""
    return rows.RmsNormRow.apply(x, weight, float(eps))


def as_variable(x):
    """x as a Variable; data of other kinds become constants."""
    return x if isinstance(x, Variable) else constant(x)


def gelu(x, approximate=None):
    """x Phi(x); with approximate='tanh' by the tanh formula.  (...) -> (...)."""
    if approximate not in (None, "none", "tanh"):
        raise ArgumentError("gelu: wanted approximate=None or 'tanh'", f"{approximate!r}")
    return (activations.GeluTanh if approximate == "tanh" else activations.Gelu).apply(x)


def leaky_relu(x, slope=0.01):
    """x above 0, slope * x below.  (...) -> (...)."""
    return activations.LeakyRelu.apply(x, float(slope))


def elu(x, alpha=1.0):
    """x above 0, alpha (e^x - 1) below.  (...) -> (...)."""
    return activations.Elu.apply(x, float(alpha))


def clip(x, low=None, high=None):
    """x cut to [low, high]; None leaves a side open.  (...) -> (...)."""
    x = as_variable(x)
    if low is None and high is None:
        raise ArgumentError("clip: wanted low, high or both")
    if low is None:
        return (
            binary.Clip.apply(x, -float("inf"), high)
            if x.dtype.is_float
            else binary.Minimum.apply(x, high)
        )
    if high is None:
        return (
            binary.Clip.apply(x, low, float("inf"))
            if x.dtype.is_float
            else binary.Maximum.apply(x, low)
        )
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        return binary.Clip.apply(x, low, high)
    return binary.Minimum.apply(binary.Maximum.apply(x, low), high)


def std(x, axis=None, keepdims=False):
    """Standard deviation, the root of `var` (ddof=0).  (...), axis -> (...) without the axes."""
    return unary.Sqrt.apply(reduction.Var.apply(x, axis, keepdims))


def matmul(a, b):
    """Matrix product.  (..., m, k), (..., k, n) -> (..., m, n)."""
    return linear.matmul(*variables("matmul", a, b))


def cumsum(x, axis=None):
    """Running sum along an axis, or of the flattened.  (...), axis -> (...)."""
    x = as_variable(x)
    return scan.Cumsum.apply(shape.reshape(x, (-1,)) if axis is None else x, axis or 0)


def power(a, b):
    """a to the power b; common exponents take the op made for them."""
    b = operand(b, "pow", (a,))
    if isinstance(b, (int, float)) and isinstance(a, Variable):
        quick = {2: unary.Square, 0.5: unary.Sqrt, -1: unary.Reciprocal, -0.5: unary.Rsqrt}.get(b)
        if quick is not None and (a.dtype.is_float or b == 2):
            return quick.apply(a)
    return binary.Pow.apply(a, b)


SPECIAL = {"gelu", "gelu_tanh", "leaky_relu", "elu", "clip", "pow", "cast", "max", "min"}
AXIS = {"sum", "mean", "prod", "max", "min", "any", "all", "var", "norm", "argmax", "argmin"}

functions = {}
for _name, _op in registry.items():
    if _name in AXIS:
        functions[_name] = _with_axis(_op)
    elif (
        issubclass(_op, (unary.Elementwise,))
        and _name not in SPECIAL
        and not _name.endswith("_row")
    ):
        functions[_name] = _simple(_op)
functions |= {
    f.__name__: f
    for f in (
        softmax, log_softmax, logsumexp, layer_norm, rms_norm, gelu, leaky_relu, elu, clip, std,
        matmul, cumsum, linear.linear,
        shape.reshape, shape.transpose, shape.permute, shape.expand, shape.squeeze,
        shape.unsqueeze, shape.flatten, *losses.functions,
        *gathering.functions, *joining.functions, *convolution.functions, *windows.functions,
        *contraction.functions, *comparison.functions, *normalisation.functions,
        *attention.functions,
    )
}  # fmt: skip
functions["pow"] = power
functions["minimum"], functions["maximum"] = map(_simple, (binary.Minimum, binary.Maximum))

FLOWS = dict(functions)  # what formulas and gradients may call by name
FLOWS |= {
    "sum_to": reduction.SumTo.apply,
    "expand_to": shape.Expand.apply,
    "move": devices.move,
    "reshape": shape.Reshape.apply,
    "permute": shape.Permute.apply,
    "expand": shape.Expand.apply,
    "sum": reduction.Sum.apply,
    "mean": reduction.Mean.apply,
    "row_sum": lambda x: reduction.Sum.apply(x, -1, True),
    "row_mean": lambda x: reduction.Mean.apply(x, -1, True),
    "row_max": lambda x: reduction.Max.apply(x.detach(), -1, True),
    "column_of": lambda x: constant(range(x.shape[-1]), near=x),
    "cast_float": lambda x: x,
}
for _name in functions.keys() - {"matmul", "linear"}:  # those two are called most
    functions[_name] = teaching(functions[_name])

METHODS = [
    "neg", "abs", "sign", "square", "sqrt", "rsqrt", "reciprocal", "exp", "expm1", "log", "log1p",
    "sin", "cos", "tanh", "sigmoid", "relu", "erf", "round", "floor", "ceil", "clip", "sum", "mean",
    "prod", "max", "min", "var", "std", "argmax", "argmin", "any", "all", "logsumexp", "cumsum",
    "norm", "reshape", "transpose", "permute", "expand", "squeeze", "unsqueeze", "flatten",
    "softmax", "log_softmax", "matmul", "pow",
]  # fmt: skip


def _install():
    Variable.bind = lambda self, name, args: FLOWS[name](*args)
    for name in METHODS:
        setattr(Variable, name, functions[name])
    slow = {
        "add": binary.Add, "sub": binary.Sub, "mul": binary.Mul, "truediv": binary.Div,
        "lt": binary.Less, "le": binary.LessEqual, "gt": binary.Greater,
        "ge": binary.GreaterEqual, "eq": binary.Equal, "ne": binary.NotEqual,
    }  # fmt: skip
    for method, op in slow.items():
        plain = operator(op)
        quick = op.gradient_formulas and op.result in ("promote", "real")
        setattr(Variable, f"__{method}__", make_binary(op) if quick else plain)
        setattr(InferenceVariable, f"__{method}__", plain)
        if method in ("add", "sub", "mul", "truediv"):
            setattr(Variable, f"__r{method}__", operator(op, is_reflected=True))
    for method, sign, op in (("and", "&", binary.LogicalAnd), ("or", "|", binary.LogicalOr)):
        setattr(Variable, f"__{method}__", logical_operator(op, sign))
        setattr(Variable, f"__r{method}__", logical_operator(op, sign, is_reflected=True))
    for name in ("exp", "log", "tanh", "sigmoid", "relu", "sqrt", "square", "sin", "cos", "neg"):
        quick = functions[name] = FLOWS[name] = make_unary(registry[name])
        setattr(Variable, name, quick)
        if name == "neg":
            Variable.__neg__ = quick
    Variable.__hash__ = object.__hash__
    Variable.__pow__ = power
    Variable.__rpow__ = lambda self, other: binary.Pow.apply(other, self)
    Variable.__abs__ = functions["abs"]
    Variable.__invert__ = logical_operator(unary.LogicalNot, "~")
    Variable.__matmul__ = matmul
    Variable.__rmatmul__ = lambda self, other: matmul(other, self)
    Variable.__getitem__ = indexing.get_item
    Variable.__setitem__ = indexing.set_item
    Variable.__iter__ = indexing.rows_of_axis_0
    FUNCTIONS.update(functions)
    Variable.clone = lambda self: shape.Clone.apply(self)
    Variable.to = teaching(devices.to)
    Variable.backward = teaching(Variable.backward)
    Variable.T = property(shape.transpose, doc="The axes in reverse order, a view.")
    inplace.install(Variable)


_install()
