"""Ctrl-C waits until what must be whole is whole.

Python runs its handler of Ctrl-C in the main thread, between two bytecodes, and gives it the frame
that it came upon. Ours looks who is at work: if a frame belongs to a function that is marked
`@uninterrupted`, it asks for the signal again, and Python comes back with it after the next call;
else KeyboardInterrupt is raised as ever. So nothing is paid for the mark, and nothing swallowed: an
exception in a `__del__` would only be printed.

In the place of Python's own handler alone: programs that have set another one keep it.
"""

import functools
import threading

# what `signal` calls, without conversions to enums, which take microseconds
from _signal import (  # pyright: ignore[reportMissingImports] - built in, without a stub
    SIGINT,
    default_int_handler,
    getsignal,
    signal,
)
from _thread import get_ident, interrupt_main
from typing import Any

WHOLE = "__minigrad_uninterrupted__"  # among the globals of generated code
# ids of code objects, which live as long as the program
_whole, _alone, _open = set(), set(), set()


def uninterrupted(function):
    """Marks a function: Ctrl-C waits until it is through, with all that it calls."""
    _whole.add(id(function.__code__))
    return function


def uninterrupted_alone(function):
    """Marks a function: Ctrl-C waits while its own bytecodes run, not what it calls."""
    _alone.add(id(function.__code__))
    return function


def interruptible(function):
    """Marks a function that runs what others wrote: Ctrl-C does not wait for that, wherever."""
    _open.add(id(function.__code__))
    return function


def _waits(frame):
    """Whether something that must be whole is at work in a frame, or in those that called it."""
    if id(frame.f_code) in _alone:
        return True
    while frame is not None:
        code = id(frame.f_code)
        if code in _whole or WHOLE in frame.f_globals:
            return True
        if code in _open:
            return False
        frame = frame.f_back
    return False


def _on_interrupt(number, frame):
    if not _waits(frame):
        default_int_handler(number, frame)
    again = map(interrupt_main, (number,))
    again = [*again]  # last, and no call: Python would look for signals after it, here for ever


def ready():
    """Puts our handler in the place of Python's own; called wherever work begins.

    Whoever runs cells, as Jupyter does, sets Python's own anew for each.
    """
    if getsignal(SIGINT) is default_int_handler and get_ident() == threading.main_thread().ident:
        signal(SIGINT, _on_interrupt)


class _Block:
    """The block of a function that yields once, as contextlib has it."""

    def __init__(self, generator):
        self._generator = generator

    @uninterrupted
    def __enter__(self):
        return next(self._generator)

    @uninterrupted
    def __exit__(self, kind, error, trace):
        if kind is None:
            next(self._generator, None)
            return False
        try:
            self._generator.throw(error)
        except StopIteration:
            return True
        except BaseException as other:
            if other is not error:
                raise
            error.__traceback__ = trace  # not this frame, which knows it: a cycle
            return False
        return True


def block(function: Any) -> Any:
    """`contextlib.contextmanager`, whose beginning and end Ctrl-C does not tear."""

    @functools.wraps(function)
    def begin(*args, **kwargs):
        return _Block(function(*args, **kwargs))

    return begin
