"""The plain objects that learners' functions work on. Python only: no engine, no tricks.

Their field names are the engine's, so the same function runs in a check, in a notebook and inside
the engine.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False, repr=False)
class Node:
    """One recorded operation.

    Attributes:
        op: the name of the operation, such as `"mul"`.
        inputs: per input the Node that made it, None where nothing did.
        saved: what the forward pass kept for the backward pass.
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
    """Bytes that several Variables may show.

    Attributes:
        data: the values, a NumPy array.
        version: how often they were written in place.
    """

    data: Any
    version: int = 0


@dataclass(eq=False)
class View:
    """Another way to look at a Storage's bytes; it has none of its own.

    Attributes:
        base: the Storage, or the View, of which it shows a part.
        index: which part, as in `base.data[index]`.
    """

    base: Storage | View
    index: Any = ...

    @property
    def data(self) -> Any:
        """The values it shows; writing into them writes into the Storage."""
        return self.base.data[self.index]

    @property
    def version(self) -> int:
        """The version of what it shows."""
        return self.base.version


@dataclass(eq=False)
class Ctx:
    """What one operation keeps from its forward pass for its backward pass.

    Attributes:
        op: the name of the operation.
        saved: the Storages, and Views of such, that it saved; None once backward let go of them.
        versions: of each the version at that time.
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
        grad: the gradient, an array of the same shape; None where no gradient arrived.
        requires_grad: False where it is frozen.
        id: a number that no other Parameter has; every new Parameter gets a new one.
    """

    values: Any
    grad: Any = None
    requires_grad: bool = True
    id: int = field(default_factory=itertools.count(1).__next__)


@dataclass(eq=False)
class Box:
    """A Variable with nothing but its two identities: whose bytes, and whose history.

    Attributes:
        storage: the Storage whose values it shows.
        node: the Node that made it, `Node("leaf")` for a leaf whose gradient is wanted, and None
            where no gradient flows.
    """

    storage: Storage
    node: Node | None = None
