"""The least time that a row can take on this machine, whoever does it.

Counted are the bytes that must move, and the floating-point operations of its products:

- bytes: inputs are read once and results written once; a training step reads and writes parameters
  and optimizer state once. What lies between (activations, gradients) could stay in registers or
  caches, and is not counted.
- operations: products of matrices, 2 for each multiply-add: forward, gradient of the weights, and
  gradient of the input unless that is data. Causal attention counts what the mask leaves.

The limit is the greater of bytes / copy bandwidth and operations / BLAS rate, for the two may
overlap. A copy as large as these bytes sets the bandwidth: small ones stay in a cache.
"""

from itertools import pairwise
from typing import NamedTuple

FLOAT, INT = 4, 8  # bytes
ADAM = 6 * FLOAT  # parameter and two moments, each read and written
SGD = 2 * FLOAT


class Work(NamedTuple):
    """What must be done: bytes moved, floating-point operations."""

    nbytes: float
    operations: float


def mlp(sizes, batch):
    """A training step of a multi-layer perceptron."""
    products = [2 * batch * i * o for i, o in pairwise(sizes)]
    parameters = sum(i * o + o for i, o in pairwise(sizes))
    data = batch * (sizes[0] * FLOAT + INT)
    return Work(data + ADAM * parameters, 3 * sum(products) - products[0])


def cnn(batch, channels, size):
    """A training step of a small convolutional network."""
    first, second = channels
    features = second * (size // 4) ** 2
    parameters = 10 * first + (9 * first + 1) * second + 10 * features + 10
    one = 2 * batch * size**2 * 9 * first
    two = 2 * batch * (size // 2) ** 2 * 9 * first * second
    three = 2 * batch * features * 10
    data = batch * (size**2 * FLOAT + INT)
    return Work(data + ADAM * parameters, 2 * one + 3 * (two + three))


def recurrent(steps, inputs, units, batch):
    """A training step of a recurrent network."""
    parameters = units * inputs + units + units**2 + 10 * units + 10
    enter = 2 * batch * inputs * units * steps
    back = 2 * batch * units**2 * (steps - 1)
    leave = 2 * batch * units * 10
    data = batch * (steps * inputs * FLOAT + INT)
    return Work(data + SGD * parameters, 2 * enter + 3 * (back + leave))


def _block(width, length, batch):
    """Parameters of one transformer block, and operations forward and backward."""
    linear = 12 * width**2
    attention = 2 * length * (length + 1) // 2 * width * batch  # one product, all heads
    return linear + 13 * width, 3 * 2 * batch * length * linear + 6 * attention


def block(width, heads, length, batch):
    """One transformer block, forward and backward; its value is a result too."""
    parameters, operations = _block(width, length, batch)
    return Work((4 * batch * length * width + 2 * parameters) * FLOAT, operations)


def transformer(width, heads, length, batch, layers, vocabulary):
    """A training step of a small language model."""
    parameters, operations = _block(width, length, batch)
    outside = (2 * vocabulary + length + 2) * width
    head = 3 * 2 * batch * length * width * vocabulary
    data = 2 * batch * length * INT
    return Work(data + ADAM * (layers * parameters + outside), layers * operations + head)


def _convolution(batch, channels, filters, size):
    """Bytes of image, filters and result; operations of one pass."""
    pixels = batch * size**2
    parts = [pixels * channels, filters * channels * 9, pixels * filters]
    return [FLOAT * n for n in parts], 2 * pixels * filters * channels * 9


def conv2d_forward(**shape):
    """A convolution."""
    parts, operations = _convolution(**shape)
    return Work(sum(parts), operations)


def conv2d_backward(**shape):
    """The gradients of image and filters, from both and the upstream gradient."""
    (x, w, y), operations = _convolution(**shape)
    return Work(2 * x + 2 * w + y, 2 * operations)


COUNTS = {
    "mlp": mlp,
    "cnn": cnn,
    "recurrent": recurrent,
    "block": block,
    "transformer": transformer,
    "conv2d_forward": conv2d_forward,
    "conv2d_backward": conv2d_backward,
    "gelu": lambda count: Work(2 * FLOAT * count, 0),
    "softmax": lambda rows, columns: Work(4 * FLOAT * rows * columns, 0),
    "layer_norm": lambda rows, columns: Work(FLOAT * columns * (4 * rows + 4), 0),
    "adam": lambda shapes: Work((ADAM + FLOAT) * sum(a * b for a, b in shapes), 0),
}


def bandwidth(nbytes, copies):
    """Bytes per second of the largest copy measured that is no larger, or of the smallest."""
    fitting = [rate for size, rate in copies if size <= nbytes]
    return fitting[-1] if fitting else copies[0][1]


def limit(row, rates):
    """The limit of a row as the JSON file holds it, or None where nothing is counted."""
    if rates is None or row.kind not in COUNTS:
        return None
    work = COUNTS[row.kind](**row.settings)
    moving = work.nbytes / bandwidth(work.nbytes, rates["copy"])
    computing = work.operations / rates["blas"]
    return {
        "seconds": max(moving, computing),
        "by": "bytes" if moving >= computing else "operations",
        "bytes": work.nbytes,
        "operations": work.operations,
    }
