"""Delays Ctrl-C until functions that must not stop halfway have returned.

Python runs the handler of Ctrl-C in the main thread, between two bytecodes, and passes it the
current frame. Our handler inspects the call stack. If a frame belongs to a function marked
`@uninterrupted`, it requests the signal again, and Python delivers it after the next call.
Otherwise it raises KeyboardInterrupt as usual. So the mark costs nothing at run time. No signal is
lost either: Python would merely print an exception raised in a `__del__`.

Our handler replaces only Python's default. A program that has set its own handler keeps it.
"""

import functools
import threading

# the C functions behind `signal`, without its conversions to enums, which take microseconds
from _signal import (  # pyright: ignore[reportMissingImports] - built in, without a stub
    SIGINT,
    default_int_handler,
    getsignal,
    signal,
)
from _thread import get_ident, interrupt_main
from sys import gettrace
from typing import Any

# globals of generated code that counts as marked: with the functions that it calls, or alone
WHOLE, ALONE = "__minigrad_uninterrupted__", "__minigrad_uninterrupted_alone__"
# ids of code objects, which live until the program ends
_whole, _open = set(), set()


def uninterrupted(function):
    """Marks a function: Ctrl-C waits until it returns, including the functions that it calls."""
    _whole.add(id(function.__code__))
    return function


def interruptible(function):
    """Marks a function that runs user code: Ctrl-C never waits for it or for its callers."""
    _open.add(id(function.__code__))
    return function


def _waits(frame):
    """Returns whether Ctrl-C must wait: a marked function runs in this frame or in a caller."""
    if ALONE in frame.f_globals:
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
    if gettrace() is not None:  # Python 3.11 would check again before the next bytecode, endlessly
        threading.Timer(0.001, interrupt_main, (number,)).start()
        return
    again = map(interrupt_main, (number,))
    again = [*again]  # last, and not a call: after a call Python would check for signals, endlessly


def ready():
    """Replaces Python's default handler with ours; called wherever work begins.

    Once is not enough, because Jupyter restores Python's default for every cell.
    """
    if getsignal(SIGINT) is default_int_handler and get_ident() == threading.main_thread().ident:
        signal(SIGINT, _on_interrupt)


class _Block:
    """The context manager of a generator function that yields once, as in contextlib."""

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
            error.__traceback__ = trace  # without this frame, which refers to the error: a cycle
            return False
        return True


def block(function: Any) -> Any:
    """Like `contextlib.contextmanager`, but Ctrl-C does not interrupt entry or exit."""

    @functools.wraps(function)
    def begin(*args, **kwargs):
        return _Block(function(*args, **kwargs))

    return begin
