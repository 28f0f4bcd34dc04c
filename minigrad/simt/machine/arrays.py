"""What kernels index: views of memory with a shape, and bare pointers."""

import numpy as np

from minigrad.errors import OutOfBoundsError, SimulationError
from minigrad.simt.machine.faults import fault, offender
from minigrad.simt.machine.masks import NUMBERS, Misuse, describe, merge

_I8 = np.dtype(np.int64)


def whole(index, site, what="an index"):
    """Return an index, or another integer value, as int64; raise if it is no integer."""
    kind = getattr(getattr(index, "dtype", None), "kind", None)
    if kind is None or kind not in "iu" or hasattr(index, "load"):
        fix = "convert it: int(i)"
        if isinstance(index, Triple):
            fix = "take one of the three: cuda.threadIdx.x"
        elif not isinstance(index, NUMBERS):
            fix = "use one element of it, or a number"
        raise fault(
            SimulationError, f"{what} must be an integer", site, got=describe(index), fix=fix
        )
    return index if index.dtype == _I8 else index.astype(_I8)


def checked(index, extent, axis, lanes, mask, site):
    """Return an index along an axis as int64, negative ones wrapped; raise if out of range.

    Unsigned indices are never negative: 0 - 1 is a very large number, as on a GPU.
    """
    given, index = index, whole(index, site)
    if index.ndim == 0:
        if 0 <= index < extent:
            return index
    else:
        if index.view(np.uint64).max() < extent:
            return index
        if mask is not None:  # perhaps only inactive lanes are outside: they get 0
            index = np.where(mask, index, 0)
            if index.view(np.uint64).max() < extent:
                return index
    wrapped = np.where(index < 0, index + extent, index)[()] if given.dtype.kind == "i" else index
    bad = (wrapped < 0) | (wrapped >= extent)
    lane = offender(lanes, mask, bad) if bad.any() else None
    if lane is None:
        return np.where(bad, 0, wrapped)[()]
    at = given if given.ndim == 0 else given[lane]
    raise fault(
        OutOfBoundsError,
        f"{site.text} is outside of its array",
        site,
        lanes,
        lane,
        got=f"index {at} along axis {axis}, which has {extent} element{'' if extent == 1 else 's'}",
        fix=f"guard the access: if {'i >= 0' if at < 0 else f'i < {extent}'}: ..., with the "
        "array's own index and size"
        if extent
        else "it has no elements; a shared array of shape 0 gets its bytes at the launch: "
        "kernel[blocks, threads, 0, bytes]",
    )


class ArrayView:
    """Elements of a region: those of a NumPy array or of a block's shared memory.

    Attributes:
        region, dtype: see `memory`.
        shape: np.int64 scalars.
        strides: in elements.
        offset: int64, the element at (0, 0, ...): a scalar, or a vector of one per lane.
    """

    __slots__ = ("dtype", "offset", "region", "shape", "strides")
    kind = "an array"

    def __init__(self, region, dtype, shape, strides, offset):
        self.region, self.dtype, self.offset = region, dtype, offset
        self.shape = tuple(np.int64(n) for n in shape)
        self.strides = tuple(np.int64(n) for n in strides)

    @property
    def ndim(self):
        return np.int64(len(self.shape))

    @property
    def size(self):
        return np.int64(np.prod(self.shape, dtype=np.int64))

    def locate(self, index, lanes, mask, site):
        """Return the element in the region for indices, one per axis."""
        flat = self.offset
        for axis, (i, stride) in enumerate(zip(index, self.strides, strict=False)):
            i = checked(i, self.shape[axis], axis, lanes, mask, site)
            flat = flat + (i if stride == 1 else i * stride)
        return flat

    def load(self, index, lanes, mask, site):
        """Return one element, or a view if there are fewer indices than axes."""
        if len(index) == len(self.shape) and not any(type(i) is slice for i in index):
            return self.region.load(self.dtype, self.locate(index, lanes, mask, site), mask, site)
        return self._view(index, lanes, mask, site)

    def store(self, index, value, lanes, mask, site):
        """Write one element per lane, cast to the array's dtype."""
        if any(type(i) is slice for i in index):
            raise fault(
                SimulationError,
                f"{site.text}: a slice cannot be assigned to here",
                site,
                fix="each thread writes one element: x[i] = 0, or in a loop over k x[i, k] = 0",
            )
        if len(index) != len(self.shape):
            raise self._wrong_count(index, site, "only single elements can be written")
        flat = self.locate(index, lanes, mask, site)
        if not isinstance(value, NUMBERS):
            raise Misuse(f"{describe(value)} cannot be stored in an array of {self.dtype}")
        if value.dtype != self.dtype:
            value = value.astype(self.dtype)
        self.region.store(self.dtype, flat, value, mask, site)

    def element(self, index, lanes, mask, site):
        """Return what atomic operations use: (region, dtype, element)."""
        if len(index) != len(self.shape):
            raise self._wrong_count(index, site, "an atomic operation needs one element")
        return self.region, self.dtype, self.locate(index, lanes, mask, site)

    def _wrong_count(self, index, site, why):
        given, axes = len(index), len(self.shape)
        indices = f"{given} {'index' if given == 1 else 'indices'}"
        right = f"x[{', '.join('ijklmnpq'[:axes]) or '()'}]"
        return fault(
            SimulationError,
            f"{site.text} has {indices}, the array {axes} {'axis' if axes == 1 else 'axes'}: {why}",
            site,
            fix=f"give one index per axis: {right}" if axes else f"its one element is {right}",
        )

    def _view(self, index, lanes, mask, site):
        if len(index) > len(self.shape):
            raise self._wrong_count(index, site, "there are too many indices")
        flat, shape, strides = self.offset, [], []
        for axis, (extent, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            i = index[axis] if axis < len(index) else slice(None)
            if type(i) is not slice:
                flat = flat + checked(i, extent, axis, lanes, mask, site) * stride
                continue
            start, stop, step = _uniform_slice(i, int(extent), site)
            flat = flat + np.int64(start) * stride
            shape.append(len(range(start, stop, step)))
            strides.append(stride * step)
        return ArrayView(self.region, self.dtype, shape, strides, flat)

    def transposed(self):
        """Return the view with its axes reversed: `x.T`."""
        return ArrayView(self.region, self.dtype, self.shape[::-1], self.strides[::-1], self.offset)

    def merged(self, mask, old):
        """Return this view in the lanes of a mask, an older one of the same kind elsewhere."""
        same = (self.region, self.dtype, self.shape, self.strides)
        if same != (old.region, old.dtype, old.shape, old.strides):
            raise Misuse(
                "one name stands for different arrays in different threads",
                "choose among elements, not among arrays: x[i] if c else y[i]",
            )
        offset = np.where(mask, self.offset, old.offset)
        return ArrayView(*same, offset)


def _uniform_slice(part, extent, site):
    ends = [part.start, part.stop, part.step]
    if any(isinstance(end, np.ndarray) and end.ndim for end in ends):
        raise fault(
            SimulationError,
            "a slice whose ends differ from thread to thread",
            site,
            fix="index the elements one by one: x[start + k]",
        )
    return slice(*(None if end is None else int(end) for end in ends)).indices(extent)


class PointerView:
    """A pointer in a kernel: p[i] is the i-th element after the one it points to."""

    __slots__ = ("dtype", "offset", "region")
    kind = "a pointer"

    def __init__(self, region, dtype, offset):
        self.region, self.dtype, self.offset = region, dtype, offset

    def _locate(self, index, site):
        if len(index) != 1 or type(index[0]) is slice:
            raise fault(
                SimulationError, "a pointer takes one index", site, fix="compute it: i * n + j"
            )
        return self.offset + whole(index[0], site)

    def load(self, index, lanes, mask, site):
        """Return one element per lane."""
        return self.region.load(self.dtype, self._locate(index, site), mask, site)

    def store(self, index, value, lanes, mask, site):
        """Write one element per lane, cast to the pointer's dtype."""
        if value.dtype != self.dtype:
            value = value.astype(self.dtype)
        self.region.store(self.dtype, self._locate(index, site), value, mask, site)

    def element(self, index, lanes, mask, site):
        """Return what atomic operations use: (region, dtype, element)."""
        return self.region, self.dtype, self._locate(index, site)

    def merged(self, mask, old):
        """Return this pointer in the lanes of a mask, an older one elsewhere."""
        if (self.region, self.dtype) != (old.region, old.dtype):
            raise Misuse("one name points into different buffers in different threads")
        return PointerView(self.region, self.dtype, np.where(mask, self.offset, old.offset))


class Triple:
    """threadIdx and the like as a whole: three int32."""

    __slots__ = ("x", "y", "z")
    kind = "a triple"

    def __init__(self, x, y, z):
        self.x, self.y, self.z = x, y, z

    def merged(self, mask, old):
        """Return these three in the lanes of a mask, older ones elsewhere."""
        pairs = zip((self.x, self.y, self.z), (old.x, old.y, old.z), strict=True)
        return Triple(*[merge(mask, mine, other) for mine, other in pairs])
