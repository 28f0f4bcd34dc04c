"""The interface that the compiler's parts (one per file) share."""

from collections.abc import Callable
from typing import Any

from minigrad.simt.language.names import Scope
from minigrad.simt.language.source import Source


class LanguagePart:
    """Attributes and methods that every part of the compiler may use.

    The closures that parts make are called with a frame and a mask; see `frame` and `masks`.

    Attributes:
        source, scope: the text and the names of the function being compiled.
        exact, spins: see `frame.KernelProgram`.
    """

    source: Source
    scope: Scope
    exact: bool
    spins: bool
    block: Callable[..., Any]
    call: Callable[..., Any]
    constant_array: Callable[..., Any]
    expression: Callable[..., Any]
    folded: Callable[..., Any]
    index: Callable[..., Any]
    intrinsic_value: Callable[..., Any]
    iteration: Callable[..., Any]
    operation: Callable[..., Any]
    program: Callable[..., Any]
    target: Callable[..., Any]
