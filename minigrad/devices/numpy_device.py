"""Implements the device `numpy`: the device table by NumPy's own functions.

It compiles nothing and states briefly what each function of the table means: tests compare other
devices with it.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from minigrad.array.array import Array, ndarray
from minigrad.array.dtypes import DTYPES, int64, real_of
from minigrad.devices import backend, narrow
from minigrad.devices.host import HostMemory
from minigrad.devices.loader import source
from minigrad.devices.own_pool import OwnPool
from minigrad.formulas.expression import Program
from minigrad.formulas.ufuncs import as_stored, quiet, reduced, values_of, wide
from minigrad.formulas.update import STEPS


def sine_in_quarter(n, r):
    """Return sin(n pi/2 + r) in float64."""
    return np.sin(n * (np.pi / 2) + r)


# The functions for random numbers of every device: NumPy's types convert arrays as well.
BLOCKS = {
    "exact_jit": lambda function: function, "math": np, "log_f4": np.log, "log_f8": np.log,
    "sine_in_quarter_f4": sine_in_quarter, "sine_in_quarter_f8": sine_in_quarter,
    "U4": np.uint32, "U8": np.uint64, **{d.text: d.storage for d in DTYPES},
}  # fmt: skip
exec(source("random_functions"), BLOCKS)


@quiet
def write(outputs, values):
    """Store values in Arrays; convert all first, since values may be views of an output."""
    stored = [as_stored(v, out.dtype) for v, out in zip(values, outputs, strict=True)]
    for out, value in zip(outputs, stored, strict=True):
        ndarray(out)[...] = value


def windows_of(x, window, border=0.0):
    """Return padded images, and their windows as a view.  (n, c, h, w) -> (n, c, kh, kw, oh, ow).

    border: the elements around an image.
    """
    (ph, pw), (sh, sw), (dh, dw) = window.padding, window.stride, window.dilation
    x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)), constant_values=border)
    sizes = [(k - 1) * d + 1 for k, d in zip(window.kernel, window.dilation, strict=True)]
    views = sliding_window_view(x, sizes, (2, 3), writeable=True)
    return x, views[:, :, ::sh, ::sw, ::dh, ::dw].transpose(0, 1, 4, 5, 2, 3)


@narrow.computes_wide
class Numpy(HostMemory, OwnPool):
    """The device table (see `table.Device`) by NumPy, over memory of the host."""

    name, has_kernels = "numpy", False

    def _values(self, program, inputs, outputs, shape):
        real = program.real or real_of(x.dtype for x in (*inputs, *outputs) if isinstance(x, Array))
        operands = [x.dtype.numbers(ndarray(x)) if isinstance(x, Array) else x for x in inputs]
        return values_of(program, operands, shape, real.numpy)

    def elementwise(self, program, inputs, outputs):
        write(outputs, self._values(program, inputs, outputs, outputs[0].shape))

    @quiet
    def reduce(self, program, how, inputs, out, shape, axes):
        whole = np.broadcast_to(self._values(program, inputs, (out,), shape)[0], shape)
        write([out], [reduced(how, whole, axes)])

    @quiet
    def rows(self, program, modes, inputs, outputs, shape):
        values = self._values(program, inputs, outputs, shape)
        for k, mode in enumerate(modes):
            if mode == "row":
                values[k] = np.atleast_1d(values[k])[..., :1]
            elif mode == "columns":
                whole, rows = np.broadcast_to(values[k], shape), tuple(range(len(shape) - 1))
                values[k] = reduced("sum", whole, rows)
        write(outputs, values)

    @quiet
    def matmul(self, a, b, out, bias=None, accumulate=False):
        dtype, target = out.dtype.numpy if out.dtype.is_float else np.int64, ndarray(out)
        value = np.matmul(ndarray(a).astype(dtype), ndarray(b).astype(dtype))
        value = np.broadcast_to(value if bias is None else value + ndarray(bias), out.shape)
        if not accumulate:
            target[...] = value
            return
        for place in np.ndindex(*out.shape[:-2]):  # one by one: several may share memory
            target[place] += value[place]

    def gather(self, x, index, out):
        ndarray(out)[...] = ndarray(x)[:, ndarray(index).reshape(-1)]

    @quiet
    def scatter_add(self, source, index, out):
        total = ndarray(out).astype(wide(out.dtype.numpy))
        targets, index = total.swapaxes(0, 1), ndarray(index).reshape(-1)
        np.add.at(targets, index, ndarray(source).swapaxes(0, 1))
        write([out], [total])

    def put(self, source, index, out):
        ndarray(out)[:, ndarray(index).reshape(-1)] = ndarray(source)

    def wrap_index(self, index, n, out):
        i = ndarray(index).astype(np.int64)
        ndarray(out)[...] = (i + n * (i < 0)).reshape(out.shape)
        outside = np.flatnonzero((i < -n) | (i >= n))
        return int(outside[0]) if outside.size else -1

    def nonzero(self, x):
        return self.from_numpy(np.flatnonzero(ndarray(x)), int64)

    @quiet
    def cumsum(self, x, out, axis):
        write([out], [np.cumsum(ndarray(x), axis, wide(out.dtype.numpy))])

    def arg_reduce(self, x, out, axis, is_max):
        find = np.argmax if is_max else np.argmin
        if x.size:
            ndarray(out)[...] = find(ndarray(x), axis).reshape(out.shape)

    def argsort(self, x, out, descending=False):
        order = np.argsort(ndarray(x)[:, :: (step := -1 if descending else 1)], kind="stable")
        ndarray(out)[...] = np.arange(x.shape[1])[::step][order[:, ::step][:, : out.shape[1]]]

    @quiet
    def solve(self, a, b, out, factors, rest):
        a, b, is_wide = ndarray(a), ndarray(b), a.shape[1] < a.shape[2]
        q, r = np.linalg.qr(a.swapaxes(1, 2) if is_wide else a)
        diagonal = ndarray(factors)[:, -1] = np.diagonal(r, axis1=1, axis2=2)
        # NumPy raises for singular ones
        r = np.where(np.abs(diagonal).min(1)[:, None, None] > 0, r, np.nan)
        if is_wide:
            ndarray(out)[...] = q @ np.linalg.solve(r.swapaxes(1, 2), b)
        else:
            ndarray(out)[...] = np.linalg.solve(r, q.swapaxes(1, 2) @ b)

    @quiet
    def cholesky(self, a, out):
        a, y = ndarray(a), ndarray(out)
        a, y[...] = (a + a.swapaxes(1, 2)) / 2, 0
        for j in range(a.shape[1]):
            column = np.subtract(a[:, j:, j], (y[:, j:, :j] @ y[:, j, :j, None])[..., 0])
            y[:, j:, j] = column / np.sqrt(column[:, :1])

    def random(self, array, kind, seed, counter, low=0, high=0):
        if isinstance(seed, Array):  # a compiled step's: (seed, number to add to counter)
            seed, first = map(int, ndarray(seed))
            counter += first
        blocks = counter + np.arange(-(-array.nbytes // 16))
        more = [np.array([low]), np.array([high - low], np.uint64)] if kind == "integers" else []
        make = BLOCKS[f"{'integer' if more else kind}_block_{array.dtype.code}"]
        drawn = np.stack(make(blocks, np.array([seed]), *more), -1).reshape(-1)
        write([array], [drawn[: array.size].reshape(array.shape)])

    def unfold(self, x, out, window):
        ndarray(out)[...] = windows_of(ndarray(x), window)[1].reshape(out.shape)

    @quiet
    def fold(self, columns, out, window):
        (ph, pw), (h, w) = window.padding, out.shape[2:]
        total, views = windows_of(np.zeros(out.shape), window)
        columns = ndarray(columns).reshape(views.shape)
        for i, j in np.ndindex(*window.kernel):  # within one turn no two windows share a place
            views[:, :, i, j] += columns[:, :, i, j]
        write([out], [total[:, :, ph : ph + h, pw : pw + w]])

    def largest(self, x, out, window):
        shape = (*x.shape[:2], np.prod(window.kernel), *out.shape[2:])
        places = np.arange(x.size).reshape(x.shape)
        places = windows_of(places, window, x.size)[1].reshape(shape)
        values = windows_of(ndarray(x), window, -np.inf)[1].reshape(shape)
        best = np.take_along_axis(places, values.argmax(2, keepdims=True), 2)[:, :, 0]
        # -inf in the border is largest only if all are -inf: then take the first one inside
        ndarray(out)[...] = np.where(best < x.size, best, places.min(2))

    def convolves(self, what, dtype, shape, kernels, window):
        return False

    def update(self, update, rows, values):
        numbers = Program([*values, STEPS], update.numbers)
        for p, g, slots, steps in rows:
            count = np.zeros(1) if steps is None else ndarray(steps)[:1]
            count += 1
            computed = values_of(numbers, [*values.values(), *count], (), np.float64)
            self.elementwise(update.program, (p, g, *slots, *map(float, computed)), (p, *slots))

    @quiet
    def squares(self, arrays):
        return [float(np.square(ndarray(x), dtype=np.float64).sum()) for x in arrays]

    @quiet
    def scale(self, arrays, factors):
        for x, factor in zip(arrays, factors, strict=True):
            ndarray(x)[...] *= x.dtype.numpy.type(factor)


backend.register(Numpy())
