"""The device table that records each call as an instruction; `Device` says what each means."""

import numpy as np

from minigrad.array.dtypes import int64
from minigrad.compiler.trace.memory import TracedMemory
from minigrad.devices.cpu.direct import border, pays
from minigrad.formulas.expression import Program, call, logical_and, logical_or, symbol, where

SEED = object()  # ops get it as the seed of the default generator
ADD = Program(["a", "b"], [symbol("a") + symbol("b")])
_x, _i, _y, _j = map(symbol, ("x", "i", "y", "j"))
_is_tie = logical_and(call("equal", _x, _y), call("less", _i, _j))
BEFORE = Program(["x", "i", "y", "j"], [where(logical_or(call("less", _x, _y), _is_tie), 1, 0)])


def _flat(index):
    """A contiguous index as (m,)."""
    return index.view((index.size,), (1,))


class Table(TracedMemory):
    """The functions of a device, which record instead of computing."""

    # -- formulas ------------------------------------------------------------------------------

    def elementwise(self, program, inputs, outputs):
        """outputs = program(inputs), broadcast to the outputs' shape."""
        self.record("elementwise", inputs, outputs, program=program)

    def reduce(self, program, how, inputs, out, shape, axes):
        """out = how over axes of one formula."""
        self.record("reduce", inputs, (out,), program=program, how=how, shape=shape, axes=axes)

    def rows(self, program, modes, inputs, outputs, shape):
        """Formulas with row reductions."""
        self.record("rows", inputs, outputs, program=program, modes=modes, shape=shape)

    def share(self, x):
        """clone() as a copy; a pass removes it if neither side is written."""
        return self.convert(x, x.dtype)

    # -- products, indices, scans ----------------------------------------------------------------

    def matmul(self, a, b, out, bias=None, accumulate=False):
        """out = a @ b (+ bias); of ints in int64."""
        result = out
        if not out.dtype.is_float:
            a, b = (x if x.dtype is int64 else self.convert(x, int64) for x in (a, b))
            result = out if out.dtype is int64 else self.empty(out.shape, int64)
        self.record("matmul", (a, b), (result,), accumulate=accumulate)
        if bias is not None:
            self.record("elementwise", (result, bias), (result,), program=ADD)
        if result is not out:
            self.copy(result, out)

    def gather(self, x, index, out):
        """out[o, i, :] = x[o, index[i], :]."""
        self.record("gather", (x, _flat(index)), (out,))

    def scatter_add(self, source, index, out):
        """out[o, index[i], :] += source[o, i, :]."""
        self.record("scatter_add", (source, _flat(index)), (out,))

    def put(self, source, index, out):
        """out[o, index[i], :] = source[o, i, :]."""
        self.record("put", (source, _flat(index)), (out,))

    def wrap_index(self, index, n, out):
        """out = index counted from the front; the program stops if an index lies outside."""
        self.stop("wrap_index", index, (out,), n=n)
        return -1

    def all_within(self, x, low, high):
        """True: the program stops if an element lies outside."""
        if x.size:
            self.stop("check", x, (), what="within", low=low, high=high)
        return True

    def check_finite(self, x, error):
        """The program stops and raises error() if an element of x is NaN or infinite."""
        self.append(
            "check", (x,), (), {"what": "finite", "low": None, "high": None, "error": error}
        )

    def cumsum(self, x, out, axis):
        """out = running sums of x along an axis; x is contiguous and of out's dtype."""
        x = self.contiguous(x if x.dtype is out.dtype else self.convert(x, out.dtype))
        self.record("cumsum", (x,), (out,), axis=axis)

    def arg_reduce(self, x, out, axis, is_max):
        """out = the index of the largest or smallest element along an axis; x is contiguous."""
        x = self.contiguous(x if x.dtype.is_float else self.convert(x, int64))
        self.record("arg_reduce", (x,), (out,), axis=axis, is_max=is_max)

    def item(self, x):
        """Raises: no element is known."""
        self.read(x)

    def argsort(self, x, out):
        """out = the indices of the elements of x (n,) in ascending order.

        On a GPU: counts the elements before each one. Sorting is too rare to deserve a kernel.
        """
        n = x.size
        if self.name == "cpu":
            self.record("argsort", (x,), (out, self.empty((n,), int64)))
            return
        order = self.from_numpy(np.arange(n), int64)
        rank = self.empty((n,), int64)
        other = (x.view((1, n), (0, 1)), order.view((1, n), (0, 1)))
        own = (x.view((n, 1), (1, 0)), order.view((n, 1), (1, 0)))
        self.reduce(BEFORE, "sum", (*other, *own), rank, (n, n), (1,))
        self.put(order.view((1, n, 1), (n, 1, 1)), rank, out.view((1, n, 1), (n, 1, 1)))

    # -- random numbers, windows, ranges ---------------------------------------------------------

    def random(self, array, kind, seed, counter, low=0, high=0):
        """Fills an Array; `counter` is relative to the default generator's when the run begins."""
        if seed is not SEED:
            self.refuse_generator()
        self.record("random", (), (array,), kind=kind, low=low, high=high, counter=counter)

    def refuse_generator(self):
        """Raises: a program advances only the default generator."""
        self.refuse(
            "random numbers of a custom generator inside a compiled step",
            "use the default generator (mg.manual_seed, outside the step), or draw outside and "
            "pass the numbers as an argument",
        )

    def unfold(self, x, out, window):
        """out = the windows of x as columns."""
        self.record("unfold", (x,), (out,), window=window)

    def fold(self, columns, out, window):
        """out = the sums of columns at the places that they were unfolded from."""
        self.record("fold", (columns,), (out,), window=window)

    def convolves(self, what, dtype, shape, kernels, window):
        """Whether a direct convolution pays, as eager execution decides it."""
        return self.name == "cpu" and pays(what, dtype, shape, kernels, window)

    def convolve(self, x, w, bias, out, window):
        """out = the cross-correlation of x with w; the bias fuses with what follows."""
        self._convolve(x, w, False, out, window)
        assert bias is not None, "Conv2d always has one"
        row = bias.view((1, bias.size, 1, 1), (0, bias.strides[0], 0, 0))
        self.record("elementwise", (out, row), (out,), program=ADD)

    def convolve_back(self, g, w, out, window):
        """out = the gradient of images: a convolution of g with the kernels upside down."""
        self._convolve(g, w, True, out, border(window))

    def _convolve(self, x, w, is_turned, out, window):
        blocks, rows = -(-out.shape[1] // 4), x.shape[1] * w.shape[2] * w.shape[3]
        packed = self.empty((blocks, 4 * (1 + rows)), w.dtype)
        self.record("pack", (w,), (packed,), is_turned=is_turned)
        self.record("convolve", (x, packed), (out,), window=window)

    def correlate(self, g, x, out, window):
        """out = the gradient of kernels."""
        self.record("correlate", (g, x), (out,), window=window)

    def largest(self, x, out, window):
        """out = the index of the first largest element of each window."""
        self.record("largest", (x,), (out,), window=window)

    def side_by_side(self, function, count, work):
        """function(0, 0, count): the program is split into threads later."""
        function(0, 0, count)

    def parts(self, count, work):
        """One range."""
        return 1
