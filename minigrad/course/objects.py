"""The plain objects that learners' functions work on. Python only: no engine, no tricks.

Their field names are the engine's, so the same function runs in a check, in a notebook and inside
the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
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
    saved: tuple[Any, ...] = field(default=(), repr=False)
    line: str = ""
