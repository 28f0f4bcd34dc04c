"""The functions over Arrays that every device must offer, each stated once."""

from collections.abc import Sequence
from typing import Any

from minigrad.array.array import Array, prepare_write
from minigrad.array.dtypes import DType
from minigrad.formulas.expression import IDENTITY


class Device:
    """A table of functions over Arrays.

    This class documents them; device classes document only differences. Callers make `out` Arrays
    with `empty`, and functions write them. Scalar inputs are Python numbers. Shapes are tuples,
    strides count elements.

    Attributes:
        name, pool: as in `mg.device(name)`; where Buffers come from.
        is_host: whether NumPy can show its memory.
        has_kernels: whether functions compile and run kernels.
    """

    name: str
    pool: Any
    is_host = False
    has_kernels = True

    def empty(self, shape: tuple, dtype: DType) -> Array:
        """Return a contiguous Array with undefined elements."""
        raise NotImplementedError

    def elementwise(self, program, inputs: Sequence[Any], outputs: Sequence[Array]) -> None:
        """Compute outputs = program(inputs), broadcast to the shape of the outputs.

        Each element is read before it is written, so an output may be one of the inputs.
        """
        raise NotImplementedError

    def reduce(
        self, program, how: str, inputs: Sequence[Any], out: Array, shape: tuple, axes: tuple
    ) -> None:
        """Reduce program(inputs), one formula, over axes into out.

        how: sum, mean, prod, max, min, any, all. shape: the shape the inputs broadcast to. out: an
        Array of that shape without the reduced axes.
        """
        raise NotImplementedError

    def rows(
        self, program, modes: tuple, inputs: Sequence[Any], outputs: Sequence[Array], shape: tuple
    ) -> None:
        """Compute outputs = program(inputs), formulas that reduce along the last axis of `shape`.

        modes: per output 'store' (shape), 'row' (shape[:-1] + (1,)) or 'columns' (shape[-1:], the
        sum over all rows).
        """
        raise NotImplementedError

    def empty_rows(self, inputs: Sequence[Any], shape: tuple, dtype: DType) -> Array:
        """Return an Array for a result of `rows` with undefined elements.

        Its layout is the one that is fastest beside the inputs.
        """
        return self.empty(shape, dtype)

    def empty_beside(self, inputs: Sequence[Any], shape: tuple, dtype: DType) -> Array:
        """Return an Array for a result of `elementwise`; otherwise as `empty_rows`."""
        return self.empty(shape, dtype)

    def matmul(
        self, a: Array, b: Array, out: Array, bias: Array | None = None, accumulate: bool = False
    ) -> None:
        """Compute out = a @ b (+ bias); at least two axes each, leading axes broadcast.

        accumulate: add to the values of a float `out`, summing over its batch axes of stride 0.
        """
        raise NotImplementedError

    def matmul_narrow(
        self, a: Array, b: Array, out: Array, bias: Array | None = None, accumulate: bool = False
    ) -> bool:
        """Compute matmul of halves as they are; return whether it has, or they are to be widened.

        Each sum is float32 and is rounded once.
        """
        return False

    def gather(self, x: Array, index: Array, out: Array) -> None:
        """Set out[o, i, :] = x[o, index[i], :]; contiguous (outer, n, r), (m,), (outer, m, r).

        The index is int64 and within 0 to n - 1, here and in the next two functions.
        """
        raise NotImplementedError

    def scatter_add(self, source: Array, index: Array, out: Array) -> None:
        """Add source[o, i, :] to out[o, index[i], :] in the order of i: the adjoint of gather.

        A GPU adds in any order, so float sums may be rounded differently each time.
        """
        raise NotImplementedError

    def put(self, source: Array, index: Array, out: Array) -> None:
        """Set out[o, index[i], :] = source[o, i, :]; the last of equal indices wins."""
        raise NotImplementedError

    def wrap_index(self, index: Array, n: int, out: Array) -> int:
        """Set out to index as int64, plus n where negative; index has any integer dtype.

        Return the first place whose index is outside -n to n - 1, or -1.
        """
        raise NotImplementedError

    def all_within(self, x: Array, low: int, high: int, wanted: str | None = None) -> bool:
        """Return whether every element of an integer Array is in [low, high].

        wanted: what a compiled step's error says if one is not.
        """
        raise NotImplementedError

    def nonzero(self, x: Array) -> Array:
        """Return the places of nonzero elements in C order: (m,) int64. Waits for a GPU."""
        raise NotImplementedError

    def cumsum(self, x: Array, out: Array, axis: int) -> None:
        """Write running sums of x along an axis to out, contiguous, of x's dtype or int64."""
        raise NotImplementedError

    def arg_reduce(self, x: Array, out: Array, axis: int, is_max: bool) -> None:
        """Write the place (int64) of the first largest (smallest) element or first NaN to out."""
        raise NotImplementedError

    def argsort(self, x: Array, out: Array, descending: bool = False) -> None:
        """Write the places (int64) that sort each row of x; NaN counts as the largest.

        x (rows, n) and out (rows, k) are contiguous and not empty; x holds floats or int64. For k
        below n: the first k of the n places. Equal elements keep their order, also descending.
        """
        raise NotImplementedError

    def solve(self, a: Array, b: Array, out: Array, factors: Array, rest: Array) -> None:
        """Set out (c, n, k) to the shortest least-squares x of a (c, m, n), b (c, m, k).

        All are contiguous float64 and not empty. factors (c, max(m, n) + 1, min(m, n)): work space;
        its last row receives the diagonal of R, where a (or its transpose) = Q R. rest: work space
        of b's shape.
        """
        raise NotImplementedError

    def cholesky(self, a: Array, out: Array) -> None:
        """Set out (c, n, n) to the lower L with L L^T = (a + a^T) / 2; NaN from where it fails.

        Both are contiguous float64 and not empty.
        """
        raise NotImplementedError

    def random(
        self, array: Array, kind: str, seed: int, counter: int, low: int = 0, high: int = 0
    ) -> None:
        """Fill an Array: 'uniform' in [0, 1), 'normal', or 'integers' from low to high - 1.

        Element i depends only on seed, counter and i.
        """
        raise NotImplementedError

    def side_by_side(self, function: Any, count: int, work: int) -> None:
        """Call function(k, a, b) for the k-th range a to b - 1 of count, perhaps in parallel.

        work: elements; little work is not split. The function may call this device and make views,
        but no other Arrays.
        """
        raise NotImplementedError

    def parts(self, count: int, work: int) -> int:
        """Return how many ranges side_by_side makes for these arguments."""
        raise NotImplementedError

    def unfold(self, x: Array, out: Array, window: Any) -> None:
        """Write the windows of x to out as columns, 0 where they overhang.

        x (images, channels, h, w) is contiguous. out (images, channels * elements of a window,
        windows of an image) is contiguous along its last axis. window: see `window.Window`.
        """
        raise NotImplementedError

    def fold(self, columns: Array, out: Array, window: Any) -> None:
        """Sum columns into out at the places they were unfolded from: the adjoint of unfold."""
        raise NotImplementedError

    def convolves(self, what: str, dtype: DType, shape: tuple, kernels: tuple, window: Any) -> bool:
        """Return whether the device convolves without unfolding, and no slower.

        what: "output" (`convolve`), "input" (`convolve_back`) or "kernels" (`correlate`). shape:
        that of the images (n, c, h, w). kernels: (o, c / groups, kh, kw).
        """
        raise NotImplementedError

    def convolve(self, x: Array, w: Array, bias: Array | None, out: Array, window: Any) -> None:
        """Cross-correlate x (n, c, h, w) with w, add bias (o,), write out (n, o, oh, ow)."""
        raise NotImplementedError

    def convolve_back(self, g: Array, w: Array, out: Array, window: Any) -> None:
        """Write the gradient of x for g (n, o, oh, ow) to out (n, c, h, w): the adjoint in x."""
        raise NotImplementedError

    def correlate(self, g: Array, x: Array, out: Array, window: Any) -> None:
        """Write the gradient of w to out (o, c, kh, kw): the adjoint in w."""
        raise NotImplementedError

    def largest(self, x: Array, out: Array, window: Any) -> None:
        """Write the index (int64) in the flattened x of each window's first largest element.

        NaN counts as largest. x is (images, channels, h, w), out (images, channels, oh, ow).
        """
        raise NotImplementedError

    def update(self, update, rows: Sequence[tuple], values: dict) -> None:
        """Run one step of a formulas.Update for parameters of one dtype.

        rows: a contiguous (p, g, slots, steps) per parameter; slots have the type that kernels
        compute in; steps: float64 or None. values:
        {symbol: number} of the hyperparameters. The CPU lacks this and the next two functions: its
        kernels take tables of addresses (`devices/cpu/updates.py`).
        """
        raise NotImplementedError

    def squares(self, arrays: Sequence[Array]) -> list:
        """Return the sum of squares of each Array, as floats; contiguous, of one dtype."""
        raise NotImplementedError

    def scale(self, arrays: Sequence[Array], factors: Sequence[float]) -> None:
        """Multiply each Array by its own factor; contiguous, of one dtype."""
        raise NotImplementedError

    def from_numpy(self, data, dtype: DType) -> Array:
        """Return a new Array with a copy of an ndarray."""
        raise NotImplementedError

    def fixed(self, data, dtype: DType) -> Array:
        """Do the same, for data that are equal in every call of an operation with its key."""
        return self.from_numpy(data, dtype)

    def to_numpy(self, x: Array) -> Any:
        """Return a copy of the elements as an ndarray on the host."""
        raise NotImplementedError

    def item(self, x: Array) -> Any:
        """Return the only element as a Python number."""
        raise NotImplementedError

    def share(self, x: Array) -> Array:
        """Clone an Array, copy-on-write where possible."""
        raise NotImplementedError

    def copy_buffer(self, old):
        """Return a Buffer with the same bytes."""
        raise NotImplementedError

    # -- the same on every device: copies are programs of one input -------------------------------

    def copy(self, source, out):
        """Copy source to out, broadcast and converted; source may be a Python number."""
        self.elementwise(IDENTITY, (source,), (out,))

    def join(self, parts, out, axis):
        """Concatenate parts along an axis into out; parts may have other dtypes than out."""
        offset = 0
        for x in parts:
            if x.size:
                self.copy(x, out.view(x.shape, out.strides, offset))
            offset += x.shape[axis] * out.strides[axis]

    def fill(self, out, value):
        """Fill out with value, a Python number."""
        self.copy(value, out)

    def contiguous(self, x):
        """Return x if its elements lie in C order, else a contiguous copy."""
        return x if x.is_contiguous else self.convert(x, x.dtype)

    def convert(self, x, dtype):
        """Return a contiguous copy in another dtype."""
        out = self.empty(x.shape, dtype)
        self.copy(x, out)
        return out

    def prepare_write(self, array, place=None):
        """Bump the version, un-share a copy-on-write Buffer; call before in-place writes."""
        prepare_write(array, self.copy_buffer, place)
