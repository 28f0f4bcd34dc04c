"""Copies between host and GPU, by way of two pinned buffers that take turns.

The GPU copies from and to memory that the system may not move. While it works on one buffer,
Python fills or empties the other.
"""

import threading

import numpy as np

HALF = 4 << 20  # bytes of each buffer: large enough that starting a copy does not matter


class Half:
    """One pinned buffer, and the event after which it may be written again."""

    def __init__(self, driver, nbytes):
        self.owner, self.address, self.bytes = driver.pinned(nbytes)
        self.event = None


class Transfer:
    """Uploads that return at once, downloads that wait for all that was asked for before."""

    def __init__(self, driver, half=HALF):
        self.driver, self.half = driver, half
        self.halves = []
        self.lock = threading.Lock()
        self.turn = 0

    def _next(self):
        """The half whose turn it is, when the GPU has done with it."""
        if not self.halves:
            self.halves = [Half(self.driver, self.half) for _ in range(2)]
        self.turn = 1 - self.turn
        found = self.halves[self.turn]
        if found.event is not None:
            self.driver.wait(found.event)
            found.event = None
        return found

    def upload(self, data, address):
        """Copies flat bytes, an ndarray of uint8, to an address; data may change at once after."""
        with self.lock:
            for start in range(0, data.size, self.half):
                piece = data[start : start + self.half]
                half = self._next()
                half.bytes[: piece.size] = piece
                self.driver.to_device(address + start, half.address, piece.size)
                half.event = self.driver.record()

    def download(self, address, count):
        """An ndarray with `count` bytes from an address on the GPU."""
        out = np.empty(count, np.uint8)
        waiting = None  # (half, its part of out): asked for, not yet fetched
        with self.lock:
            for start in range(0, count, self.half):
                part = out[start : start + self.half]
                half = self._next()
                self.driver.to_host(half.address, address + start, part.size)
                half.event = self.driver.record()
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
