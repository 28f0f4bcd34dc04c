"""Matrix products."""

import functools

from minigrad.array.dtypes import int64, promote
from minigrad.array.layout import broadcast_shapes, size_of
from minigrad.devices.backend import device_of
from minigrad.errors import DTypeError, ShapeError
from minigrad.formulas.expression import IDENTITY, call
from minigrad.ops.base import Structural
from minigrad.ops.gradient_plan import reshaped
from minigrad.ops.operands import variables
from minigrad.ops.shape import Reshape, swap_last
from minigrad.seams import seams


def check_pair(name, a, b):
    """Raises if float dtypes differ, because unnoticed float64 makes training slow."""
    if a.dtype is not b.dtype and a.dtype.is_float and b.dtype.is_float:
        wide = promote(a.dtype, b.dtype) not in (a.dtype, b.dtype)  # as of float16 and bfloat16
        raise DTypeError(
            f"{name}: wanted one floating point dtype",
            f"{a.dtype} and {b.dtype}",
            f"convert both, x.to('float32'), or one to the other's dtype, x.to('{b.dtype}')"
            if wide
            else "convert one: x.to('float32')",
        )
    if a.dtype.is_float != b.dtype.is_float:
        raise DTypeError(
            f"{name}: wanted two float operands or two integer ones",
            f"{a.dtype} and {b.dtype}",
            "convert one: x.to('float32')",
        )


def matmul_arrays(a, b, out=None):
    """Computes a @ b of Arrays, in `out` or a new Array."""
    shape = product_shape(a.shape, b.shape)
    dtype = a.dtype
    if dtype is not b.dtype or not dtype.is_float:
        check_pair("matmul", a, b)
        dtype = promote(dtype, b.dtype)
        dtype = int64 if dtype.kind == "b" else dtype
    left, right = as_matrix(a, True), as_matrix(b, False)
    if seams.kernel:
        replaced = seams.kernel("matmul", (left, right), out)
        if replaced is not None:
            return replaced if replaced.shape == shape else reshaped(replaced, shape)
    device = device_of(a)
    if out is None or out.shape != shape:
        out = device.empty(shape, dtype)
    device.matmul(left, right, widened(out, a.shape, b.shape))
    return out


@functools.lru_cache(4096)
def product_shape(a, b):
    """Returns the shape of a @ b. a, b: the shapes of the operands."""
    if not a or not b:
        raise ShapeError("matmul: wanted at least one axis each", f"{a} @ {b}")
    if a[-1] != b[-2:][0]:  # k of (..., k, n), or of a vector (k,)
        raise ShapeError(
            "matmul: wanted (..., m, k) @ (..., k, n)",
            f"{a} @ {b}",
            f"the inner sizes {a[-1]} and {b[-2:][0]} must be equal: transpose one?",
        )
    return (*broadcast_shapes("matmul", a[:-2], b[:-2]), *a[-2:-1], *b[1:][-1:])


def as_matrix(x, is_left):
    """Gives a vector a second axis: a row on the left of a product, a column on the right."""
    shape = x.shape
    return x if len(shape) > 1 else Reshape.apply(x, (1, *shape) if is_left else (*shape, 1))


def widened(y, a, b):
    """Adds back the axes that a product lost because an operand (of shape a or b) is a vector."""
    if len(a) > 1 and len(b) > 1:
        return y
    shape = y.shape if len(b) > 1 else (*y.shape, 1)
    return Reshape.apply(y, shape if len(a) > 1 else (*shape[:-1], 1, shape[-1]))


def swapped(x):
    """Returns a view of an Array with its last two axes exchanged."""
    shape, strides = x.shape, x.strides
    return x.view((*shape[:-2], shape[-1], shape[-2]), (*strides[:-2], strides[-1], strides[-2]))


def _to_left(product, swap, dy, b, a_shape, *out):  # the gradient of the left operand
    return product(widened(dy, a_shape, b.shape), swap(as_matrix(b, False)), *out)


def _to_right(product, swap, dy, a, b_shape, *out):  # the gradient of the right operand
    g = product(swap(as_matrix(a, True)), widened(dy, a.shape, b_shape), *out)
    return g if len(b_shape) > 1 else Reshape.apply(g, g.shape[:-1])


class Matmul(Structural):
    """Matrix product, leading axes broadcast.  (..., m, k), (..., k, n) -> (..., m, n).

    An operand with one axis is a row on the left, a column on the right; that axis is dropped.
    """

    samples = [
        ((3, 4), (4, 2)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((0, 4), (4, 2)),
        ((4,), (4,)), ((0, 4), (4,)), ((4,), (4, 2)), ((2, 3, 4), (4,)), ((4,), (2, 4, 3)),
    ]  # fmt: skip

    def forward(a, b):
        return matmul_arrays(a, b)

    gradients = (
        lambda dy, b, a_shape: _to_left(Matmul.apply, swap_last, dy, b, a_shape),
        lambda dy, a, b_shape: _to_right(Matmul.apply, swap_last, dy, a, b_shape),
    )
    array_gradients = (
        lambda dy, b, a_shape, out=None: _to_left(matmul_arrays, swapped, dy, b, a_shape, out),
        lambda dy, a, b_shape, out=None: _to_right(matmul_arrays, swapped, dy, a, b_shape, out),
    )


def matmul(a, b):
    """Matrix product; NumPy's rules for one axis.  (..., m, k), (..., k, n) -> (..., m, n)."""
    return Matmul.apply(*variables("matmul", a, b))


def as_rows(x):
    """Reshapes an Array (..., n) to (rows, n), a view if possible."""
    if len(x.shape) == 2:
        return x
    x = device_of(x).contiguous(x)
    n = x.shape[-1]
    return x.view((size_of(x.shape[:-1]), n), (n, 1))


class Linear(Structural):
    """x w^T + b.  (..., k), (n, k), (n,) -> (..., n).

    It saves w only if x needs a gradient, and x only if w needs one.
    """

    samples = [((3, 4), (2, 4), (2,)), ((2, 3, 4), (5, 4), (5,)), ((4,), (2, 4), (2,))]

    def forward(x, w, b):
        if len(w.shape) != 2 or x.shape[-1:] != w.shape[1:] or b.shape != w.shape[:1]:
            raise ShapeError(
                "linear: wanted x (..., k), w (n, k) and b (n,)",
                f"{x.shape}, {w.shape} and {b.shape}",
            )
        check_pair("linear", x, w)
        check_pair("linear", x, b)
        device = device_of(x)
        dtype = x.dtype
        if not dtype.is_float:
            dtype = promote(promote(dtype, w.dtype), b.dtype)
            dtype = int64 if dtype.kind == "b" else dtype
        out = device.empty((*x.shape[:-1], w.shape[0]), dtype)
        rows = as_rows(x)
        flat = out if len(out.shape) == 2 else as_rows(out)
        device.matmul(rows, swapped(w), flat, device.contiguous(b))
        return out

    gradients = (
        lambda dy, w: Matmul.apply(rows_of(dy), w).reshape((*dy.shape[:-1], w.shape[1])),
        lambda dy, x: Matmul.apply(swap_last(rows_of(dy)), rows_of(x)),
        lambda dy: call("sum_to", dy, dy.shape[-1:]),
    )
    array_gradients = (
        lambda dy, w: reshaped(matmul_arrays(as_rows(dy), w), (*dy.shape[:-1], w.shape[1])),
        lambda dy, x, out=None: matmul_arrays(swapped(as_rows(dy)), as_rows(x), out),
        lambda dy, out=None: _column_sums(as_rows(dy), out),
    )


def rows_of(x):
    """Reshapes a Variable (..., n) to (rows, n)."""
    return x if x.ndim == 2 else call("reshape", x, (-1, x.shape[-1]))


def _column_sums(dy, out=None):
    device = device_of(dy)
    if out is None:
        out = device.empty(dy.shape[1:], dy.dtype)
    device.reduce(IDENTITY, "sum", (dy,), out, dy.shape, (0,))
    return out


def linear(x, w, b=None):
    """Computes x w^T, plus b if given.  (..., k), (n, k), (n,) -> (..., n)."""
    if b is not None:
        return Linear.apply(x, w, b)
    x, w = variables("linear", x, w)
    if w.ndim != 2 or x.shape[-1:] != w.shape[1:]:
        raise ShapeError("linear: wanted x (..., k) and w (n, k)", f"{x.shape} and {w.shape}")
    return Matmul.apply(x, swap_last(w))
