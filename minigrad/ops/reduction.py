"""Reductions along axes, with the names and rules of NumPy."""

from minigrad.array.dtypes import bool_, float32, float64, int64
from minigrad.array.layout import expand_strides, normalize_axes, size_of
from minigrad.devices.backend import device_of
from minigrad.errors import ShapeError
from minigrad.formulas import expression as e
from minigrad.formulas.expression import IDENTITY, Program, call, symbol, where
from minigrad.ops.base import Structural
from minigrad.ops.binary import Mul
from minigrad.ops.gradient_plan import sum_to

ONE_TUPLE = "several axes are one tuple: axis=(1, 2)"
SHAPES = [((3, 4),), ((2, 3, 4),), ((),), ((0, 3),), ((1,),)]
SQUARE = Program(["x"], [symbol("x") * symbol("x")])
DEVIATION = symbol("x") - symbol("m")
SQUARED_DEVIATION = Program(["x", "m"], [DEVIATION * DEVIATION])


def plain_axis(axis):
    """Returns a user's axis; a tuple with other than ints becomes a list.

    A look-up would find the route of (0, 1) for (0, 1.0), which is equal but invalid.
    """
    is_plain = type(axis) is not tuple or all(type(a) is int for a in axis)
    return axis if is_plain else list(axis)


def axes_and_shapes(name, shape, axis, keepdims):
    """Returns (axes, shape without them, shape of the result)."""
    axes = normalize_axes(name, axis, len(shape))
    without = tuple(n for d, n in enumerate(shape) if d not in axes)
    kept = tuple(1 if d in axes else n for d, n in enumerate(shape))
    return axes, without, kept if keepdims else without


def reduced(name, how, x, axis, keepdims, dtype, program=IDENTITY, others=()):
    """Reduces a formula of x over axes by `how`; returns a new Array."""
    axes, without, result = axes_and_shapes(name, x.shape, axis, keepdims)
    device = device_of(x)
    out = device.empty(without, dtype)
    device.reduce(program, how, (x, *others), out, x.shape, axes)
    return out if result == without else out.view(result, kept_strides(out, axes, len(x.shape)))


def kept_strides(out, axes, rank):
    """Returns the strides of out with a 0 inserted for each reduced axis."""
    steps = iter(out.strides)
    return tuple(0 if d in axes else next(steps) for d in range(rank))


def spread(dy, x_shape, axis, keepdims):
    """Expands the dy of a reduction to x's shape, a view."""
    if not keepdims and dy.ndim != len(x_shape):
        axes = normalize_axes("sum", axis, len(x_shape))
        dy = call("reshape", dy, tuple(1 if d in axes else n for d, n in enumerate(x_shape)))
    return call("expand", dy, x_shape)


def spread_array(dy, x_shape, axis, keepdims):
    """Does the same as `spread` for an Array."""
    strides = dy.strides
    if keepdims or len(dy.shape) == len(x_shape):
        return dy.view(x_shape, expand_strides(dy.shape, strides, x_shape))
    return dy.view(
        x_shape, kept_strides(dy, normalize_axes("sum", axis, len(x_shape)), len(x_shape))
    )


def count(name, shape, axis):
    """Returns the number of elements along the axes to reduce."""
    return size_of(shape[d] for d in normalize_axes(name, axis, len(shape)))


def not_empty(name, shape, axis):
    """Raises ShapeError if there is no element along the axes to reduce."""
    if not count(name, shape, axis):
        raise ShapeError(
            f"{name}: wanted at least one element along the axes to reduce", f"shape {shape}"
        )


def of_ints(op, x, axis, keepdims):
    """Reduces ints or bools in float64; returns float32.

    float32 would round each int before it is added, and squares of ints would overflow.
    """
    device = device_of(x)
    return device.convert(op.forward(device.convert(x, float64), axis, keepdims), float32)


class Sum(Structural):
    """Sum over axes; int64 for ints and bools.  (...), axis -> (...) without the axes."""

    samples = SHAPES

    def forward(x, axis=None, keepdims=False):
        dtype = x.dtype if x.dtype.is_float else int64
        return reduced("sum", "sum", x, axis, keepdims, dtype)

    gradients = (spread,)
    array_gradients = (spread_array,)


class Mean(Structural):
    """Arithmetic mean over axes; NaN over no elements.  (...), axis -> (...) without the axes."""

    samples = SHAPES

    def forward(x, axis=None, keepdims=False):
        if not x.dtype.is_float:
            return of_ints(Mean, x, axis, keepdims)
        return reduced("mean", "mean", x, axis, keepdims, x.dtype)

    gradients = (
        lambda dy, x_shape, axis, keepdims: spread(
            dy * (1.0 / max(1, count("mean", x_shape, axis))), x_shape, axis, keepdims
        ),
    )
    array_gradients = (
        lambda dy, x_shape, axis, keepdims: spread_array(
            Mul.forward(dy, 1.0 / max(1, count("mean", x_shape, axis))), x_shape, axis, keepdims
        ),
    )


class SumTo(Structural):
    """Sum to a shape that broadcasts to x's.  (...), shape -> shape.  The adjoint of `expand`."""

    samples = [((3, 4), (4,)), ((2, 3), (2, 1)), ((3,), ())]

    def forward(x, shape):
        return sum_to(x, shape)

    gradients = (lambda dy, x_shape: call("expand", dy, x_shape),)
    array_gradients = (lambda dy, x_shape: spread_array(dy, x_shape, (), True),)


def among_ties(dy, x, y, x_shape, axis, keepdims):
    """Divides dy among the elements that equal y, or among the NaN elements if y is NaN."""
    x, y = x.detach(), spread(y, x_shape, axis, keepdims).detach()
    mask = call("logical_or", call("equal", x, y), call("not_equal", x, x))
    ties = call("sum", mask, axis, keepdims).to(dy.dtype)
    return where(mask, spread(dy / ties, x_shape, axis, keepdims), 0.0)


class Max(Structural):
    """The largest value over axes, NaN if there is one.  (...), axis -> (...) without the axes.

    Ties share the gradient equally, and so do NaN. The sign of a result 0 is unspecified.
    """

    samples = [((3, 4),), ((2, 3, 4),), ((),), ((1,),)]

    def forward(x, axis=None, keepdims=False):
        not_empty("max", x.shape, axis)
        return reduced("max", "max", x, axis, keepdims, x.dtype)

    gradients = (among_ties,)


class Min(Structural):
    """The smallest value over axes, NaN if there is one.  (...), axis -> (...) without the axes.

    Ties share the gradient equally, and so do NaN. The sign of a result 0 is unspecified.
    """

    samples = [((3, 4),), ((2, 3, 4),), ((),), ((1,),)]

    def forward(x, axis=None, keepdims=False):
        not_empty("min", x.shape, axis)
        return reduced("min", "min", x, axis, keepdims, x.dtype)

    gradients = (among_ties,)


class Any(Structural):
    """Whether some element is not 0.  (...), axis -> (...) of bool."""

    samples = SHAPES
    gradients = None

    def forward(x, axis=None, keepdims=False):
        return reduced("any", "any", x, axis, keepdims, bool_)


class All(Structural):
    """Whether no element is 0.  (...), axis -> (...) of bool."""

    samples = SHAPES
    gradients = None

    def forward(x, axis=None, keepdims=False):
        return reduced("all", "all", x, axis, keepdims, bool_)


class Var(Structural):
    """Mean squared deviation from the mean (ddof=0).  (...), axis -> (...) without the axes."""

    samples = [((3, 4),), ((2, 3, 4),), ((1,),)]

    def forward(x, axis=None, keepdims=False):
        if not x.dtype.is_float:
            return of_ints(Var, x, axis, keepdims)
        mean = reduced("var", "mean", x, axis, True, x.dtype.arithmetic)
        return reduced("var", "mean", x, axis, keepdims, x.dtype, SQUARED_DEVIATION, (mean,))

    gradients = (
        lambda dy, x, x_shape, axis, keepdims: (
            spread(dy, x_shape, axis, keepdims)
            * ((x - call("mean", x, axis, True)) * (2.0 / max(1, count("var", x_shape, axis))))
        ),
    )


class Norm(Structural):
    """Euclidean norm over axes.  (...), axis -> (...) without the axes.

    The gradients at 0 are 0, to every order.
    """

    samples = [((3, 4),), ((2, 3, 4),), ((1,),)]

    def forward(x, axis=None, keepdims=False):
        if not x.dtype.is_float:
            return of_ints(Norm, x, axis, keepdims)
        squares = reduced("norm", "sum", x, axis, keepdims, x.dtype.arithmetic, SQUARE)
        device = device_of(x)
        out = device.empty(squares.shape, x.dtype)
        device.elementwise(ROOT, (squares,), (out,))
        return out

    gradients = (
        lambda dy, x, y, x_shape, axis, keepdims: (
            x * spread(_inverse(dy, y), x_shape, axis, keepdims)
        ),
    )


def _inverse(dy, y):
    """Returns dy / y, but 0 where y is 0, to every order."""
    is_zero = call("equal", y, 0.0)
    return where(is_zero, 0.0, dy / where(is_zero, 1.0, y))


ROOT = Program(["x"], [e.sqrt(symbol("x"))])
