"""Maps op classes to their public names: Variable's operators and methods, and `mg.<op>`.

`functions` has the functions of `mg`. `FLOWS` has those that formulas and gradients call by name.
`METHODS` names those that are also methods of Variables. `_install` makes the operators. Most
functions are made from their class. A function that takes its arguments in another way, such as
`softmax` or `std`, is written here and composed of operations.
"""

import math

from minigrad.arguments import choice, flag, number, whole
from minigrad.array.layout import normalize_axes, normalize_axis, size_of
from minigrad.errors import ArgumentError, ArgumentTypeError, ShapeError
from minigrad.hints import teaching
from minigrad.ops import (
    activations,
    angles,
    attention,
    binary,
    comparison,
    contraction,
    convolution,
    devices,
    division,
    gathering,
    indexing,
    inplace,
    joining,
    linalg,
    linear,
    losses,
    normalisation,
    reduction,
    rows,
    scan,
    shape,
    sorting,
    unary,
    windows,
)
from minigrad.ops.base import Elementwise, registry
from minigrad.ops.fast import fast_path
from minigrad.ops.names import remembered
from minigrad.ops.operands import as_variable, constant, operand, variables
from minigrad.ops.operators import (
    called_as,
    function_of,
    is_operand,
    logical_operator,
    operator,
    refused_operator,
)
from minigrad.tape import backward
from minigrad.tape.interop import FUNCTIONS
from minigrad.tape.variable import Variable

_ = angles, binary, linalg, unary, backward  # importing fills the registry and completes Variable


def _plain_axis(axis):
    """Returns a user's axis; a tuple with other than ints becomes a list.

    A look-up would find the route of (0, 1) for (0, 1.0), which is equal but invalid.
    """
    is_plain = type(axis) is not tuple or all(type(a) is int for a in axis)
    return axis if is_plain else list(axis)


def _with_axis(op, is_named=False):
    """The public function; is_named: by name only, as a second argument differs in PyTorch."""

    def function(x, axis=None, keepdims=False):
        keepdims = flag(op.name, "keepdims", keepdims, _ONE_TUPLE)
        return op.apply(x, _plain_axis(axis), keepdims)

    def by_name(x, *, axis=None, keepdims=False):
        return function(x, axis, keepdims)

    return called_as(op, by_name if is_named else function)


_ONE_TUPLE = "several axes are one tuple: axis=(1, 2)"


def last_axis(op, x, axis, *others):
    """Runs a row op along any axis."""
    if x.ndim or axis != -1:
        axis = normalize_axis(op.name.removesuffix("_row"), axis, x.ndim or 1)
    if not x.ndim:
        return shape.reshape(op.apply(shape.reshape(x, (1,)), *others), ())
    if axis == x.ndim - 1:
        return op.apply(x, *others)
    order = [d for d in range(x.ndim) if d != axis] + [axis]
    y = op.apply(shape.permute(x, order), *others)
    return shape.permute(y, [order.index(d) for d in range(x.ndim)])


def softmax(x, axis=-1):
    """exp(x) / sum exp(x) along an axis, without overflow.  (..., n, ...) -> (..., n, ...)."""
    return last_axis(rows.SoftmaxRow, as_variable(x, "softmax"), axis)


def log_softmax(x, axis=-1):
    """x - log sum exp(x) along an axis.  (..., n, ...) -> (..., n, ...)."""
    return last_axis(rows.LogSoftmaxRow, as_variable(x, "log_softmax"), axis)


def logsumexp(x, axis=None, keepdims=False):
    """log sum exp(x) over axes, without overflow.  (...), axis -> (...) without the axes."""
    x, keepdims = as_variable(x, "logsumexp"), flag("logsumexp", "keepdims", keepdims, _ONE_TUPLE)
    axes = normalize_axes("logsumexp", axis, x.ndim)
    kept = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    rest = [d for d in range(x.ndim) if d not in axes]
    if tuple(range(len(rest), x.ndim)) != axes:
        x = shape.permute(x, (*rest, *axes))
    if len(axes) != 1:
        x = shape.reshape(x, (*x.shape[: len(rest)], size_of(x.shape[len(rest) :])))
    y = rows.LogSumExpRow.apply(x)
    return shape.reshape(y, kept if keepdims else y.shape[:-1])


def layer_norm(x, weight, bias, eps=1e-5):
    """Normalises along the last axis, then scales and shifts.  (..., n), (n,), (n,) -> (..., n)."""
    x = as_variable(x, "layer_norm")
    weight, bias = _of_features("layer_norm", x, weight=weight, bias=bias)
    eps = number("layer_norm", "eps", eps, 0.0)
    return rows.LayerNormRow.apply(x, weight, bias, eps)


def rms_norm(x, weight, eps=1e-5):
    """Divides by the root mean square of the last axis and scales.  (..., n), (n,) -> (..., n)."""
    x = as_variable(x, "rms_norm")
    (weight,) = _of_features("rms_norm", x, weight=weight)
    return rows.RmsNormRow.apply(x, weight, number("rms_norm", "eps", eps, 0.0))


def _of_features(name, x, **given):
    """Returns scale and shift as Variables, after checking that they have x's last size.

    A normalized_shape, as PyTorch takes it here, would scale by the number of features.
    """
    found = []
    for what, value in given.items():
        value = value if isinstance(value, Variable) else constant(value, name, x)
        if not x.ndim or value.shape != x.shape[-1:]:
            raise ShapeError(
                f"{name}: wanted {what} of one element per feature of x {x.shape}",
                f"{value.shape}",
                f"mg.{name}(x, {', '.join(given)}): there is no normalized_shape, the last axis is "
                "normalised",
            )
        found.append(value)
    return found


def gelu(x, approximate=None):
    """x Phi(x); approximate='tanh' uses the tanh formula.  (...) -> (...)."""
    choice("gelu", "approximate", approximate, (None, "none", "tanh"))
    return (activations.GeluTanh if approximate == "tanh" else activations.Gelu).apply(x)


def leaky_relu(x, slope=0.01):
    """x above 0, slope * x below.  (...) -> (...)."""
    return activations.LeakyRelu.apply(x, number("leaky_relu", "slope", slope))


def elu(x, alpha=1.0):
    """x above 0, alpha (e^x - 1) below.  (...) -> (...)."""
    return activations.Elu.apply(x, number("elu", "alpha", alpha))


def clip(x, low=None, high=None):
    """x limited to [low, high]; None means no limit on that side.  (...) -> (...).

    Bounds may be Variables, which broadcast. A bound gets the gradient where it is the result.
    """
    x = as_variable(x, "clip")
    low, high = (v if v is None else operand(v, "clip", (x,)) for v in (low, high))
    if low is None and high is None:
        raise ArgumentError("clip: wanted low, high or both")
    bounds = [v for v in (low, high) if isinstance(v, Variable)]
    if (low is None or high is None) and not any(v.dtype.is_float for v in (x, *bounds)):
        # Integers have no infinity.
        return binary.Maximum.apply(x, low) if high is None else binary.Minimum.apply(x, high)
    return binary.Clip.apply(
        x, -math.inf if low is None else low, math.inf if high is None else high
    )


def var(x, axis=None, *, ddof=None, correction=None, keepdims=False):
    """Sum of squared deviations from the mean, divided by n - ddof.  (...), axis -> (...).

    ddof is required: NumPy's default is 0, PyTorch's 1. `correction` is another name for it.

    >>> import minigrad as mg
    >>> x = mg.variable([1.0, 3.0])
    >>> mg.var(x, ddof=0).item(), mg.var(x, ddof=1).item()
    (1.0, 2.0)
    """
    return _variance("var", x, axis, ddof, correction, keepdims)


def std(x, axis=None, *, ddof=None, correction=None, keepdims=False):
    """Standard deviation, the root of `var`, with the same arguments.  (...), axis -> (...).

    The gradients of equal values, whose deviation is 0, are 0.
    """
    return unary.RootOfSquares.apply(_variance("std", x, axis, ddof, correction, keepdims))


def _variance(name, x, axis, ddof, correction, keepdims):
    x, keepdims = as_variable(x, name), flag(name, "keepdims", keepdims, _ONE_TUPLE)
    if (ddof is None) == (correction is None):
        raise ArgumentError(
            f"{name}: wanted ddof, as NumPy divides by n without it, and PyTorch by n - 1",
            "neither" if ddof is None else "ddof and correction, which are the same",
            f"x.{name}(ddof=0) divides by n, x.{name}(ddof=1) by n - 1",
        )
    given, ddof = ("ddof", ddof) if correction is None else ("correction", correction)
    ddof = whole(name, given, ddof, 0)
    y = reduction.Var.apply(x, _plain_axis(axis), keepdims)
    if not ddof:
        return y
    count = x.size // max(1, y.size)
    if count <= ddof:
        raise ShapeError(
            f"{name}: wanted more than {ddof} elements along the axes, as {given}={ddof} divides "
            f"by n - {ddof}",
            f"{count}, of shape {x.shape}",
        )
    return y * (count / (count - ddof))


def matmul(a, b):
    """Matrix product.  (..., m, k), (..., k, n) -> (..., m, n)."""
    return linear.matmul(*variables("matmul", a, b))


def _product(a, b):
    """a @ b. A foreign type with __rmatmul__ decides first; other types raise an error."""
    is_foreign = not is_operand(b) and hasattr(type(b), "__rmatmul__")
    return NotImplemented if is_foreign else functions["matmul"](a, b)


def cumsum(x, axis=None):
    """Running sum along an axis, or of flattened x.  (...), axis -> (...)."""
    x = as_variable(x, "cumsum")
    if axis is None:
        return scan.Cumsum.apply(shape.reshape(x, (-1,)), 0)
    return scan.Cumsum.apply(x, axis)


NUMBERS = {int, float}
COMMON_POWERS = {2: unary.Square, 0.5: unary.Sqrt, -1: unary.Reciprocal, -0.5: unary.Rsqrt}


def power(a, b):
    """a to the power b; common exponents use special ops.  (...), (...) -> (...)."""
    if type(b) not in NUMBERS:
        b = operand(b, "pow", (a,))
    quick = COMMON_POWERS.get(b) if type(b) in NUMBERS else None
    if quick is not None and isinstance(a, Variable) and (a.array.dtype.is_float or b == 2):
        return quick.apply(a)
    return binary.Pow.apply(a, b)


SPECIAL = {
    "gelu", "gelu_tanh", "leaky_relu", "elu", "clip", "pow", "cast", "max", "min",
}  # fmt: skip
AXIS = {"sum", "mean", "prod", "max", "min", "any", "all", "var", "norm", "argmax", "argmin"}
NAMED_AXIS = {"max", "min", "norm"}
REMEMBERED = (  # whose results depend on layouts and other arguments alone, and who only make these
    *AXIS, "softmax", "log_softmax", "logsumexp", "layer_norm", "rms_norm", "gelu", "leaky_relu",
    "elu", "clip", "std", "matmul", "linear", "cumsum", "cumprod", "reshape", "permute", "expand",
    "transpose", "squeeze", "unsqueeze", "flatten", "mse", "bce_with_logits", "huber",
    "normalize", "outer", "diagonal", "masked_fill", "roll", "flip", "repeat", "pow",
)  # fmt: skip

functions = {}
for _name, _op in registry.items():
    if _name in AXIS:
        functions[_name] = _with_axis(_op)
    elif issubclass(_op, Elementwise) and _name not in SPECIAL and not _name.endswith("_row"):
        functions[_name] = function_of(_op)
functions |= {
    f.__name__: f
    for f in (
        softmax, log_softmax, logsumexp, layer_norm, rms_norm, gelu, leaky_relu, elu, clip, std,
        matmul, cumsum, scan.cumprod, linear.linear,
        shape.reshape, shape.transpose, shape.permute, shape.expand, shape.squeeze,
        shape.unsqueeze, shape.flatten, *losses.functions,
        *gathering.functions, *joining.functions, *convolution.functions, *windows.functions,
        *contraction.functions, *comparison.functions, *normalisation.functions,
        *attention.functions, *sorting.functions,
    )
}  # fmt: skip
functions["pow"] = power
functions["minimum"], functions["maximum"] = map(function_of, (binary.Minimum, binary.Maximum))

FLOWS = dict(functions)  # functions that formulas and gradients may call by name
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
functions["var"] = var
functions |= {name: _with_axis(registry[name], is_named=True) for name in NAMED_AXIS}
for _name, _function in functions.items():
    if getattr(_function, "__wrapped__", None) is None:  # fast.py has wrapped the others
        functions[_name] = teaching(_function)
for _name in REMEMBERED:
    functions[_name] = remembered(functions[_name])
for _name in ("stack", "concatenate"):
    functions[_name] = remembered(functions[_name], "xs")

METHODS = [
    "neg", "abs", "sign", "square", "sqrt", "rsqrt", "reciprocal", "exp", "expm1", "log", "log1p",
    "log2", "sin", "cos", "tan", "tanh", "sigmoid", "relu", "erf", "round", "floor", "ceil", "clip",
    "sum", "mean", "prod", "max", "min", "var", "std", "argmax", "argmin", "any", "all",
    "logsumexp", "cumsum", "cumprod", "norm", "reshape", "transpose", "permute", "expand",
    "squeeze", "unsqueeze", "flatten", "softmax", "log_softmax", "matmul", "pow", "argsort", "topk",
    "roll", "masked_fill", "isnan", "isinf", "isfinite",
]  # fmt: skip


def clone(self):
    """Returns the same values in a new Storage, as part of the graph.

    (...) -> (...), of the same dtype. The first write to either copies the memory.
    """
    return shape.Clone.apply(self)


def _rounded(self, digits=None):
    if digits is None:
        return functions["round"](self)
    raise ArgumentTypeError(
        "round: wanted round(x), to whole numbers",
        f"round(x, {digits!r:.20})",
        "mg.round(x * 100) / 100 for two digits",
    )


def _install():
    Variable.bind = lambda self, name, args: FLOWS[name](*args)
    for name in METHODS:
        setattr(Variable, name, functions[name])
    operators = {
        "add": binary.Add, "sub": binary.Sub, "mul": binary.Mul, "truediv": binary.Div,
        "floordiv": division.FloorDivide, "mod": division.Remainder,
        "lt": comparison.Less, "le": comparison.LessEqual, "gt": comparison.Greater,
        "ge": comparison.GreaterEqual, "eq": comparison.Equal, "ne": comparison.NotEqual,
    }  # fmt: skip
    for method, op in operators.items():
        setattr(Variable, f"__{method}__", operator(op))
        if method in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
            setattr(Variable, f"__r{method}__", operator(op, is_reflected=True))
    logic = {
        "and": ("&", comparison.LogicalAnd, "mg.logical_and, where a number counts as x != 0"),
        "or": ("|", comparison.LogicalOr, "mg.logical_or, where a number counts as x != 0"),
        "xor": ("^", comparison.NotEqual, "a ** b for a power"),
    }
    for method, (sign, op, other) in logic.items():
        fix = f"compare first, (a > 0) {sign} (b > 0), or {other}"
        setattr(Variable, f"__{method}__", logical_operator(op, sign, fix))
        setattr(Variable, f"__r{method}__", logical_operator(op, sign, fix, is_reflected=True))
    for method, sign, form in (("lshift", "<<", "a * 2**n"), ("rshift", ">>", "a // 2**n")):
        refused = refused_operator(f"{sign}: there are no operations on bits", f"{form} of ints")
        setattr(Variable, f"__{method}__", refused)
        setattr(Variable, f"__r{method}__", refused)
    Variable.__neg__ = operator(unary.Neg)
    Variable.__hash__ = object.__hash__
    Variable.__pow__ = teaching(power)
    Variable.__rpow__ = lambda self, other: binary.Pow.apply(other, self)
    Variable.__abs__ = functions["abs"]
    Variable.__pos__ = lambda self: clone(self) if self.dtype.kind != "b" else self.to("int64")
    Variable.__divmod__ = lambda self, other: (self // other, self % other)
    Variable.__rdivmod__ = lambda self, other: (other // self, other % self)
    fix = "compare first: ~(a > 0), or mg.logical_not(a)"
    Variable.__invert__ = logical_operator(comparison.LogicalNot, "~", fix)
    Variable.__round__ = _rounded
    product = linear.Matmul
    Variable.__matmul__ = called_as(product, fast_path(product, _product))
    Variable.__rmatmul__ = called_as(product, fast_path(product, matmul, "reflected"))
    Variable.__getitem__ = indexing.get_item
    Variable.__setitem__ = indexing.set_item
    Variable.__iter__ = indexing.rows_of_axis_0
    FUNCTIONS.update(functions)
    Variable.clone = teaching(clone)
    for name in ("item", "tolist", "numpy", "detach"):
        setattr(Variable, name, teaching(getattr(Variable, name)))
    Variable.to = teaching(devices.to)
    Variable.backward = teaching(Variable.backward)
    Variable.T = property(shape.transpose, doc="The axes in reverse order, a view.")
    inplace.install(Variable)


_install()
