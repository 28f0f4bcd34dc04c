"""The stand-ins of memory while a step is traced: buffers without bytes, and their pool."""

import functools

from minigrad.compiler.trace import refusals


class _Nowhere:
    """The pool and bin of buffers without memory. device: the name of theirs."""

    current_bytes = 0
    is_outside = False

    def __init__(self, device):
        self.device = device

    @property
    def pool(self):
        """The pool of the bin."""
        return self

    def append(self, buffer):
        """Forgets a released buffer."""


@functools.cache
def nowhere(device):
    """The pool of buffers without memory on a device, by its name."""
    return _Nowhere(device)


class TraceBuffer:
    """The Buffer of an Array that a trace has made: it names a Value of the program."""

    __slots__ = (
        "home", "is_foreign", "nbytes", "owners", "pins", "pool", "requested", "trace", "value",
    )  # fmt: skip

    def __init__(self, value, trace):
        self.value, self.trace = value, trace
        self.home = self.pool = trace.nowhere
        self.owners, self.pins, self.nbytes, self.is_foreign = 1, 0, 0, False
        self.requested = value.nbytes

    @property
    def address(self):
        """There is none: raises TraceError."""
        raise self.trace.failed_by(refusals.outside_error(self.value))

    segment = address
