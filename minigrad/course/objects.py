"""The plain objects that learners' functions work on, in Python alone.

Their field names are the engine's, so the same function runs in a check, in a notebook and inside
the engine.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False, repr=False)
class Node:
    """One recorded operation.

    Attributes:
        op: the name of the operation, such as `"mul"`.
        inputs: for each input, the Node that made it, or None if none did.
        saved: the values that the forward pass kept for the backward pass.
        line: where the operation was called, as `file:line`.
    """

    op: str
    inputs: tuple[Node | None, ...] = ()
    saved: tuple[Any, ...] = ()
    line: str = ""

    def __repr__(self) -> str:
        makers = ", ".join(node.op if node is not None else "a leaf" for node in self.inputs)
        place = f" at {self.line}" if self.line else ""
        return f"Node({self.op}, of {makers or 'nothing'}{place})"


@dataclass(eq=False)
class Storage:
    """Values that several Variables may share.

    Attributes:
        data: the values, a NumPy array.
        version: how often they were written in place.
    """

    data: Any
    version: int = 0


@dataclass(eq=False)
class View:
    """A view of a Storage's values; it has none of its own.

    Attributes:
        base: the Storage or View of which it shows a part.
        index: the part, as in `base.data[index]`.
    """

    base: Storage | View
    index: Any = ...

    @property
    def data(self) -> Any:
        """Return the values it shows; writing into them writes into the Storage."""
        return self.base.data[self.index]

    @property
    def version(self) -> int:
        """Return the version of what it shows."""
        return self.base.version


@dataclass(eq=False)
class Ctx:
    """What one operation keeps from its forward pass for its backward pass.

    Attributes:
        op: the name of the operation.
        saved: the Storages and Views that it saved; None once backward has released them.
        versions: the version of each at that time.
        line: where the operation was called, as `file:line`.
    """

    op: str
    saved: tuple[Storage | View, ...] | None = ()
    versions: tuple[int, ...] = ()
    line: str = ""


@dataclass(eq=False)
class Parameter:
    """Values that training changes.

    Attributes:
        values: the numbers, a NumPy array.
        grad: the gradient, an array of the same shape; None if no gradient arrived.
        requires_grad: False if it is frozen.
        id: a number that no other Parameter has.
    """

    values: Any
    grad: Any = None
    requires_grad: bool = True
    id: int = field(default_factory=itertools.count(1).__next__)


@dataclass(eq=False, repr=False)
class Optimizer:
    """Makes steps for some Parameters.

    Attributes:
        parameters: the list of them.
        update: what `step` calls.
    """

    parameters: list[Parameter]
    update: Callable[[], Any] = lambda: None

    def __repr__(self) -> str:
        return f"Optimizer(of {len(self.parameters)} parameters)"

    def step(self) -> None:
        """Update the parameters."""
        self.update()


class StuckError(RuntimeError):
    """Raised where a worker waits for an array that will never come."""


@dataclass(eq=False)
class Worker:
    """One of several workers, each with a memory of its own, that send arrays to one another.

    Attributes:
        rank: its number, from 0 to size - 1.
        size: how many workers there are.
        post: what carries the arrays, with send(rank, to, array) and receive(rank, source).
    """

    rank: int
    size: int
    post: Any = field(repr=False)

    def send(self, to: int, array: Any) -> None:
        """Send an array to the worker of rank `to`, as it is now; go on at once."""
        self.post.send(self.rank, self._other("send to", to), array)

    def receive(self, source: int) -> Any:
        """Wait for the next array from the worker of rank `source`, and return it.

        Raises:
            StuckError: it will never come, because that worker has ended, or waits itself.
        """
        return self.post.receive(self.rank, self._other("receive from", source))

    def _other(self, what: str, rank: int) -> int:
        try:
            other = operator.index(rank)
        except TypeError:
            raise TypeError(f"{what} {rank!r}: a rank is an int") from None
        if not 0 <= other < self.size or other == self.rank:
            raise ValueError(
                f"worker {self.rank}: {what} worker {other}, but the others are "
                f"{', '.join(str(r) for r in range(self.size) if r != self.rank) or 'none'}"
            )
        return other


@dataclass(eq=False)
class Box:
    """A Variable reduced to its two identities: whose bytes, and whose history.

    Attributes:
        storage: the Storage whose values it shows.
        node: the Node that made it, `Node("leaf")` for a leaf that requires a gradient, and None
            if no gradient flows.
    """

    storage: Storage
    node: Node | None = None


ELEMENTWISE = ("add", "sub", "mul", "div", "neg", "exp", "tanh", "greater")
SUMS = ("sum", "sum_rows")


@dataclass(frozen=True)
class Op:
    """One operation of a program: it reads values and writes a new one.

    Attributes:
        name: one of ELEMENTWISE; "sum" of all entries, "sum_rows" of each column over all rows;
            "matmul", "transpose".
        inputs: the names of the values that it reads; plain numbers may stand among them.
        output: the name of the value that it writes.
    """

    name: str
    inputs: tuple[str | float, ...]
    output: str

    @property
    def is_elementwise(self) -> bool:
        """Return whether an entry of its output depends only on the same entry of its inputs."""
        return self.name in ELEMENTWISE

    @property
    def is_sum(self) -> bool:
        """Return whether it adds up entries, which can come in any order."""
        return self.name in SUMS

    def __str__(self) -> str:
        return f"{self.output} = {self.name}({', '.join(map(str, self.inputs))})"


@dataclass(frozen=True)
class Program:
    """What a function does, as a list of operations.

    Attributes:
        ops: the Ops, in the order in which they run. At most one of them writes a value, before it
            is read.
        inputs: the names of the values that the caller passes.
        outputs: the names of the values that the caller gets.
        shapes: the shape of each value. All values are matrices of float64: a number has the shape
            (1, 1), a row (1, n).
    """

    ops: tuple[Op, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    shapes: dict[str, tuple[int, int]]

    def nbytes(self, value: str) -> int:
        """Return how many bytes a value takes."""
        n_rows, n_columns = self.shapes[value]
        return 8 * n_rows * n_columns

    def loop(self, op: Op) -> tuple[int, int] | None:
        """Return the shape that an operation loops over.

        It is the output's for an elementwise operation and the input's for a sum; None for matmul
        and transpose, whose kernels are different.
        """
        if op.is_elementwise:
            return self.shapes[op.output]
        return self.shapes[str(op.inputs[0])] if op.is_sum else None

    def __str__(self) -> str:
        return "\n".join([*map(str, self.ops), f"return {', '.join(self.outputs)}"])


def result_shape(name: str, *shapes: tuple[int, int]) -> tuple[int, int]:
    """Return the shape of an operation's result for operands of these shapes.

    Raises:
        ValueError: the shapes do not fit together.
    """
    if name == "matmul":
        (n_rows, inner), (n_inner, n_columns) = shapes
        if inner != n_inner:
            raise ValueError(f"matmul of {shapes[0]} and {shapes[1]}: {inner} is not {n_inner}")
        return n_rows, n_columns
    if name == "transpose":
        return shapes[0][1], shapes[0][0]
    if name in SUMS:
        return (1, 1) if name == "sum" else (1, shapes[0][1])
    longest = max(shape[0] for shape in shapes), max(shape[1] for shape in shapes)
    for shape in shapes:
        if any(n not in (1, m) for n, m in zip(shape, longest, strict=True)):
            raise ValueError(f"{name} of {' and '.join(map(str, shapes))}: these do not fit")
    return longest
