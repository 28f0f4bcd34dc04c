"""Copies between host and GPU, through two pinned buffers in turn.

The GPU copies from and to memory that the system must not move. While it works on one buffer,
Python fills or empties the other.
"""

import threading

import numpy as np

HALF = 4 << 20  # bytes of each buffer: large enough that starting a copy does not matter


class Half:
    """One pinned buffer.

    event: after it the buffer may be written again; None: now. is_asked: whether Ctrl-C may have
    left a copy without an event.
    """

    def __init__(self, driver, nbytes):
        self.owner, self.address, self.bytes = driver.pinned(nbytes)
        self.event, self.is_asked = None, False


class Transfer:
    """Uploads return at once; downloads wait for all queued work."""

    def __init__(self, driver, half=HALF):
        self.driver, self.half = driver, half
        self.halves = []
        self.lock = threading.Lock()
        self.turn = 0

    def _next(self):
        """Return the next half, once the GPU is done with it."""
        if not self.halves:
            self.halves = [Half(self.driver, self.half) for _ in range(2)]
        self.turn = 1 - self.turn
        half = self.halves[self.turn]
        if half.is_asked:
            self.driver.synchronize()
        elif half.event is not None:
            self.driver.wait(half.event)
        half.event, half.is_asked = None, False
        return half

    def _ask(self, half, copy, target, source, nbytes):
        half.is_asked = True
        copy(target, source, nbytes)
        half.event = self.driver.record()
        half.is_asked = False

    def upload(self, data, address):
        """Copy an ndarray of uint8 to an address; data may change after the call."""
        self.driver.ready()  # before the lock, which a fork may have left locked
        with self.lock:
            for start in range(0, data.size, self.half):
                piece = data[start : start + self.half]
                half = self._next()
                half.bytes[: piece.size] = piece
                self._ask(half, self.driver.to_device, address + start, half.address, piece.size)

    def download(self, address, count):
        """Return an ndarray with `count` bytes from an address on the GPU."""
        out = np.empty(count, np.uint8)
        waiting = None  # (half, its part of out): queued, not yet fetched
        self.driver.ready()  # before the lock, which a fork may have left locked
        with self.lock:
            for start in range(0, count, self.half):
                part = out[start : start + self.half]
                half = self._next()
                self._ask(half, self.driver.to_host, half.address, address + start, part.size)
                if waiting is not None:
                    self._fetch(*waiting)
                waiting = half, part
            if waiting is not None:
                self._fetch(*waiting)
        return out

    def _fetch(self, half, part):
        self.driver.wait(half.event)
        half.event = None
        part[:] = half.bytes[: part.size]
