"""Replay launches: as a list on the simulator, as a CUDA graph on a GPU.

A launch here is an object with `run(device)`, which always launches with the same memory and the
same numbers.
"""

import contextlib
from typing import Any

from minigrad.devices.gpu.driver.errors import explaining
from minigrad.devices.gpu.driver.matmul import Cublas
from minigrad.memory.interrupts import block, uninterrupted


class Launches:
    """Runs launches one after the other."""

    def __init__(self, device, launches):
        self.device, self.launches = device, launches

    def replay(self):
        """Launch all of them."""
        for x in self.launches:
            x.run(self.device)


class LaunchGraph:
    """Launches as a CUDA graph: captured once, launched as one.

    We capture them on a stream of their own, apart from other threads' launches, and run them on
    the device's stream, in order with other work.
    """

    def __init__(self, device, launches):
        self.driver = driver = device.driver
        driver.ready()
        builder = driver.device.create_graph_builder()
        self.library = None  # a cuBLAS handle, whose workspace the graph uses
        if any(x.uses_library for x in launches):
            module = device.cublas.library
            self.library = Cublas(module, int(builder.stream.handle))
        for x in launches:
            x.prepare(device)
        with explaining("writing launches down as a graph"):
            self._write(builder, device, launches)
            self.graph = builder.complete()
            self.graph.upload(driver.stream)
        self.builder = builder  # its stream is the handle's: both live as long as the graph
        if self.library is None:
            builder.close()

    def _write(self, builder, device, launches):
        builder.begin_building("relaxed")
        try:
            with _writing(self.driver, builder, self.library):
                for x in launches:
                    x.run(device)
        except BaseException:
            with contextlib.suppress(Exception):  # the first error is the one to raise
                builder.end_building()
            raise
        builder.end_building()

    def replay(self):
        """Launch the graph."""
        self.driver.ready()
        with explaining("replaying launches"):
            self.graph.launch(self.driver.stream)

    @uninterrupted
    def __del__(self):
        library = getattr(self, "library", None)
        if library is not None:
            library.library.destroy(library.handle)


@block
def _writing(driver, builder, library):
    """Send this thread's launches within the block to a graph."""
    here = driver.here
    here.builder, here.library = builder, library
    try:
        yield
    finally:
        here.builder = here.library = None


def replayable(device, launches) -> Any:
    """Return an object whose `replay()` runs launches again; their memory must not move.

    A device without a driver runs the list. So does one that waits after each launch
    (MINIGRAD_CUDA_SYNC=1), so that an error appears at its launch.
    """
    driver = getattr(device, "driver", None)
    if driver is None or getattr(driver, "waits", True) or not launches:
        return Launches(device, launches)
    return LaunchGraph(device, launches)
