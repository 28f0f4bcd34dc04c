"""The long way of operations, for tests that compare the short ways with it."""

import contextlib

from minigrad.tape.modes import watch


@contextlib.contextmanager
def the_long_way():
    """Ops take the long way inside, as they do while somebody observes."""
    watch(+1)
    try:
        yield
    finally:
        watch(-1)
