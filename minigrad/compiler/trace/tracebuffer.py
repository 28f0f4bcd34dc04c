"""Stands in for memory while a step is traced: buffers without bytes, and their pool."""

import functools

from minigrad.compiler.trace import refusals


class _Nowhere:
    """The pool and bin of buffers without memory. device: the name of their device."""

    current_bytes = 0
    is_outside = False

    def __init__(self, device):
        self.device, self.pool = device, self

    def append(self, buffer):
        """Drop a released buffer."""


@functools.cache
def nowhere(device):
    """Return the pool of buffers without memory on a device, given its name."""
    return _Nowhere(device)


class EmptyBuffer:
    """A Buffer without bytes."""

    __slots__ = ("home", "is_foreign", "nbytes", "owners", "pins", "pool", "requested")

    def __init__(self, requested, pool):
        self.home = self.pool = pool
        self.owners, self.pins, self.nbytes, self.is_foreign = 1, 0, 0, False
        self.requested = requested

    @property
    def address(self):
        """Raise TraceError: there is no address."""
        raise self.error()

    segment = address

    def error(self):
        """Return the TraceError to raise."""
        raise NotImplementedError


class TraceBuffer(EmptyBuffer):
    """The Buffer of an Array that a trace has made: it names a Value of the program."""

    __slots__ = ("trace", "value")

    def __init__(self, value, trace):
        super().__init__(value.nbytes, trace.nowhere)
        self.value, self.trace = value, trace

    def error(self):
        return self.trace.failed_by(refusals.outside_error(self.value))


class StandInBuffer(EmptyBuffer):
    """A Buffer that stands in for an argument's. where: the argument in words."""

    __slots__ = ("where",)

    def __init__(self, nbytes, where, device):
        super().__init__(nbytes, nowhere(device))
        self.where = where

    def error(self):
        return refusals.kept_error(self.where)
