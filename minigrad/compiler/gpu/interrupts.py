"""Ctrl-C while a program of a GPU runs: it waits until the program is through.

Launches come one after the other, from Python: an exception between them would leave some
parameters updated and others not.
"""

# what `signal` calls, without conversions to enums, which take microseconds
import _signal  # pyright: ignore[reportMissingImports] - built in, without a stub
import threading


class Deferred:
    """The block in which Ctrl-C does nothing yet; what it does is done at the end of the block.

    Python runs handlers of signals in its main thread alone: in others there is nothing to do.
    """

    __slots__ = ("came", "handler")

    def __enter__(self):
        self.handler, self.came = None, False
        if threading.get_ident() == threading.main_thread().ident:
            handler = _signal.getsignal(_signal.SIGINT)
            if callable(handler):  # neither ignored, nor the end of the process, nor set by C
                _signal.signal(_signal.SIGINT, self._later)
                self.handler = handler

    def _later(self, number, frame):
        self.came = True

    def __exit__(self, *error):
        if self.handler is not None:
            _signal.signal(_signal.SIGINT, self.handler)
            if self.came:
                _signal.raise_signal(_signal.SIGINT)
