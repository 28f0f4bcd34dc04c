"""Calls of the CPU's hand-written kernels: what each takes, and what threads may split.

Each call is described once. Eager code makes it with the addresses of Arrays (`structural.py`), a
compiled step has it in its text, for Refs (`compiler/cpu/invocation.py`). So descriptions use only
what both have: shape, strides, dtype and size. What is computed, `table.Device` says.
"""

from typing import NamedTuple

from minigrad.array.dtypes import float32
from minigrad.array.layout import size_of
from minigrad.devices.cpu.direct import PRODUCTS, convolution_scratch, correlation_scratch, up
from minigrad.formulas.sums import scratch_to_add


class OwnPart(NamedTuple):
    """An operand in the scratch memory of the thread that runs the call."""

    begin: int  # float32 elements after the start of the thread's scratch
    address = 0  # if the call needs no scratch


class KernelCall(NamedTuple):
    """A call of kernel(addresses of operands, *numbers, start, stop).

    file, name, code: as for `loader.source_kernel`. extent: the whole range, which threads may
    split; None for a check: it has no range, and returns the first place that violates it, or -1.
    work: the time on one thread, in elements of a simple kernel. scratch: float32 elements that
    each thread needs for its OwnParts.
    """

    file: str
    name: str
    code: str | None
    operands: tuple
    numbers: tuple
    extent: int | None
    work: int
    scratch: int = 0

    @property
    def include(self):
        """The file as a compiled step includes it."""
        return f"{self.file}.{self.code}" if self.code else self.file

    @property
    def function(self):
        """The function's name in that file."""
        return f"{self.name}_{self.code}" if self.code else self.name


def gather(x, index, out):
    """Split the longer of the outer axis and the index."""
    (outer, n, r), m, code = x.shape, out.shape[1], out.dtype.moved
    operands, numbers = (x, index, out), (outer, n, m, r, int(outer > m))
    return KernelCall("gather", "gather", code, operands, numbers, max(outer, m), out.size)


def put(source, index, out):
    """Split the targets: no two threads write the same row."""
    return _to_targets("put", out.dtype.moved, source, index, out)


def scatter_add(source, index, out, parts=1):
    """Split the targets: sums run in the order of the index for any number of threads."""
    if out.dtype is not float32:
        return _to_targets("add", out.dtype.code, source, index, out)
    (outer, n, r), m = out.shape, source.shape[1]
    scratch, rows = scratch_to_add(-(-n // parts), m, r)
    own, numbers = OwnPart(0) if scratch else out, (outer, n, m, r, rows)
    operands = source, index, out, own
    return KernelCall("add_f4", "add_f4", None, operands, numbers, n, source.size, scratch)


def _to_targets(name, code, source, index, out):
    (outer, n, r), m, operands = out.shape, source.shape[1], (source, index, out)
    return KernelCall("gather", name, code, operands, (outer, n, m, r), n, source.size)


def wrap_index(index, out, n, **_):
    """Check an index."""
    size, code = index.size, index.dtype.code
    return KernelCall("gather", "wrap", code, (index, out), (size, n), None, size)


def check(x, what, low, high, **_):
    """Check that elements lie within limits, or that they are finite."""
    if what == "within":
        name, numbers = ("checks", "first_outside_i8"), (x.size, low, high)
    else:
        name, numbers = ("step", f"first_nonfinite_{x.dtype.code}"), (x.size,)
    return KernelCall(*name, None, (x,), numbers, None, x.size)


def cumsum(x, out, axis):
    """Split what lies before the axis, or what lies behind it if nothing does."""
    return _along("cumsum", x, out, axis)


def arg_reduce(x, out, axis, is_max):
    """Split as `cumsum`."""
    return _along("arg", x, out, axis, int(is_max))


def _along(name, x, out, axis, *more):
    shape = x.shape
    outer, n, inner = size_of(shape[:axis]), shape[axis], size_of(shape[axis + 1 :])
    numbers, extent = (outer, n, inner, *more, int(outer > 1)), outer if outer > 1 else inner
    return KernelCall("scan", name, x.dtype.code, (x, out), numbers, extent, x.size)


def argsort(x, out, other, descending):
    """Split the rows. other: memory for as many places as out."""
    (rows, n), size = x.shape, out.shape[1]
    operands, numbers = (x, out, other), (n, size, int(descending))
    work = x.size * size.bit_length()
    return KernelCall("argsort", "argsort", x.dtype.code, operands, numbers, rows, work)


def solve(a, b, out, factors, rest):
    """Split the matrices."""
    (count, m, n), k, operands = a.shape, b.shape[2], (a, b, out, factors, rest)
    return KernelCall("linalg", "solve", None, operands, (m, n, k), count, factors.size * min(m, n))


def cholesky(a, out):
    """Split the matrices."""
    count, n, _ = a.shape
    return KernelCall("linalg", "cholesky", None, (a, out), (n,), count, a.size * n)


def random(out, kind, seed, counter, low=0, high=0):
    """Split the elements."""
    numbers = (low, high, seed, counter) if kind == "integers" else (seed, counter)
    name, code, size = f"random_{kind}", out.dtype.code, out.size
    return KernelCall("random", name, code, (out,), numbers, size, size)


def unfold(x, out, window):
    """Split the planes: the channels of all images."""
    return _planes("unfold", (x, out), x, window, out)


def fold(columns, out, window):
    """Split the planes, as for `unfold`."""
    return _planes("fold", (columns, out), out, window, columns)


def largest(x, out, window):
    """Split the planes, as for `unfold`."""
    return _planes("largest", (x, out), x, window)


def _planes(name, operands, images, window, columns=None):
    numbers, work, shape = window.sizes(images.shape), images.size, images.shape
    if columns is not None:
        work, (image, row, _) = columns.size, columns.strides
        numbers = shape[1], *numbers, row, image
    extent = shape[0] * shape[1]
    return KernelCall("windows", name, images.dtype.code, operands, numbers, extent, work)


# -- convolutions without unfolded windows, of stride 1, one group, float32 ------------------------


def pack(w, out, bias_at=0):
    """Split the blocks of four kernels (o, c, kh, kw). bias_at: an address, 0 for no bias."""
    numbers = bias_at, *w.shape, *w.strides
    return KernelCall("direct", "pack_f4", None, (w, out), numbers, out.shape[0], out.size)


def convolve(x, packed, out, window):
    """Split the images."""
    operands, (kernels, counts, numbers) = (x, packed, out, OwnPart(0)), _sizes(x, out, window)
    scratch = convolution_scratch(kernels, counts, window.dilation)
    work = out.size * size_of(kernels[1:]) // PRODUCTS
    return KernelCall("direct", "convolve_f4", None, operands, numbers, x.shape[0], work, scratch)


def correlate(g, x, out, window, parts=1):
    """Split the images: each of several threads sums into the begin of its scratch."""
    (kernels, counts, numbers), n = _sizes(x, g, window), x.shape[0]
    size, _, step = correlation_scratch(x.shape, kernels, counts, window.dilation, -(-n // parts))
    totals = up(out.size, 16) if parts > 1 else 0
    operands = g, x, OwnPart(0) if totals else out, OwnPart(totals)
    numbers, work = (*numbers, step), g.size * size_of(kernels[1:]) // PRODUCTS
    return KernelCall("direct", "correlate_f4", None, operands, numbers, n, work, totals + size)


def _sizes(x, y, window):
    """Return (shape of the kernels, counts of windows, all sizes), for images x and windows y."""
    (c, *_), (o, *counts) = x.shape[1:], y.shape[1:]
    numbers = *x.shape[1:], o, *counts, *window.kernel, *window.padding, *window.dilation
    return (o, c, *window.kernel), counts, numbers
