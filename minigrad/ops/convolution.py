"""Convolution as matrix products over unfolded windows, some images at a time, in parallel.

It uses device kernels without unfolding (stride 1, one group) where they exist. A device that only
records programs has none. y = conv(x, w) is linear in x and in w, and its two gradients are linear
in dy. So the gradients of each of the three operations are the other two. Only x and w are saved;
backward unfolds again.
"""

import math

from minigrad.arguments import short, whole
from minigrad.devices.backend import device_of
from minigrad.devices.narrow import rounds_once
from minigrad.devices.window import Window, pair, window_of
from minigrad.errors import ArgumentError, ShapeError
from minigrad.formulas.expression import IDENTITY, call
from minigrad.formulas.sums import BLOCK
from minigrad.ops.base import Structural
from minigrad.ops.indexing import as_shape
from minigrad.ops.linear import check_pair, swapped
from minigrad.ops.operands import check_floats, constant, variables
from minigrad.seams import seams
from minigrad.tape.backward import ADD
from minigrad.tape.variable import Variable, filled

COLUMNS = 1 << 17  # elements of unfolded windows per thread, which fit into the cache
BLOCKS = 64  # blocks per batch at most; each block sums gradients of kernels separately
TRACED = 8  # about the most chunks per batch in a compiled step, which lists each of them
PLAIN = Window((2, 3), (1, 1), (1, 0), (1, 1))
WIDE = Window((2, 2), (2, 1), (0, 1), (1, 2))


class Chunks:
    """Splits the images of a batch into parallel ranges, and each range into consecutive chunks.

    The unfolded windows of a chunk fit into COLUMNS elements, or the chunk is a single image.
    """

    def __init__(self, device, images, rows, columns, dtype):
        self.device, self.images = device, images
        self.work = images * rows * columns
        most = getattr(device, "columns", COLUMNS)
        most = max(most, self.work // TRACED) if seams.effects.is_tracing else most
        self.step = max(1, min(images, most // max(1, rows * columns)))
        self.parts = device.parts(images, self.work)
        self.memory = device.empty((self.parts, self.step, rows, columns), dtype)

    def run(self, function):
        """Calls function(k, a, b, columns) for each chunk.

        A chunk has images a to b - 1, in range k. columns: memory for its unfolded windows.
        """
        first, *rest = self.memory.strides

        def part(k, start, stop):
            for a in range(start, stop, self.step):
                b = min(stop, a + self.step)
                shape = (b - a, *self.memory.shape[2:])
                function(k, a, b, self.memory.view(shape, tuple(rest), k * first))

        self.device.side_by_side(part, self.images, self.work)


def images_of(x, a, b):
    """Returns images a to b - 1 of an Array, a view."""
    return x.view((b - a, *x.shape[1:]), x.strides, x.offset + a * x.strides[0])


def as_groups(x, groups, rows):
    """Views a contiguous Array (n, ...) as (n, rows, columns), or (n, groups, rows, columns)."""
    n = x.shape[0]
    columns = x.size // max(1, n * groups * rows)
    return as_shape(x, (n, rows, columns) if groups == 1 else (n, groups, rows, columns))


def kernels_of(w, groups):
    """Views kernels (o, c / groups, kh, kw) as (o, rows), or (groups, o / groups, rows)."""
    w = device_of(w).contiguous(w)
    o, rows = w.shape[0], math.prod(w.shape[1:])
    return as_shape(w, (o, rows) if groups == 1 else (groups, o // groups, rows))


class Conv2d(Structural):
    """Cross-correlation of images with kernels, plus a bias per output channel.

    (b, c, h, w), (o, c / groups, kh, kw), (o,), window, groups -> (b, o, oh, ow).
    """

    samples = [
        ((2, 2, 4, 4), (3, 2, 2, 3), (3,), PLAIN, 1),
        ((2, 4, 5, 4), (4, 2, 2, 2), (4,), WIDE, 2),
    ]

    @rounds_once
    def forward(x, w, bias, window, groups):
        device = device_of(x)
        n, o = x.shape[0], w.shape[0]
        oh, ow = window.counts(x.shape[2:])
        out = device.empty((n, o, oh, ow), x.dtype)
        if not out.size:
            return out
        x = device.contiguous(x)
        if device.convolves("output", x.dtype, x.shape, w.shape, window):
            device.convolve(x, w, device.contiguous(bias), out, window)
            return out
        rows, weight = math.prod(w.shape[1:]), kernels_of(w, groups)
        row = bias.view((1, o, 1, 1), (0, bias.strides[0], 0, 0))

        def images(_, a, b, columns):
            y = images_of(out, a, b)
            device.unfold(images_of(x, a, b), columns, window)
            columns = as_groups(columns, groups, rows)
            device.matmul(weight, columns, as_groups(y, groups, o // groups))
            device.elementwise(ADD, (y, row), (y,))

        Chunks(device, n, groups * rows, oh * ow, x.dtype).run(images)
        return out

    gradients = (
        lambda dy, w, x_shape, window, groups: ConvInput.apply(dy, w, x_shape, window, groups),
        lambda dy, x, w_shape, window, groups: ConvWeight.apply(dy, x, w_shape, window, groups),
        lambda dy: call("sum", dy, (0, 2, 3), False),
    )


class ConvInput(Structural):
    """The gradient of a convolution's images, also called transposed convolution.

    (b, o, oh, ow), (o, c / groups, kh, kw), shape, window, groups -> shape (b, c, h, w).
    """

    samples = [
        ((2, 3, 5, 2), (3, 2, 2, 3), (2, 2, 4, 4), PLAIN, 1),
        ((2, 4, 2, 4), (4, 2, 2, 2), (2, 4, 5, 4), WIDE, 2),
    ]

    @rounds_once
    def forward(g, w, shape, window, groups):
        device = device_of(g)
        out = device.empty(shape, g.dtype)
        (n, o, oh, ow), rows, g = g.shape, math.prod(w.shape[1:]), device.contiguous(g)
        if device.convolves("input", g.dtype, shape, w.shape, window):
            device.convolve_back(g, w, out, window)
            return out
        weight = swapped(kernels_of(w, groups))

        def images(_, a, b, columns):
            rising = as_groups(images_of(g, a, b), groups, o // groups)
            device.matmul(weight, rising, as_groups(columns, groups, rows))
            device.fold(columns, images_of(out, a, b), window)

        if n:
            Chunks(device, n, groups * rows, oh * ow, g.dtype).run(images)
        return out

    gradients = (
        lambda dy, w, window, groups: _convolved(dy, w, None, window, groups),
        lambda dy, g, w_shape, window, groups: ConvWeight.apply(g, dy, w_shape, window, groups),
    )


class ConvWeight(Structural):
    """The gradient of a convolution's kernels.

    (b, o, oh, ow), (b, c, h, w), shape, window, groups -> shape (o, c / groups, kh, kw).
    """

    samples = [
        ((2, 3, 5, 2), (2, 2, 4, 4), (3, 2, 2, 3), PLAIN, 1),
        ((2, 4, 2, 4), (2, 4, 5, 4), (4, 2, 2, 2), WIDE, 2),
    ]

    @rounds_once
    def forward(g, x, shape, window, groups):
        device = device_of(g)
        (n, o, oh, ow), rows = g.shape, math.prod(shape[1:])
        x, g = device.contiguous(x), device.contiguous(g)
        if device.convolves("kernels", g.dtype, x.shape, shape, window):
            out = device.empty(shape, g.dtype)
            device.correlate(g, x, out, window)
            return out
        chunks = Chunks(device, n, groups * rows, oh * ow, g.dtype)
        block = max(BLOCK, -(-n // BLOCKS))  # images per partial sum (sums.py)
        totals = filled(g, 0.0, (-(-n // block) + chunks.parts - 1, *shape))

        def images(k, a, b, columns):
            device.unfold(images_of(x, a, b), columns, window)
            for first in range(a // block * block, b, block):
                low, high = max(a, first), min(b, first + block)
                place = first // block + k  # parallel ranges must not share a sum
                total = images_of(totals, place, place + 1).view(shape, totals.strides[1:])
                total = kernels_of(total, groups)
                every = total.view((high - low, *total.shape), (0, *total.strides))
                falling = as_groups(images_of(g, low, high), groups, o // groups)
                right = swapped(as_groups(images_of(columns, low - a, high - a), groups, rows))
                device.matmul(falling, right, every, accumulate=True)  # sums over the images

        chunks.run(images)
        out = device.empty(shape, g.dtype)
        device.reduce(IDENTITY, "sum", (totals,), out, totals.shape, (0,))
        return out

    gradients = (
        lambda dy, x, window, groups: _convolved(x, dy, None, window, groups),
        lambda dy, g, x_shape, window, groups: ConvInput.apply(g, dy, x_shape, window, groups),
    )


def _convolved(x, w, b, window, groups):
    b = Variable(filled(w.array, 0.0, (w.shape[0],))) if b is None else b
    return Conv2d.apply(x, w, b, window, groups)


def _checked(name, x, w, b, groups, spatial):
    """Checks shapes and dtypes; returns the arguments as Variables."""
    x, w = variables(name, x, w)
    axes = ("h", "w")[-spatial:]
    if x.ndim != spatial + 2 or w.ndim != spatial + 2:
        raise ShapeError(
            f"{name}: wanted x (b, c, {', '.join(axes)}) and w (o, c / groups, "
            f"{', '.join('k' + a for a in axes)})",
            f"{x.shape} and {w.shape}",
        )
    groups = whole(name, "groups", groups, 1)
    c, o = x.shape[1], w.shape[0]
    if c % groups or o % groups:
        raise ArgumentError(
            f"{name}: wanted groups that divide the channels in and out", f"{groups} of {c} and {o}"
        )
    if w.shape[1] * groups != c:
        raise ShapeError(
            f"{name}: wanted w with c / groups = {c // groups} channels, as x {x.shape}",
            f"w {w.shape}",
        )
    check_pair(name, x, w)
    if b is not None:
        b = b if isinstance(b, Variable) else constant(b, name, x)
        if b.shape != (o,):
            raise ShapeError(f"{name}: wanted b ({o},), one per output channel", f"{b.shape}")
        check_pair(name, x, b)
    check_floats(name, x)
    return x, w, b


def conv2d(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlation of images with kernels, as deep learning calls convolution.

    (b, c, h, w), (o, c / groups, kh, kw), (o,) -> (b, o, oh, ow) with
    oh = (h + 2 padding - dilation (kh - 1) - 1) // stride + 1.

    Args:
        x: images.
        w: kernels.
        b: a bias per output channel, or None.
        stride: the distance between windows. Like padding and dilation, an int or (h, w).
        padding: the width of the border of zeros.
        dilation: the distance between the elements of a window.
        groups: the number of groups of channels, which are convolved separately.
    """
    x, w, b = _checked("conv2d", x, w, b, groups, 2)
    window = window_of("conv2d", x.shape[2:], w.shape[2:], stride, padding, dilation)
    return _convolved(x, w, b, window, groups)


def conv1d(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    """Like conv2d along one axis.  (b, c, n), (o, c / groups, k), (o,) -> (b, o, m)."""
    x, w, b = _checked("conv1d", x, w, b, groups, 1)
    sizes = [  # along an axis of size 1 the smallest values have no effect
        (least, _single("conv1d", what, value, least))
        for what, value, least in (
            ("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1),
        )
    ]  # fmt: skip
    window = window_of("conv1d", (1, x.shape[2]), (1, w.shape[2]), *sizes)
    x, w = (call("unsqueeze", v, 2) for v in (x, w))
    return call("squeeze", _convolved(x, w, b, window, groups), 2)


def _single(name, what, value, least):
    if isinstance(value, (tuple, list)) and len(value) == 1:
        value = value[0]
    if isinstance(value, (tuple, list)):
        raise ArgumentError(f"{name}: wanted one int for {what}", short(value))
    return pair(name, what, value, least)[1]


functions = (conv1d, conv2d)
