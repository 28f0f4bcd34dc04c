"""Shows in the notebook of lesson 12 what Numba says, and which types it has found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.grader.message import show
from minigrad.grader.translate_numba import explain_numba, in_words


def read_error(function: Callable, *arguments: Any) -> str:
    """Call a function; return what Numba says, as it is, and below it what that means.

    An error that is not Numba's is raised. Without an error, the result is returned as text.
    """
    try:
        result = function(*arguments)
    except Exception as error:
        kinds = [one.__name__ for one in type(error).__mro__]
        found = explain_numba(str(error), kinds)
        if found is None:
            raise
        return f"{type(error).__name__}: {str(error).strip()}\n\nThat is: {found[0]}."
    return f"It compiles, and returns {show(result)}"


def types_of(function: Any) -> str:
    """Return the types that Numba has found for a compiled function's names, one a line."""
    (compiled, *_) = function.overloads.values()
    names = {
        name.partition(".")[0]: in_words(str(found))
        for name, found in compiled.type_annotation.typemap.items()
        if not name.startswith(("$", "arg."))
    }
    return "\n".join(f"{name:8} {found}" for name, found in sorted(names.items()))
