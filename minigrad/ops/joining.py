"""Joins, splits, pads and repeats."""

import itertools
import math

import numpy as np

from minigrad.arguments import real, short, shown, whole
from minigrad.array.dtypes import promote
from minigrad.array.layout import check_rank, check_size, normalize_axis
from minigrad.devices.backend import device_of
from minigrad.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from minigrad.formulas.expression import call
from minigrad.hints import ADVICE
from minigrad.ops.base import Structural
from minigrad.ops.indexing import Slice, Take
from minigrad.ops.operands import (
    as_variable,
    constant,
    made,
    stored_number,
    variables,
)
from minigrad.ops.shape import Clone
from minigrad.ops.structural_plan import StructuralPlan
from minigrad.tape.variable import Variable, filled

MOST_EMPTY = 2**20  # the most empty parts that split makes


class ConcatenatePlan(StructuralPlan):
    """The gradient of each part is a slice of dy."""

    def __init__(self, op, mask, count):
        super().__init__(op, mask)
        self.input_names = tuple([f"x{k}" for k in range(count)])

    def of_variables(self, node, dy, saved):
        (axis, is_new), start, results = node.attributes, 0, []
        for k, (shape, dtype) in enumerate(node.wanted):
            n = 1 if is_new else shape[axis]
            g = part(dy, axis, start, n, is_new) if self.mask >> k & 1 else None
            results.append(g if g is None or g.dtype is dtype else g.to(dtype))
            start += n
        return results


class Concatenate(Structural):
    """Arrays one after another along an axis.  (..., n, ...), (..., m, ...) -> (..., n+m, ...).

    It takes any number of inputs: apply(xs, axis, is_new). With is_new, as for stack, the inputs
    have one shape and each gets a new axis first.
    """

    samples = [((2, 3), (2, 1)), ((2, 3), (2, 0)), ((3,),), ((2, 2, 2),) * 3]
    inputs, attributes = ("x",), ("axis", "is_new")
    has_gradients = takes_list = True

    @classmethod
    def prepare(cls):
        cls.plans, cls.plan_type = {}, ConcatenatePlan

    @classmethod
    def forward(cls, *given):
        """Joins Arrays to a new Array. given: the Arrays, then axis and is_new."""
        *arrays, axis, is_new = given
        if is_new:
            arrays = [widened(x, axis) for x in arrays]
        dtype, total = arrays[0].dtype, 0
        for x in arrays:
            total += x.shape[axis]
            if x.dtype is not dtype:
                dtype = promote(dtype, x.dtype)
        shape, device = arrays[0].shape, device_of(arrays[0])
        out = device.empty((*shape[:axis], total, *shape[axis + 1 :]), dtype)
        device.join(arrays, out, axis)
        return out

    @classmethod
    def apply(cls, xs, axis, is_new=False):
        """Runs the op on a list of Variables whose shapes fit; records it if needed."""
        return cls.otherwise(*xs, axis, is_new)


def widened(x, axis):
    """Returns a view of an Array with a new axis of size 1."""
    shape, strides = x.shape, x.strides
    return x.view((*shape[:axis], 1, *shape[axis:]), (*strides[:axis], 0, *strides[axis:]))


def part(x, axis, start, count, is_one=False):
    """Returns x from start to start + count - 1 along an axis, a view; is_one: only x at start."""
    place = start if is_one else (start, 1, count)
    return Slice.apply(x, tuple(place if d == axis else (0, 1, n) for d, n in enumerate(x.shape)))


def _variables(name, xs):
    if isinstance(xs, Variable) or not isinstance(xs, (list, tuple)):
        raise ArgumentTypeError(
            f"{name}: wanted a list or tuple of Variables", type(xs).__name__, f"{name}([a, b])"
        )
    if not xs:
        raise ArgumentError(f"{name}: wanted at least one Variable", "an empty list")
    return variables(name, *xs)


def concatenate(xs, axis=0):
    """Joins along an existing axis.  [(..., n, ...), (..., m, ...)] -> (..., n+m, ...).

    >>> import minigrad as mg
    >>> mg.concatenate([mg.zeros((2, 3)), mg.ones((1, 3))]).shape
    (3, 3)
    """
    xs = _variables("concatenate", xs)
    first = xs[0]
    if not first.ndim:
        raise ShapeError("concatenate: wanted at least one axis", "()", "use stack for scalars")
    axis = normalize_axis("concatenate", axis, first.ndim)
    for k, x in enumerate(xs):
        if x.shape == first.shape:
            continue
        if x.ndim != first.ndim or any(
            m != n for d, (m, n) in enumerate(zip(x.shape, first.shape, strict=True)) if d != axis
        ):
            raise ShapeError(
                f"concatenate: wanted shapes that are equal but along axis {axis}",
                f"{first.shape} and, at {k}, {x.shape}",
            )
    return Concatenate.apply(xs, axis)


def stack(xs, axis=0):
    """Joins along a new axis.  [(a, b), (a, b)], 0 -> (2, a, b)."""
    xs = _variables("stack", xs)
    shape = xs[0].shape
    axis = normalize_axis("stack", axis, len(shape) + 1)
    check_rank("stack", len(shape) + 1)
    for k, x in enumerate(xs):
        if x.shape != shape:
            raise ShapeError("stack: wanted equal shapes", f"{shape} and, at {k}, {x.shape}")
    return Concatenate.apply(xs, axis, True)


def split(x, *, sections=None, sizes=None, axis=0):
    """Cuts x along an axis into views: by their number, by cut positions, or by their sizes.

    (..., n, ...) -> [(..., n1, ...), (..., n2, ...), ...].

    Args:
        x: a Variable.
        sections: the number of parts, or the indices to cut before, as in np.split. If the number
            does not divide the size, the first parts are one longer, as in np.array_split.
        sizes: one size for all parts, the last of which may be smaller, or a list of all sizes, as
            in torch.split.
        axis: the axis to cut.

    Raises:
        ArgumentTypeError: neither sections nor sizes was given, or both.
        ShapeError: sizes do not add up to the size of the axis, or the axis does not exist.

    >>> import minigrad as mg
    >>> [part.tolist() for part in mg.split(mg.arange(5), sections=2)]
    [[0, 1, 2], [3, 4]]
    >>> [part.tolist() for part in mg.split(mg.arange(5), sizes=2)]
    [[0, 1], [2, 3], [4]]
    >>> [part.tolist() for part in mg.split(mg.arange(5), sections=[1, 3])]
    [[0], [1, 2], [3, 4]]
    """
    x = as_variable(x, "split")
    axis = normalize_axis("split", axis, x.ndim)
    n = x.shape[axis]
    if (sections is None) == (sizes is None):
        raise ArgumentTypeError(
            "split: wanted sections or sizes", "neither" if sizes is None else "both",
            ADVICE["split"],
        )  # fmt: skip
    if sizes is not None:
        cuts = _cuts_of_sizes(sizes, n)
    elif isinstance(sections, (list, tuple)):
        cuts = [whole("split", "each place to cut at", i) for i in sections]
        cuts = [slice(None, i).indices(n)[1] for i in cuts]
    else:
        count = whole("split", "sections", sections, 1)
        if count > n + MOST_EMPTY:
            raise ShapeError(
                f"split: wanted at most {n + MOST_EMPTY} sections of an axis of size {n}",
                shown(sections),
                "mg.split(x, sizes=1) for parts of one element",
            )
        cuts = [k * (n // count) + min(k, n % count) for k in range(1, count)]
    bounds = zip([0, *cuts], [*cuts, n], strict=True)
    return [part(x, axis, a, max(0, b - a)) for a, b in bounds]


def _cuts_of_sizes(sizes, n):
    """Returns the cut positions for parts of these sizes."""
    if not isinstance(sizes, (list, tuple)):
        return list(range(0, n, whole("split", "sizes", sizes, 1)))[1:]
    sizes = [whole("split", "each of sizes", size, 0) for size in sizes]
    if sum(sizes) != n:
        raise ShapeError(f"split: wanted sizes that add up to {n}", f"{sizes}")
    return list(itertools.accumulate(sizes))[:-1]


class Pad(Structural):
    """A border of one value.  (...), (before, after) per axis, number -> (...)."""

    samples = [((2, 3), ((1, 0), (0, 2)), 0.5), ((3,), ((0, 0),), 0.0), ((0,), ((1, 2),), -1.0)]

    def forward(x, widths, value):
        shape = tuple(a + n + b for n, (a, b) in zip(x.shape, widths, strict=True))
        out = filled(x, value, shape)
        if x.size:
            offset = sum(a * s for (a, _), s in zip(widths, out.strides, strict=True))
            device_of(x).copy(x, out.view(x.shape, out.strides, offset))
        return out

    gradients = (
        lambda dy, x_shape, widths: Slice.apply(
            dy, tuple((a, 1, n) for n, (a, _) in zip(x_shape, widths, strict=True))
        ),
    )
    array_gradients = "same"


def pad(x, widths, value=0.0):
    """Adds a border of one value, like np.pad. widths has a pair (before, after) for each axis.

    (m, n), ((a, b), (c, d)) -> (a + m + b, c + n + d). An int pads every side. With one axis,
    widths may be the pair itself. The value gets x's dtype.

    >>> import minigrad as mg
    >>> mg.pad(mg.variable([1.0, 2.0]), (2, 1)).tolist()
    [0.0, 0.0, 1.0, 2.0, 0.0]
    """
    x, given = as_variable(x, "pad"), widths
    if not isinstance(widths, (tuple, list)):
        widths = [(whole("pad", "widths", widths), whole("pad", "widths", widths))] * x.ndim
    elif not any(isinstance(pair, (tuple, list)) for pair in widths):
        if len(widths) != 2 or x.ndim > 1:
            others = [(0, 0)] * max(0, x.ndim - 1)
            raise ArgumentTypeError(
                "pad: wanted (before, after) for each axis",
                f"{given!r:.60}, which numpy.pad takes for every axis, and PyTorch for the last",
                f"mg.pad(x, {[*others, tuple(widths)]}) for the last axis, "
                f"mg.pad(x, [{tuple(widths)}] * x.ndim) for every one",
            )
        widths = [widths]
    if any(not isinstance(pair, (tuple, list)) or len(pair) != 2 for pair in widths):
        raise ArgumentTypeError("pad: wanted pairs (before, after), one per axis", short(given))
    widths = tuple((whole("pad", "widths", a), whole("pad", "widths", b)) for a, b in widths)
    if len(widths) != x.ndim:
        raise ShapeError(f"pad: wanted {x.ndim} pairs, one per axis of {x.shape}", short(given))
    if min((w for pair in widths for w in pair), default=0) < 0:
        raise ArgumentError("pad: wanted widths of at least 0", short(given))
    if isinstance(value, (Variable, np.ndarray)) and value.size == 1:
        value = value.item()
    if not isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
        raise ArgumentTypeError("pad: wanted a number for value", shown(value))
    if not x.dtype.is_float and (not math.isfinite(value) or value != int(value)):
        raise DTypeError(f"pad: wanted a value that {x.dtype} can hold", f"{value}")
    value = stored_number("pad", value, x.dtype)
    return Pad.apply(x, widths, real(value) if x.dtype.is_float else value)


def apart(y, x):
    """Returns y, cloned if it shares memory with x, for functions that always return a copy."""
    return Clone.apply(y) if y.array.storage is x.array.storage else y


def repeat(x, repeats, *, axis=None):
    """Repeats each element, like np.repeat. repeats is an int, or a list with one per element.

    (a, n, b), 3, axis=1 -> (a, 3n, b). axis None repeats the flattened x. The result is a copy.

    >>> import minigrad as mg
    >>> mg.repeat(mg.variable([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    given = x = as_variable(x, "repeat")
    if axis is None:
        x, axis = call("reshape", x, (-1,)), 0
    axis = normalize_axis("repeat", axis, x.ndim)
    n = x.shape[axis]
    if isinstance(repeats, (list, tuple)) or getattr(repeats, "ndim", 0):
        counts = [whole("repeat", "each of repeats", k) for k in repeats]
    else:
        counts = whole("repeat", "repeats", repeats)
    if min(counts if isinstance(counts, list) else [counts], default=0) < 0:
        raise ArgumentError("repeat: wanted counts of at least 0", short(repeats))
    if isinstance(counts, list):
        if len(counts) != n:
            raise ShapeError(f"repeat: wanted {n} counts, one per element", f"{len(counts)}")
        check_size((sum(counts),))
        places = made("repeat", lambda: np.repeat(np.arange(n), np.asarray(counts, np.int64)))
        return Take.apply(x, constant(places, near=x), axis)
    shape = x.shape
    check_rank("repeat", x.ndim + 1)
    wide = call("unsqueeze", x, axis + 1)
    wide = call("expand", wide, (*shape[: axis + 1], counts, *shape[axis + 1 :]))
    wide = call("reshape", wide, (*shape[:axis], n * counts, *shape[axis + 1 :]))
    return apart(wide, given)


functions = (concatenate, stack, split, pad, repeat)
