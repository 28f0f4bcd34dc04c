"""What one golden case is: inputs drawn from a generator of its own, and a PyTorch formula."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

Draw = Callable[[np.random.Generator], np.ndarray]


def _short(values):
    """Values with ten binary places: exact in float32, and quick to compress."""
    return np.round(values * 1024) / 1024


def normal(*shape) -> Draw:
    """Normal values."""
    return lambda rng: _short(rng.standard_normal(shape))


def positive(*shape) -> Draw:
    """Values in [0.5, 3]."""
    return lambda rng: _short(rng.uniform(0.5, 3, shape))


def unit(*shape) -> Draw:
    """Values in [0, 1]."""
    return lambda rng: _short(rng.uniform(0, 1, shape))


def away(*shape) -> Draw:
    """Values of both signs at least 0.1 away from every multiple of 0.5, where kinks are."""

    def draw(rng):
        return _short(rng.integers(-4, 4, shape) * 0.5 + rng.uniform(0.12, 0.38, shape))

    return draw


def distinct(*shape) -> Draw:
    """Values of which no two are equal: an order has no ties."""

    def draw(rng):
        count = int(np.prod(shape))
        return rng.permutation(count).reshape(shape) * 0.25 - count / 8 + 0.125

    return draw


def integers(low, high, *shape) -> Draw:
    """int64 in [low, high)."""
    return lambda rng: rng.integers(low, high, shape)


def probabilities(*shape) -> Draw:
    """Rows of multiples of 1/64 that sum to one along axis 1."""

    def draw(rng):
        batch, classes, *rest = shape
        counts = rng.multinomial(64, np.full(classes, 1 / classes), size=(batch, *rest))
        return np.moveaxis(counts, -1, 1) / 64

    return draw


def fixed(values, dtype=None) -> Draw:
    """These very values."""
    return lambda rng: np.asarray(values, dtype)


@dataclass
class Case:
    """One call of an operation.

    Attributes:
        name: of the case, unique.
        op: the operation's name in minigrad; `operator.x` is Python's own.
        inputs: name -> draw, in the order in which `reference` takes them.
        reference: PyTorch's formula; returns one tensor or several.
        arguments: positional arguments of minigrad's call; "$x" stands for input x.
        keywords: keyword arguments of minigrad's call; "$x" as above.
        constant: floating-point inputs that get no gradient.
    """

    name: str
    op: str
    inputs: dict[str, Draw]
    reference: Callable
    arguments: list
    keywords: dict = field(default_factory=dict)
    constant: tuple = ()

    def draw(self) -> dict[str, np.ndarray]:
        """The inputs: they depend on the name alone, so new cases leave old ones as they are."""
        rng = self.generator()
        return {name: draw(rng) for name, draw in self.inputs.items()}

    def generator(self):
        """The case's own generator."""
        return np.random.default_rng(zlib.crc32(self.name.encode()))


def case(name, op, inputs, reference, arguments=None, constant=(), **keywords) -> Case:
    """A Case whose positional arguments are all its inputs unless `arguments` says otherwise."""
    if arguments is None:
        arguments = ["$" + key for key in inputs]
    return Case(name, op, inputs, reference, arguments, keywords, tuple(constant))
