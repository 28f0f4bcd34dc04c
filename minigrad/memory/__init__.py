"""Buffers, the pool that allocates them, and their statistics: the public `mg.memory`.

Arrays and the graph are upper layers. So functions here that take Variables use only `.array`.
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
    """Returns all unused memory to the system; the result is the number of bytes released.

    It keeps memory in use. To free that as well, drop the Variables first.
    """
    return pool_of(device).trim()


def trim(device="cpu"):
    """Does the same as `empty_cache`. IREE's allocators use this name."""
    return pool_of(device).trim()


def reset_peak(device="cpu"):
    """Sets peak_bytes to the bytes in use now."""
    pool = pool_of(device)
    pool.peak_bytes = pool.current_bytes


def set_limit(nbytes, device="cpu"):
    """Limits the bytes reserved from the system from now on; None removes the limit.

    A request beyond the limit raises OutOfMemoryError, which names the largest holders. Existing
    Variables stay usable.
    """
    pool_of(device).set_limit(nbytes)


def is_alias(a, b):
    """Returns whether two Variables share memory.

    The answer is exact up to two axes; with more, True may be wrong, False never is. A clone is an
    alias of its source until one of them is written.
    """
    return _array("is_alias", a).is_alias_of(_array("is_alias", b))


def shares_storage(a, b):
    """Returns whether two Variables view one Storage: a write to one may change the other."""
    return _array("shares_storage", a).storage is _array("shares_storage", b).storage


def _array(name, x):
    array: Any = getattr(x, "array", None)
    if not hasattr(array, "is_alias_of"):
        raise ArgumentTypeError(f"{name}: wanted two Variables", shown(x))
    return array
