"""What the checks of lesson 12 do in the learner's process: compile, count, watch a loop."""

import sys
import warnings
from itertools import combinations
from types import CodeType
from typing import Any

import numpy as np
from numba import njit
from numba.core import event, types
from numba.core.errors import NumbaError, NumbaSystemWarning
from numba.core.registry import CPUDispatcher
from numba.np.ufunc.dufunc import DUFunc
from numba.np.ufunc.gufunc import GUFunc

from minigrad.errors import DataRaceError
from minigrad.simt.watch.loops import run_rounds

# Numba's threads miss shared memory behind the walls
warnings.filterwarnings("ignore", category=NumbaSystemWarning)

KERNELS = []  # what Numba has compiled for `series`, wherever the function keeps it


def state(mine, name):
    """Return how a function runs: "compiled", as Python "objects", or "plain" (no Numba)."""
    function = getattr(mine, name)
    if type(function) is not CPUDispatcher:
        return "plain"
    return "compiled" if is_compiled(function) else "objects"


def visits_python(function, seen):
    """Return whether a compiled function, or one that it calls, works on Python objects."""
    if function in seen:
        return False
    seen.add(function)
    for one in function.overloads.values():
        called = getattr(one.type_annotation, "typemap", {}).values()
        inner = [kind.dispatcher for kind in called if type(kind) is types.Dispatcher]
        if one.objectmode or one.lifted or any(visits_python(other, seen) for other in inner):
            return True
    return False


@njit
def scribbled(n):
    """Return an array of n elements that no exercise wants."""
    out = np.empty(n)
    out[:] = 77.0
    return out


def leave_used(size):
    """Leave memory in which a new array of compiled code, of this size, has other numbers."""
    used = [scribbled(size) for _ in range(32)]
    del used


def once_more(mine, name, arguments):
    """Call a function in memory that was used before; return its result, and how it was made.

    "shared" is whether the result has memory of an argument.
    """
    function = getattr(mine, name)
    leave_used(np.size(function(*arguments)))
    result = function(*arguments)
    return {
        "result": result,
        "state": state(mine, name),
        "shared": any(np.shares_memory(result, one) for one in arguments),
    }


def without_rows(mine, name, x):
    """Call a function with no rows, behind which memory holds those of x; return the result."""
    return once_more(mine, name, [x[:0]])["result"]


def series(mine, name, x, numbers):
    """Call a function with one number after the other; return its results and what was compiled.

    "changed" is whether it wrote to x; "shared" whether two of the results, or one and x, have the
    same memory; "later" how many functions were compiled after the first
    call; "compiles" whether Numba has compiled the function, or one that works for it; "loops"
    whether it runs more lines of Python for more elements, or compiles for single elements alone.
    """
    function, results, counts, before = getattr(mine, name), [], [], x.copy()
    for number in numbers:
        leave_used(len(x))
        with event.install_recorder("numba:compile") as recorder:
            results.append(function(x, number))
        compiled = [one.data["dispatcher"] for _, one in recorder.buffer if one.is_start]
        counts.append(len(compiled))
        KERNELS.extend(compiled)
    changed = not np.array_equal(x, before, equal_nan=True)
    arrays = [one for one in (x, *results) if isinstance(one, np.ndarray)]
    used = names_in(getattr(function, "py_func", function)) & vars(mine).keys()
    kernels = [k for k in (function, *map(vars(mine).get, used), *KERNELS) if is_compiled(k)]
    few, many = (lines_run(mine, function, np.resize(x, n), number) for n in (4, 40))
    return {
        "results": results,
        "changed": changed,
        "shared": any(np.shares_memory(a, b) for a, b in combinations(arrays, 2)),
        "later": sum(counts[1:]),
        "compiles": bool(kernels),
        "loops": many > few or not any(map(takes_many, kernels)),
    }


def is_compiled(function):
    """Return whether Numba has compiled a function, or a loop over its elements."""
    if type(function) is CPUDispatcher:
        return bool(function.overloads) and not visits_python(function, set())
    return isinstance(function, DUFunc | GUFunc)


def takes_many(kernel):
    """Return whether compiled code is called for many elements at once: a ufunc is."""
    if type(kernel) is not CPUDispatcher:
        return True
    return any(isinstance(kind, types.IterableType) for args in kernel.signatures for kind in args)


def names_in(function):
    """Return the names that a function's code uses, with those of comprehensions in it."""
    codes, names = [getattr(function, "__code__", None)], set()
    while codes:
        if isinstance(code := codes.pop(), CodeType):
            names.update(code.co_names)
            codes += code.co_consts
    return names


def lines_run(mine, function, *arguments):
    """Call a function; return how many lines of the file's Python run meanwhile."""
    count, before = 0, sys.gettrace()

    def trace(frame, what, _):
        nonlocal count
        if frame.f_globals is not vars(mine):
            return None
        count += what == "line"
        return trace

    sys.settrace(trace)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    return count


def watched(mine, name, arguments):
    """Run a function with loops over prange, watched; return the race, or what came out."""
    function = getattr(mine, name)
    compiler = getattr(function, "_compiler", None)
    function = getattr(compiler, "py_func", function)  # what it compiles, not what stands beside it
    try:
        result, after, rounds = run_rounds(function, *arguments)
    except DataRaceError as error:
        must_compile(mine, name, arguments)
        race: Any = error
        return {
            "raised": type(error).__name__,
            "element": str(error.got or ""),
            "rounds": [race.other_thread[0], race.thread[0]],
            "lines": [race.other_line, int(str(error.where).partition("  ")[0].split(":")[-1])],
            "text": str(error.where).partition("  ")[2],
        }
    except Exception:
        must_compile(mine, name, arguments)
        raise
    return {"result": result, "after": after, "rounds": rounds}


def must_compile(mine, name, arguments):
    """Raise what Numba says if it does not compile a function: that is to be mended first."""
    try:
        in_threads(mine, name, arguments)
    except NumbaError:
        raise
    except Exception:  # the run as plain Python says in which line
        return


def in_threads(mine, name, arguments):
    """Call a function; return its result, its arguments afterwards, and how it was compiled."""
    function = getattr(mine, name)
    given = [np.array(one) if isinstance(one, np.ndarray) else one for one in arguments]
    result = function(*given)
    made = function.overloads.values() if type(function) is CPUDispatcher else ()
    return {
        "result": result,
        "after": given,
        "parallel": any(one.metadata["parfors"] for one in made),
        "state": state(mine, name),
    }
