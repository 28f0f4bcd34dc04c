"""What the checks of lesson 12 do in the learner's process: compile, count, watch a loop."""

import warnings
from types import CodeType
from typing import Any

import numpy as np
from numba.core import event
from numba.core.registry import CPUDispatcher

from minigrad.errors import DataRaceError
from minigrad.simt.watch.loops import run_rounds


def state(mine, name):
    """Return how a function runs: "compiled", as Python "objects", or "plain" (no Numba)."""
    function = getattr(mine, name)
    if type(function) is not CPUDispatcher:
        return "plain"
    return "compiled" if function.nopython_signatures else "objects"


def names_in(code):
    """Return the names that a function's code uses, with those of comprehensions in it."""
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*map(names_in, inner))


def without_rows(mine, name, x):
    """Call a function with no rows, behind which memory holds those of x; return the result."""
    return getattr(mine, name)(x[:0])


def series(mine, name, x, numbers):
    """Call a function with one number after the other; return its results and what was compiled.

    "later" is how many functions were compiled after the first call; "compiles" whether the
    function, or one that it calls by name, is a compiled one.
    """
    function, results, later = getattr(mine, name), [], 0
    for k, number in enumerate(numbers):
        with event.install_recorder("numba:compile") as recorder:
            results.append(function(x, number))
        if k > 0:
            later += sum(one.is_start for _, one in recorder.buffer)
    plain = getattr(function, "py_func", function)
    called = [one for one in names_in(plain.__code__) if hasattr(mine, one)]
    is_compiled = any(state(mine, one) == "compiled" for one in (name, *called))
    return {"results": results, "later": later, "compiles": is_compiled}


def watched(mine, name, arguments):
    """Run a function with loops over prange, watched; return the race, or what came out."""
    function = getattr(mine, name)
    try:
        result, after, rounds = run_rounds(function, *arguments)
    except DataRaceError as error:
        race: Any = error
        return {
            "raised": type(error).__name__,
            "element": str(error.got or ""),
            "rounds": [race.other_thread[0], race.thread[0]],
            "lines": [race.other_line, int(str(error.where).partition("  ")[0].split(":")[-1])],
            "text": str(error.where).partition("  ")[2],
        }
    return {"result": result, "after": after, "rounds": rounds}


def in_threads(mine, name, arguments):
    """Call a compiled function; return its result, its arguments afterwards, and its options."""
    function = getattr(mine, name)
    given = [np.array(one) if isinstance(one, np.ndarray) else one for one in arguments]
    with warnings.catch_warnings(action="ignore"):  # Numba misses shared memory behind the walls
        result = function(*given)
    options = getattr(function, "targetoptions", None)
    return {
        "result": result,
        "after": given,
        "parallel": isinstance(options, dict) and bool(options.get("parallel")),
        "state": state(mine, name),
    }
