"""Maps op classes to their public names: Variable's operators and methods, and `mg.<op>`.

`functions` has the functions of `mg`. `FLOWS` has those that formulas and gradients call by name.
`METHODS` names those that are also methods of Variables. `_install` makes the operators. Most
functions are made from their class. A function that takes its arguments in another way, such as
`softmax` or `std`, stands in the module of its kind, composed of operations.
"""

import math

from minigrad.arguments import flag
from minigrad.errors import ArgumentTypeError
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
    normalization,
    reduction,
    scan,
    shape,
    softmax,
    sorting,
    statistics,
    unary,
    windows,
)
from minigrad.ops.autocast import RULES, dispatched, entrances
from minigrad.ops.base import Elementwise, registry
from minigrad.ops.fast import fast_path
from minigrad.ops.names import remembered
from minigrad.ops.operands import constant
from minigrad.ops.operators import (
    called_as,
    function_of,
    is_operand,
    logical_operator,
    operator,
    refused_operator,
)
from minigrad.ops.reduction import ONE_TUPLE, plain_axis
from minigrad.tape import backward
from minigrad.tape.interop import FUNCTIONS
from minigrad.tape.variable import Variable

_ = angles, binary, linalg, unary, backward  # importing fills the registry and completes Variable


def _with_axis(op, is_named=False):
    """The public function; is_named: by name only, as a second argument differs in PyTorch."""

    def function(x, axis=None, keepdims=False):
        keepdims = flag(op.name, "keepdims", keepdims, ONE_TUPLE)
        return op.apply(x, plain_axis(axis), keepdims)

    def by_name(x, *, axis=None, keepdims=False):
        return function(x, axis, keepdims)

    return called_as(op, by_name if is_named else function)


def _product(a, b):
    """a @ b. A foreign type with __rmatmul__ decides first; other types raise an error."""
    is_foreign = not is_operand(b) and hasattr(type(b), "__rmatmul__")
    return NotImplemented if is_foreign else functions["matmul"](a, b)


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
    "cross_entropy", "pad", "tril", "triu", "embedding", "one_hot", "gather", "scatter_add",
    "index_add", "sort", "argsort", "topk",
)  # fmt: skip

INFINITE = -math.inf, math.inf
FREE = {  # {name of these: {argument: limits}}: numbers between them are for operations alone
    "leaky_relu": {"slope": INFINITE}, "elu": {"alpha": INFINITE}, "huber": {"delta": (0, 1e300)},
    "clip": {"low": INFINITE, "high": INFINITE}, "masked_fill": {"value": (-1e38, 1e38)},
}  # fmt: skip

functions = {}
for _name, _op in registry.items():
    if _name in AXIS:
        functions[_name] = _with_axis(_op)
    elif issubclass(_op, Elementwise) and _name not in SPECIAL and not _name.endswith("_row"):
        functions[_name] = function_of(_op)
functions |= {
    f.__name__: f
    for f in (
        binary.clip, statistics.std, linear.matmul, linear.linear, scan.cumsum, scan.cumprod,
        shape.reshape, shape.transpose, shape.permute, shape.expand, shape.squeeze,
        shape.unsqueeze, shape.flatten, softmax.softmax, softmax.log_softmax, softmax.logsumexp,
        *activations.functions, *losses.functions, *gathering.functions, *joining.functions,
        *convolution.functions, *windows.functions, *contraction.functions,
        *comparison.functions, *normalization.functions, *attention.functions,
        *sorting.functions,
    )
}  # fmt: skip
functions["pow"] = binary.power
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
functions["var"] = statistics.var
functions |= {name: _with_axis(registry[name], is_named=True) for name in NAMED_AXIS}
for _name, _function in functions.items():
    if getattr(_function, "__wrapped__", None) is None:  # fast.py has wrapped the others
        functions[_name] = teaching(_function)
        if _name in RULES or _name in REMEMBERED:
            functions[_name] = dispatched(_name, functions[_name])
for _name in REMEMBERED:
    functions[_name] = remembered(functions[_name], free=FREE.get(_name))
for _name in ("stack", "concatenate"):
    functions[_name] = remembered(functions[_name], "xs")
entrances |= functions

METHODS = [
    "neg", "abs", "sign", "square", "sqrt", "rsqrt", "reciprocal", "exp", "expm1", "log", "log1p",
    "log2", "sin", "cos", "tan", "tanh", "sigmoid", "relu", "erf", "round", "floor", "ceil", "clip",
    "sum", "mean", "prod", "max", "min", "var", "std", "argmax", "argmin", "any", "all",
    "logsumexp", "cumsum", "cumprod", "norm", "reshape", "transpose", "permute", "expand",
    "squeeze", "unsqueeze", "flatten", "softmax", "log_softmax", "matmul", "pow", "argsort", "topk",
    "roll", "masked_fill", "isnan", "isinf", "isfinite",
]  # fmt: skip


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
    Variable.__pow__ = dispatched("pow", teaching(binary.power))
    Variable.__rpow__ = lambda self, other: functions["pow"](other, self)
    Variable.__abs__ = functions["abs"]
    Variable.__pos__ = lambda self: (
        shape.clone(self) if self.dtype.kind != "b" else self.to("int64")
    )
    Variable.__divmod__ = lambda self, other: (self // other, self % other)
    Variable.__rdivmod__ = lambda self, other: (other // self, other % self)
    fix = "compare first: ~(a > 0), or mg.logical_not(a)"
    Variable.__invert__ = logical_operator(comparison.LogicalNot, "~", fix)
    Variable.__round__ = _rounded
    product = linear.Matmul
    Variable.__matmul__ = called_as(product, fast_path(product, _product))
    Variable.__rmatmul__ = called_as(product, fast_path(product, functions["matmul"], "reflected"))
    Variable.__getitem__ = indexing.get_item
    Variable.__setitem__ = indexing.assign
    Variable.__iter__ = indexing.rows_of_axis_0
    FUNCTIONS.update(functions)
    Variable.clone = teaching(shape.clone)
    for name in ("item", "tolist", "numpy", "detach"):
        setattr(Variable, name, teaching(getattr(Variable, name)))
    Variable.to = teaching(devices.to)
    Variable.backward = teaching(Variable.backward)
    Variable.T = property(
        functions["transpose"], shape.keep_transposed, doc="The axes in reverse order, a view."
    )
    inplace.install(Variable)


_install()
