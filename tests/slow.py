"""The slow path of operations, for tests that compare the fast paths with it."""

import contextlib

from minigrad.tape.modes import watch


@contextlib.contextmanager
def slow_path():
    """Ops take the slow path inside, as they do while somebody observes."""
    watch(+1)
    try:
        yield
    finally:
        watch(-1)
