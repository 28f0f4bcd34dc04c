"""What a device must offer: every function over Arrays, stated once."""

from collections.abc import Sequence
from typing import Any

from minigrad.array.array import Array, prepare_write
from minigrad.array.dtypes import DType
from minigrad.formulas.expression import IDENTITY


class Device:
    """A table of functions over Arrays.

    This class says what they do; classes of devices say only where they differ. Callers make `out`
    Arrays with `empty`, and functions write them. Scalars among inputs are Python numbers. Shapes
    are tuples, strides count elements.
    """

    name: str
    pool: Any

    def empty(self, shape: tuple, dtype: DType) -> Array:
        """A contiguous Array with undefined elements."""
        raise NotImplementedError

    def elementwise(self, program, inputs: Sequence[Any], outputs: Sequence[Array]) -> None:
        """outputs = program(inputs), broadcast to the shape of the outputs.

        Reads happen before writes element by element, so an output may be one of the inputs.
        """
        raise NotImplementedError

    def reduce(
        self, program, how: str, inputs: Sequence[Any], out: Array, shape: tuple, axes: tuple
    ) -> None:
        """out = how over axes of program(inputs), one formula.

        how: sum, mean, prod, max, min, any, all. shape: what the inputs broadcast to; out: an Array
        of that shape without the reduced axes.
        """
        raise NotImplementedError

    def rows(
        self, program, modes: tuple, inputs: Sequence[Any], outputs: Sequence[Array], shape: tuple
    ) -> None:
        """outputs = program(inputs), formulas that reduce along the last axis of `shape`.

        modes: per output 'store' (shape), 'row' (shape[:-1] + (1,)) or 'columns' (shape[-1:], the
        sum over all rows).
        """
        raise NotImplementedError

    def matmul(
        self, a: Array, b: Array, out: Array, bias: Array | None = None, accumulate: bool = False
    ) -> None:
        """out = a @ b (+ bias); at least two axes each, leading axes broadcast.

        accumulate: add to what a float `out` holds, summing over its batch axes of stride 0.
        """
        raise NotImplementedError

    def gather(self, x: Array, index: Array, out: Array) -> None:
        """out[o, i, :] = x[o, index[i], :]; contiguous (outer, n, r), (m,) and (outer, m, r).

        The index is int64 and within 0 to n - 1, here and in the two functions that follow.
        """
        raise NotImplementedError

    def scatter_add(self, source: Array, index: Array, out: Array) -> None:
        """out[o, index[i], :] += source[o, i, :], in the order of i: the adjoint of gather.

        On a GPU in any order: sums of floats may be rounded differently each time.
        """
        raise NotImplementedError

    def put(self, source: Array, index: Array, out: Array) -> None:
        """out[o, index[i], :] = source[o, i, :]; of equal indices the last one wins."""
        raise NotImplementedError

    def wrap_index(self, index: Array, n: int, out: Array) -> int:
        """out = index of any integer dtype as int64, plus n where it is negative.

        Returns the first place that lies outside -n to n - 1, or -1.
        """
        raise NotImplementedError

    def nonzero(self, x: Array) -> Array:
        """The places in C order of the elements that are not 0: (m,) int64. Waits for a GPU."""
        raise NotImplementedError

    def cumsum(self, x: Array, out: Array, axis: int) -> None:
        """out = running sums of x along an axis; out is contiguous, of x's dtype or int64."""
        raise NotImplementedError

    def arg_reduce(self, x: Array, out: Array, axis: int, is_max: bool) -> None:
        """out = the place of the first largest (smallest) element, or of the first NaN; int64."""
        raise NotImplementedError

    def argsort(self, x: Array, out: Array) -> None:
        """out = per row of x the places of its elements in ascending order, NaN last; int64.

        Both are contiguous (rows, n), not empty, x of floats or int64. Equal elements stay in their
        order.
        """
        raise NotImplementedError

    def solve(self, a: Array, b: Array, out: Array, factors: Array, rest: Array) -> None:
        """out (c, n, k) = the smallest x with the smallest |a x - b|, of (c, m, n) and (c, m, k).

        All are contiguous, of float64, and not empty. factors (c, max(m, n) + 1, min(m, n)): the
        diagonal of R of a = Q R, or of a's transpose, in its last row; otherwise memory to work in.
        rest: memory of b's shape.
        """
        raise NotImplementedError

    def cholesky(self, a: Array, out: Array) -> None:
        """out = the lower L with L L^T = (a + a^T) / 2, NaN from where there is none; (c, n, n).

        Both are contiguous, of float64, and not empty.
        """
        raise NotImplementedError

    def random(
        self, array: Array, kind: str, seed: int, counter: int, low: int = 0, high: int = 0
    ) -> None:
        """Fills an Array: 'uniform' in [0, 1), 'normal', or 'integers' from low to high - 1.

        Element i depends on seed, counter and i alone.
        """
        raise NotImplementedError

    def side_by_side(self, function: Any, count: int, work: int) -> None:
        """Calls function(k, a, b) for the k-th range a to b - 1 within count, perhaps in parallel.

        work: elements; little work is not cut. The function may call this device, and make views
        but no other Arrays.
        """
        raise NotImplementedError

    def parts(self, count: int, work: int) -> int:
        """How many ranges side_by_side makes for these arguments."""
        raise NotImplementedError

    def unfold(self, x: Array, out: Array, window: Any) -> None:
        """out = the windows of x as columns, 0 where they overhang.

        x (images, channels, h, w) is contiguous; out (images, channels * elements of a window,
        windows of an image) is so along its last axis. `window`: see `cpu.window.Window`.
        """
        raise NotImplementedError

    def fold(self, columns: Array, out: Array, window: Any) -> None:
        """out = the sum of columns at the places they were unfolded from: the adjoint of unfold."""
        raise NotImplementedError

    def convolves(self, what: str, dtype: DType, shape: tuple, kernels: tuple, window: Any) -> bool:
        """Whether the device convolves without unfolding, in no more time.

        what: "output" (`convolve`), "input" (`convolve_back`) or "kernels" (`correlate`). shape: of
        the images (n, c, h, w); kernels: (o, c / groups, kh, kw).
        """
        raise NotImplementedError

    def convolve(self, x: Array, w: Array, bias: Array | None, out: Array, window: Any) -> None:
        """out (n, o, oh, ow) = the cross-correlation of x (n, c, h, w) with w, plus bias (o,)."""
        raise NotImplementedError

    def convolve_back(self, g: Array, w: Array, out: Array, window: Any) -> None:
        """out (n, c, h, w) = the gradient of x, of g (n, o, oh, ow): the adjoint in x."""
        raise NotImplementedError

    def correlate(self, g: Array, x: Array, out: Array, window: Any) -> None:
        """out (o, c, kh, kw) = the gradient of w: the adjoint in w."""
        raise NotImplementedError

    def largest(self, x: Array, out: Array, window: Any) -> None:
        """out = where in the flattened x the first largest element of each window lies, int64.

        A NaN counts as the largest. x (images, channels, h, w), out (images, channels, oh, ow).
        """
        raise NotImplementedError

    def update(self, update, rows: Sequence[tuple], values: dict) -> None:
        """One step of a formulas.Update, for parameters of one dtype.

        rows: (p, g, slots, steps) of each, contiguous; steps: float64, or None. values: {symbol:
        number} of the hyperparameters. The CPU lacks this and the next two functions: its kernels
        take tables of addresses (`devices/cpu/updates.py`).
        """
        raise NotImplementedError

    def squares(self, arrays: Sequence[Array]) -> list:
        """The sum of squares of each of contiguous Arrays of one dtype, as floats."""
        raise NotImplementedError

    def scale(self, arrays: Sequence[Array], factors: Sequence[float]) -> None:
        """Multiplies contiguous Arrays of one dtype by a float each."""
        raise NotImplementedError

    def from_numpy(self, data, dtype: DType) -> Array:
        """A new Array with a copy of an ndarray."""
        raise NotImplementedError

    def item(self, x: Array) -> Any:
        """The one element, as a Python number."""
        raise NotImplementedError

    def share(self, x: Array) -> Array:
        """clone(): copy-on-write where that is possible."""
        raise NotImplementedError

    def copy_buffer(self, old):
        """A Buffer with the same bytes."""
        raise NotImplementedError

    # -- what every device does in the same way: copies are programs of one input -----------------

    def copy(self, source, out):
        """out[...] = source, broadcast and converted; source may be a Python number."""
        self.elementwise(IDENTITY, (source,), (out,))

    def join(self, parts, out, axis):
        """out = the parts one after another along an axis; parts may have other dtypes than out."""
        offset = 0
        for x in parts:
            if x.size:
                self.copy(x, out.view(x.shape, out.strides, offset))
            offset += x.shape[axis] * out.strides[axis]

    def fill(self, out, value):
        """out[...] = value, a Python number."""
        self.copy(value, out)

    def contiguous(self, x):
        """x itself if its elements lie in C order, else a copy that does."""
        return x if x.is_contiguous else self.convert(x, x.dtype)

    def convert(self, x, dtype):
        """A contiguous copy in another dtype."""
        out = self.empty(x.shape, dtype)
        self.copy(x, out)
        return out

    def prepare_write(self, array, place=None):
        """Before every in-place write: bumps the version, un-shares a copy-on-write Buffer."""
        prepare_write(array, self.copy_buffer, place)
