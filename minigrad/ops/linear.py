"""Matrix products."""

import functools

from minigrad.array.dtypes import int64, promote
from minigrad.array.layout import broadcast_shapes, contiguous_strides, size_of
from minigrad.devices.backend import device_of
from minigrad.errors import DTypeError, ShapeError
from minigrad.formulas.expression import IDENTITY, call
from minigrad.ops.base import Structural
from minigrad.ops.operands import variables
from minigrad.ops.shape import swap_last
from minigrad.seams import seams


def check_pair(name, a, b):
    """Raises if float dtypes differ, because unnoticed float64 makes training slow."""
    if a.dtype is not b.dtype and a.dtype.is_float and b.dtype.is_float:
        wide = promote(a.dtype, b.dtype) not in (a.dtype, b.dtype)  # neither half has the other's
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
    """Computes a @ b of Arrays with at least two axes, in `out` or a new Array."""
    shape = product_shape(a.shape, b.shape)
    dtype = a.dtype
    if dtype is not b.dtype or not dtype.is_float:
        check_pair("matmul", a, b)
        dtype = promote(dtype, b.dtype)
        dtype = int64 if dtype.kind == "b" else dtype
    if seams.kernel:
        replaced = seams.kernel("matmul", (a, b), out)
        if replaced is not None:
            return replaced
    device = device_of(a)
    if out is None or out.shape != shape:
        out = device.empty(shape, dtype)
    device.matmul(a, b, out)
    return out


@functools.lru_cache(4096)
def product_shape(a, b):
    """Returns the shape of a @ b. a, b: the shapes of operands with at least two axes."""
    if a[-1] != b[-2]:
        raise ShapeError(
            "matmul: wanted (..., m, k) @ (..., k, n)",
            f"{a} @ {b}",
            f"the inner sizes {a[-1]} and {b[-2]} must be equal: transpose one?",
        )
    return (*broadcast_shapes("matmul", a[:-2], b[:-2]), a[-2], b[-1])


def swapped(x):
    """Exchanges the last two axes of an Array, a view."""
    shape, strides = x.shape, x.strides
    return x.view((*shape[:-2], shape[-1], shape[-2]), (*strides[:-2], strides[-1], strides[-2]))


class Matmul(Structural):
    """Matrix product, leading axes broadcast.  (..., m, k), (..., k, n) -> (..., m, n)."""

    samples = [((3, 4), (4, 2)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((0, 4), (4, 2))]

    def forward(a, b):
        return matmul_arrays(a, b)

    gradients = (
        lambda dy, b: Matmul.apply(dy, swap_last(b)),
        lambda dy, a: Matmul.apply(swap_last(a), dy),
    )
    array_gradients = (
        lambda dy, b, out=None: matmul_arrays(dy, swapped(b), out),
        lambda dy, a, out=None: matmul_arrays(swapped(a), dy, out),
    )


def matmul(a, b):
    """Matrix product.  (..., m, k), (..., k, n) -> (..., m, n)."""
    return _product(*variables("matmul", a, b))


def _product(a, b):
    """Multiplies matrices; NumPy's rules for one axis.  (..., m, k), (..., k, n) -> (..., m, n)."""
    if not a.ndim or not b.ndim:
        raise ShapeError("matmul: wanted at least one axis each", f"{a.shape} @ {b.shape}")
    if a.ndim > 1 and b.ndim > 1:
        return Matmul.apply(a, b)
    left = call("reshape", a, (1, *a.shape)) if a.ndim == 1 else a
    right = call("reshape", b, (*b.shape, 1)) if b.ndim == 1 else b
    if left.shape[-1] != right.shape[-2]:
        raise ShapeError("matmul: wanted equal inner sizes", f"{a.shape} @ {b.shape}")
    y = Matmul.apply(left, right)
    shape = (
        y.shape[:-2]
        + (() if a.ndim == 1 else y.shape[-2:-1])
        + (() if b.ndim == 1 else y.shape[-1:])
    )
    return call("reshape", y, shape)


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
        lambda dy, w: _product_like(dy, w),
        lambda dy, x, out=None: matmul_arrays(swapped(as_rows(dy)), as_rows(x), out),
        lambda dy, out=None: _column_sums(as_rows(dy), out),
    )


def rows_of(x):
    """Reshapes a Variable (..., n) to (rows, n)."""
    return x if x.ndim == 2 else call("reshape", x, (-1, x.shape[-1]))


def _product_like(dy, w):
    y = matmul_arrays(as_rows(dy), w)
    if len(dy.shape) == 2:
        return y
    shape = (*dy.shape[:-1], w.shape[1])
    return y.view(shape, contiguous_strides(shape))


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
    return _product(x, swap_last(w))
