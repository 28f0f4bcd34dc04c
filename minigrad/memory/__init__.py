"""Buffers, the pool they come from, and what can be seen of them: the public `mg.memory`.

Graph and arrays are upper layers: the functions here that take Variables only ask them for
`.array`.
"""

from typing import Any

from minigrad.arguments import shown
from minigrad.errors import ArgumentTypeError
from minigrad.memory.monitor import (
    MemoryGrowthError as MemoryGrowthError,
)
from minigrad.memory.monitor import (
    assert_no_growth as assert_no_growth,
)
from minigrad.memory.monitor import (
    copy_on_saved_write as copy_on_saved_write,
)
from minigrad.memory.monitor import (
    poison as poison,
)
from minigrad.memory.monitor import (
    pool_of as pool_of,
)
from minigrad.memory.monitor import (
    snapshot as snapshot,
)
from minigrad.memory.monitor import (
    stats as stats,
)
from minigrad.memory.monitor import (
    timeline as timeline,
)


def empty_cache(device="cpu"):
    """Gives all memory that nobody uses back to the system. Returns the bytes released.

    Memory in use is never touched: drop the Variables first.
    """
    return pool_of(device).trim()


def trim(device="cpu"):
    """The same as `empty_cache`, by the name IREE's allocators use."""
    return pool_of(device).trim()


def reset_peak(device="cpu"):
    """Starts the measurement of peak_bytes anew from what is in use now."""
    pool = pool_of(device)
    pool.peak_bytes = pool.current_bytes


def set_limit(nbytes, device="cpu"):
    """Reserves at most so many bytes from the system from now on; None lifts the limit.

    A request beyond it raises OutOfMemoryError, which names the largest holders; everything stays
    usable.
    """
    pool_of(device).set_limit(nbytes)


def is_alias(a, b):
    """Whether two Variables show some byte in common; exact to 2-D, conservative beyond.

    A clone is an alias of its source until one of them is written.
    """
    return _array("is_alias", a).is_alias_of(_array("is_alias", b))


def shares_storage(a, b):
    """Whether two Variables are views of one Storage: a write to one can show in the other."""
    return _array("shares_storage", a).storage is _array("shares_storage", b).storage


def _array(name, x):
    array: Any = getattr(x, "array", None)
    if not hasattr(array, "is_alias_of"):
        raise ArgumentTypeError(f"{name}: wanted two Variables", shown(x))
    return array
