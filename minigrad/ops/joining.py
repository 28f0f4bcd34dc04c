"""Several arrays into one, one into several, larger or repeated."""

import numpy as np

from minigrad.array.dtypes import promote
from minigrad.array.layout import check_rank, normalize_axis
from minigrad.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from minigrad.graph.modes import state
from minigrad.graph.node import Node
from minigrad.graph.variable import Variable
from minigrad.kernels.backend import device_of
from minigrad.kernels.expression import call
from minigrad.ops.base import Operation, Structural
from minigrad.ops.indexing import Slice, Take
from minigrad.ops.operands import check_operands, constant, variables
from minigrad.ops.watching import announced


class Concatenate(Operation):
    """Arrays one after the other along an axis.  (..., n, ...), (..., m, ...) -> (..., n+m, ...).

    Takes any number of inputs: apply(xs, axis).
    """

    samples = [((2, 3), (2, 1)), ((2, 3), (2, 0)), ((3,),), ((2, 2, 2),) * 3]
    inputs = ("x",)

    @classmethod
    def prepare(cls):
        cls.plans = {}

    @classmethod
    def forward(cls, arrays, axis):
        """A new Array."""
        first, dtype = arrays[0], arrays[0].dtype
        for x in arrays[1:]:
            dtype = promote(dtype, x.dtype)
        shape, total = first.shape, sum(x.shape[axis] for x in arrays)
        device = device_of(first)
        out = device.empty((*shape[:axis], total, *shape[axis + 1 :]), dtype)
        offset = 0
        for x in arrays:
            if x.size:
                device.copy(x, out.view(x.shape, out.strides, offset))
            offset += x.shape[axis] * out.strides[axis]
        return out

    @classmethod
    def apply(cls, xs, axis):
        """Runs it on a list of Variables whose shapes fit; records it if needed."""
        if state.path == 2:
            return announced(cls, xs, xs, (axis,))
        return cls.run(xs, xs, (axis,))

    @classmethod
    def run(cls, args, variables, attributes):
        """forward and record."""
        check_operands(cls.name, variables)
        out = cls.forward([v.array for v in variables], *attributes)
        needs = tuple([bool(v._requires_grad) for v in variables])
        if not state.recording or not out.dtype.is_float or True not in needs:
            return Variable(out)
        plan = cls.plans.get(needs)
        if plan is None:
            plan = cls.plans[needs] = ConcatenatePlan(needs)
        edges = tuple([(v.node or v) if v._requires_grad else None for v in variables])
        wanted = tuple([(v.shape, v.dtype) for v in variables])
        return Variable(out, Node(plan, edges, (), (), wanted, attributes), True)


class ConcatenatePlan:
    """The gradient of each part is a slice of dy."""

    name, saved_names = "concatenate", ()

    def __init__(self, needs):
        self.needs = needs
        self.input_names = tuple(f"x{k}" for k in range(len(needs)))

    def backward(self, node, dy):
        """First order: Arrays."""
        return [g if g is None else g.array for g in self.backward_graph(node, Variable(dy))]

    def backward_graph(self, node, dy):
        """Gradients as Variables with a graph of their own."""
        (axis,), start, results = node.attributes, 0, []
        for needed, (shape, dtype) in zip(self.needs, node.wanted, strict=True):
            n = shape[axis]
            g = part(dy, axis, start, n) if needed else None
            results.append(g if g is None or g.dtype is dtype else g.to(dtype))
            start += n
        return results


def part(x, axis, start, count):
    """x from start to start + count - 1 along an axis, a view."""
    spec = tuple((start, 1, count) if d == axis else (0, 1, n) for d, n in enumerate(x.shape))
    return Slice.apply(x, spec)


def _variables(name, xs):
    if isinstance(xs, Variable) or not isinstance(xs, (list, tuple)):
        raise ArgumentTypeError(
            f"{name}: wanted a list or tuple of Variables", type(xs).__name__, f"{name}([a, b])"
        )
    if not xs:
        raise ArgumentError(f"{name}: wanted at least one Variable", "an empty list")
    return variables(name, *xs)


def concatenate(xs, axis=0):
    """Joins along an axis that exists.  [(..., n, ...), (..., m, ...)] -> (..., n+m, ...).

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
    axis = normalize_axis("stack", axis, xs[0].ndim + 1)
    for k, x in enumerate(xs):
        if x.shape != xs[0].shape:
            raise ShapeError("stack: wanted equal shapes", f"{xs[0].shape} and, at {k}, {x.shape}")
    return Concatenate.apply([call("unsqueeze", x, axis) for x in xs], axis)


def split(x, sections, axis=0):
    """Parts along an axis, views: `sections` equal ones, or cut before each index of a list.

    As np.split, but where the size is no multiple of the number of sections the first ones are one
    longer, as np.array_split and torch.tensor_split have it.

    >>> import minigrad as mg
    >>> [part.tolist() for part in mg.split(mg.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    >>> [part.tolist() for part in mg.split(mg.arange(5), [1, 3])]
    [[0], [1, 2], [3, 4]]
    """
    x = x if isinstance(x, Variable) else constant(x, "split")
    axis = normalize_axis("split", axis, x.ndim)
    n = x.shape[axis]
    if hasattr(sections, "__index__"):
        count = sections.__index__()
        if count < 1:
            raise ArgumentError("split: wanted at least one section", f"{count}")
        sizes = [n // count + (k < n % count) for k in range(count)]
        cuts = [sum(sizes[:k]) for k in range(1, count)]
    else:
        try:
            cuts = [slice(None, i.__index__()).indices(n)[1] for i in sections]
        except (TypeError, AttributeError):
            raise ArgumentTypeError(
                "split: wanted an int, or a list of ints to cut at", f"{sections!r}"
            ) from None
    bounds = zip([0, *cuts], [*cuts, n], strict=True)
    return [part(x, axis, a, max(0, b - a)) for a, b in bounds]


class Pad(Structural):
    """A border of one value.  (...), ((before, after), ...) an axis, number -> (...)."""

    samples = [((2, 3), ((1, 0), (0, 2)), 0.5), ((3,), ((0, 0),), 0.0), ((0,), ((1, 2),), -1.0)]

    def forward(x, widths, value):
        device = device_of(x)
        shape = tuple(a + n + b for n, (a, b) in zip(x.shape, widths, strict=True))
        out = device.empty(shape, x.dtype)
        device.fill(out, value)
        if x.size:
            offset = sum(a * s for (a, _), s in zip(widths, out.strides, strict=True))
            device.copy(x, out.view(x.shape, out.strides, offset))
        return out

    gradients = (
        lambda dy, x_shape, widths: Slice.apply(
            dy, tuple((a, 1, n) for n, (a, _) in zip(x_shape, widths, strict=True))
        ),
    )


def pad(x, widths, value=0.0):
    """A border of one value, as np.pad: widths is (before, after) for all axes, or one an axis.

    An int pads every side. The value takes x's dtype.

    >>> import minigrad as mg
    >>> mg.pad(mg.variable([1.0, 2.0]), (2, 1)).tolist()
    [0.0, 0.0, 1.0, 2.0, 0.0]
    """
    x = x if isinstance(x, Variable) else constant(x, "pad")
    given = widths
    if hasattr(widths, "__index__"):
        widths = (widths, widths)
    try:
        widths = tuple(widths)
        if len(widths) == 2 and all(hasattr(w, "__index__") for w in widths):
            widths = (widths,) * x.ndim
        widths = tuple((a.__index__(), b.__index__()) for a, b in widths)
    except (TypeError, ValueError, AttributeError):
        raise ArgumentTypeError(
            "pad: wanted an int, (before, after), or a list of such pairs, one an axis",
            f"{given!r}",
        ) from None
    if len(widths) != x.ndim:
        raise ShapeError(f"pad: wanted {x.ndim} pairs, one an axis of {x.shape}", f"{given!r}")
    if min((w for pair in widths for w in pair), default=0) < 0:
        raise ArgumentError("pad: wanted widths of at least 0", f"{given!r}")
    if not x.dtype.is_float:
        if value != int(value):
            raise DTypeError(f"pad: wanted a value that {x.dtype} can hold", f"{value}")
        value = int(value)
    return Pad.apply(x, widths, value)


def repeat(x, repeats, axis=None):
    """Each element several times, as np.repeat: repeats is an int, or a list with one an element.

    axis None takes the flattened x.  (a, n, b), 3, 1 -> (a, 3n, b).

    >>> import minigrad as mg
    >>> mg.repeat(mg.variable([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    x = x if isinstance(x, Variable) else constant(x, "repeat")
    if axis is None:
        x, axis = call("reshape", x, (x.size,)), 0
    axis = normalize_axis("repeat", axis, x.ndim)
    n = x.shape[axis]
    try:
        if hasattr(repeats, "__index__") and not getattr(repeats, "ndim", 0):
            counts = repeats.__index__()
        else:
            counts = [int(k.__index__()) for k in repeats]
    except (TypeError, AttributeError):
        raise ArgumentTypeError(
            "repeat: wanted an int, or a list of ints", f"{repeats!r:.60}"
        ) from None
    if min(counts if isinstance(counts, list) else [counts], default=0) < 0:
        raise ArgumentError("repeat: wanted counts of at least 0", f"{repeats!r:.60}")
    if isinstance(counts, list):
        if len(counts) != n:
            raise ShapeError(f"repeat: wanted {n} counts, one an element", f"{len(counts)}")
        places = [i for i, k in enumerate(counts) for _ in range(k)]
        return Take.apply(x, constant(np.asarray(places, np.int64), near=x), axis)
    shape = x.shape
    check_rank("repeat", x.ndim + 1)
    wide = call("unsqueeze", x, axis + 1)
    wide = call("expand", wide, (*shape[: axis + 1], counts, *shape[axis + 1 :]))
    return call("reshape", wide, (*shape[:axis], n * counts, *shape[axis + 1 :]))


functions = (concatenate, stack, split, pad, repeat)
