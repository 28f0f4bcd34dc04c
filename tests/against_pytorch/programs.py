"""Random programs over Variables: drawn from a generator, run by any library with the same ops.

A program is data: leaves, steps of (name, numbers of operands, parameters), and the numbers of the
values that its loss sums. `minigrad_ops` and `pytorch_ops` say what each name means.
"""

from dataclasses import dataclass, field

import numpy as np

SIZES = [1, 2, 3, 4, 5, 7]
LARGEST = 400  # elements of one value
BOUND = 1e3  # a larger value would drown the others in rounding


@dataclass
class Program:
    """What is run.

    Attributes:
        dtype: of the leaves.
        leaves: arrays.
        steps: (name, operands, parameters); operand k is leaf k, or the value of a step after them.
        roots: numbers of the values that the loss sums, each times weights of its own.
        order: 1, or 2 for the gradients of a sum of squares of gradients too.
    """

    dtype: str
    leaves: list
    steps: list = field(default_factory=list)
    roots: list = field(default_factory=list)
    order: int = 1

    def text(self):
        """The program in lines that a person reads."""
        lines = [f"v{k} = leaf {x.shape} {self.dtype}" for k, x in enumerate(self.leaves)]
        for k, (name, operands, parameters) in enumerate(self.steps, len(self.leaves)):
            values = ", ".join([f"v{i}" for i in operands])
            lines.append(f"v{k} = {name}({values}) {parameters or ''}")
        return "\n".join([*lines, f"loss of {self.roots}, order {self.order}"])


def weights_of(shape, number):
    """The weights with which a value enters the loss: unlike each other, and the same each time."""
    rng = np.random.default_rng(number)
    return np.round(rng.uniform(-1, 1, shape) * 64) / 64


def axis(rng, shape):
    """An axis, counted from either end, or None if there is none."""
    return int(rng.integers(-len(shape), len(shape))) if shape else None


def axes(rng, shape):
    """Some of the axes: None for all, a number or a tuple."""
    if not shape or rng.random() < 0.2:
        return None
    if rng.random() < 0.6:
        return axis(rng, shape)
    count = int(rng.integers(1, len(shape) + 1))
    return tuple(int(a) for a in rng.permutation(len(shape))[:count])


def no_parameters(rng, *shapes):
    """For operations that take any shape."""
    return {}


def reduction(rng, shape):
    """Axes and whether they stay."""
    if 0 in shape:
        return None
    return {"axis": axes(rng, shape), "keepdims": bool(rng.random() < 0.5)}


def along(rng, shape):
    """One axis."""
    return {"axis": axis(rng, shape)} if shape and 0 not in shape else None


def broadcasting(rng, a, b):
    """Two shapes that broadcast."""
    try:
        shape = np.broadcast_shapes(a, b)
    except ValueError:
        return None
    return {} if np.prod(shape) <= LARGEST and len(shape) <= 5 else None


def choosing(rng, a, b, c):
    """Three shapes that broadcast."""
    try:
        np.broadcast_shapes(a, b, c)
    except ValueError:
        return None
    return {}


def reshaping(rng, shape):
    """Another shape of as many elements, one of them -1 at times."""
    size, new = int(np.prod(shape)), []
    rest = size
    while rest > 1 and len(new) < 4:
        divisors = [d for d in range(1, rest + 1) if rest % d == 0]
        new.append(int(rng.choice(divisors)))
        rest //= new[-1]
    if rest != 1 or not size:
        return None
    new += [1] * int(rng.integers(0, 2))
    if new and rng.random() < 0.3:
        new[int(rng.integers(len(new)))] = -1
    return {"shape": tuple(new)}


def permuting(rng, shape):
    """An order of the axes."""
    return {"axes": tuple(int(a) for a in rng.permutation(len(shape)))} if shape else None


def expanding(rng, shape):
    """A shape that this one broadcasts to."""
    new = [n if n != 1 or rng.random() < 0.4 else int(rng.choice(SIZES)) for n in shape]
    if rng.random() < 0.4:
        new.insert(0, int(rng.choice(SIZES)))
    return {"shape": tuple(new)} if new and np.prod(new) <= LARGEST and len(new) <= 5 else None


def slicing(rng, shape):
    """A basic index: numbers, slices with steps, None and an ellipsis."""
    index = []
    for n in shape[: int(rng.integers(0, len(shape) + 1))]:
        kind = rng.random()
        if kind < 0.3 and n:
            index.append(int(rng.integers(-n, n)))
        elif kind < 0.9:
            start, stop = sorted(int(i) for i in rng.integers(0, n + 1, 2))
            index.append(slice(start, stop, int(rng.integers(1, 3))))
        else:
            index.append(slice(None))
    if rng.random() < 0.3:
        index.append(None)
    if rng.random() < 0.2:
        index.append(Ellipsis)
    return {"index": tuple(index)}


def taking(rng, shape):
    """Rows of an axis by an array of their numbers, some of them negative and some twice."""
    if not shape or 0 in shape:
        return None
    a = int(rng.integers(0, len(shape)))
    count = tuple(int(rng.choice(SIZES[:4])) for _ in range(int(rng.integers(1, 3))))
    index = rng.integers(-shape[a], shape[a], count)
    return {"axis": a, "index": index.tolist()}


def pairing(rng, shape):
    """Elements by two arrays of numbers."""
    if len(shape) < 2 or 0 in shape:
        return None
    n = int(rng.choice(SIZES))
    return {"i": rng.integers(0, shape[0], n).tolist(), "j": rng.integers(0, shape[1], n).tolist()}


def joining(rng, a, b):
    """Two shapes that differ along one axis alone."""
    if not a or len(a) != len(b):
        return None
    different = [d for d in range(len(a)) if a[d] != b[d]]
    if len(different) > 1:
        return None
    return {"axis": different[0] if different else axis(rng, a)}


def stacking(rng, a, b):
    """Equal shapes, and the place of the new axis."""
    return {"axis": int(rng.integers(0, len(a) + 1))} if a == b and len(a) < 5 else None


def multiplying(rng, a, b):
    """Shapes that matmul takes, or shapes that it takes once the last two axes are swapped."""
    if not a or not b or 0 in a or 0 in b:
        return None
    try:
        np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        return None
    if a[-1] == (b[-2] if len(b) > 1 else b[0]):
        return {"swap": False}
    return {"swap": True} if len(b) > 1 and a[-1] == b[-1] else None


def normalising(rng, shape):
    """A last axis of more than one element."""
    return {} if shape and shape[-1] > 1 and 0 not in shape else None


def labelling(rng, shape):
    """A label for each row of logits."""
    if len(shape) != 2 or 0 in shape:
        return None
    reduction = str(rng.choice(["mean", "sum", "none"]))
    return {"labels": rng.integers(0, shape[1], shape[0]).tolist(), "reduction": reduction}


def convolving(rng, x, w):
    """Images and kernels that fit."""
    if len(x) != 4 or len(w) != 4 or x[1] != w[1] or 0 in x + w:
        return None
    padding, stride = int(rng.integers(0, 2)), int(rng.integers(1, 3))
    if any(n + 2 * padding < m for n, m in zip(x[2:], w[2:], strict=True)):
        return None
    return {"stride": stride, "padding": padding}


def pooling(rng, x):
    """Images of at least 2 by 2."""
    return {"size": 2} if len(x) == 4 and min(x[2:]) >= 2 and 0 not in x else None


def padding(rng, shape):
    """Up to two elements before and behind, along every axis."""
    if not shape:
        return None
    widths = tuple(tuple(int(n) for n in rng.integers(0, 3, 2)) for _ in shape)
    return {"widths": widths, "value": float(rng.integers(-1, 2))}


def flipping(rng, shape):
    """One axis or several."""
    found = axes(rng, shape) if shape else None
    return None if found is None else {"axis": found}


def scaling(rng, shape):
    """A number, for operations with one."""
    return {"number": float(rng.integers(-8, 9)) / 4 or 0.5}


def clipping(rng, shape):
    """Bounds."""
    low = float(rng.integers(-4, 1)) / 2 - 0.13
    return {"low": low, "high": low + float(rng.integers(1, 5)) / 2}


def spreading(rng, shape):
    """Of more than one element along the axes."""
    found = reduction(rng, shape)
    if found is None or not shape:
        return None
    over = range(len(shape)) if found["axis"] is None else np.atleast_1d(found["axis"])
    return found if np.prod([shape[a] for a in over]) > 1 else None


def writing(rng, a, b):
    """A target in place, and something that broadcasts to its shape."""
    try:
        return {} if np.broadcast_shapes(a, b) == a else None
    except ValueError:
        return None


def writing_to_part(rng, a):
    """A basic index and a number."""
    return {**slicing(rng, a), "number": float(rng.integers(-4, 5)) / 4} if a else None


# name -> (operands, what draws the parameters); which operands are written follows from the name
SHAPELESS = (
    "neg", "abs", "square", "sqrt_of_positive", "exp", "log_of_positive", "sin", "cos", "tanh",
    "sigmoid", "erf", "relu", "gelu", "silu", "softplus", "elu", "leaky_relu", "expm1", "sign",
    "reciprocal_of_positive", "log1p_of_positive", "rsqrt_of_positive", "detach", "clone", "floor",
    "transpose", "contiguous_of_transposed", "unsqueeze", "flatten", "cast_twice", "where_positive",
    "add_to_itself_", "mul_by_itself_",
)  # fmt: skip
BINARY = ["add", "sub", "mul", "div_by_positive", "maximum", "minimum", "pow_of_positive"]
REDUCTIONS = ["sum", "mean", "amax", "amin", "logsumexp", "norm"]
ALONG_AXIS = ["softmax", "log_softmax", "cumsum", "squeeze_axis", "split"]
OPS = {
    **dict.fromkeys(SHAPELESS, (1, no_parameters)),
    **dict.fromkeys(BINARY, (2, broadcasting)),
    "where": (3, choosing),
    **dict.fromkeys(REDUCTIONS, (1, reduction)),
    **dict.fromkeys(ALONG_AXIS, (1, along)),
    "prod": (1, reduction),
    "var": (1, spreading),
    "std": (1, spreading),
    "reshape": (1, reshaping),
    "permute": (1, permuting),
    "expand": (1, expanding),
    "slice": (1, slicing),
    "take": (1, taking),
    "pairs": (1, pairing),
    "concatenate": (2, joining),
    "stack": (2, stacking),
    "matmul": (2, multiplying),
    "layer_norm": (1, normalising),
    "cross_entropy": (1, labelling),
    "conv2d": (2, convolving),
    "max_pool2d": (1, pooling),
    "avg_pool2d": (1, pooling),
    "pad": (1, padding),
    "flip": (1, flipping),
    "times": (1, scaling),
    "plus": (1, scaling),
    "power": (1, scaling),
    "clip": (1, clipping),
    "add_": (2, writing),
    "sub_": (2, writing),
    "mul_": (2, writing),
    "copy_": (2, writing),
    "fill_": (1, scaling),
    "setitem": (1, writing_to_part),
}
WRITES = {name for name in OPS if name.endswith("_") or name == "setitem"}


def draw_leaves(rng):
    """One to four arrays, whose shapes fit each other often."""
    base = [int(rng.choice(SIZES)) for _ in range(int(rng.integers(0, 4)))]
    shapes = []
    for _ in range(int(rng.integers(1, 4))):
        kind = rng.random()
        if kind < 0.5:
            shapes.append(list(base))
        elif kind < 0.8:
            shapes.append([n if rng.random() < 0.6 else 1 for n in base[int(rng.integers(0, 2)) :]])
        else:
            shapes.append([int(rng.choice(SIZES)) for _ in range(int(rng.integers(0, 4)))])
    if rng.random() < 0.1:
        channels = int(rng.choice([1, 2, 3]))
        shapes = [[2, channels, 5, 4], [3, channels, 2, 3], *shapes[:1]]
    if rng.random() < 0.02:
        shapes[0] = [0, *shapes[0][1:]]
    dtype = "float32" if rng.random() < 0.2 else "float64"
    # few binary places: exact in both dtypes; never 0, where many an operation has a kink
    values = [np.round(rng.standard_normal(s) * 512) / 512 + 1 / 1024 for s in shapes]
    return Program(dtype, [np.asarray(v, dtype) for v in values])


def draw_step(rng, shapes, writable):
    """A step whose parameters fit, or None: a caller tries again.

    Args:
        rng: the generator.
        shapes: of all values so far.
        writable: numbers of the values that may be written.
    """
    names = list(OPS)
    name = names[int(rng.integers(len(names)))]
    count, parameters_of = OPS[name]
    newest = rng.random() < 0.7  # so that programs are deep and not only wide
    operands = [int(i) for i in rng.integers(0, len(shapes), count)]
    if newest:
        operands[0] = len(shapes) - 1
    if name in WRITES and operands[0] not in writable:
        return None
    parameters = parameters_of(rng, *[shapes[i] for i in operands])
    return None if parameters is None else (name, operands, parameters)
