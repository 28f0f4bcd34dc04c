"""Launches that are replayed: as a list by the simulator, as a CUDA graph by a GPU.

What is replayed has `run(device)`, which asks the device for one launch, always with the same
memory and the same numbers.
"""

import contextlib
from typing import Any

from minigrad.devices.gpu.driver.errors import explaining
from minigrad.devices.gpu.driver.matmul import Cublas
from minigrad.memory.interrupts import block, uninterrupted


class Launches:
    """What runs launches one after the other."""

    def __init__(self, device, launches):
        self.device, self.launches = device, launches

    def replay(self):
        """Asks the device for all of them."""
        for x in self.launches:
            x.run(self.device)


class LaunchGraph:
    """Launches as a CUDA graph: written down once by the driver, asked for as one thing.

    They are written on a stream of the graph's own, so that other threads' launches do not get in,
    and run on the device's stream, in order with everything else.
    """

    def __init__(self, device, launches):
        self.driver = driver = device.driver
        driver.ready()
        builder = driver.device.create_graph_builder()
        self.library = None  # a handle of cuBLAS, whose working memory the graph uses
        if any(x.uses_library for x in launches):
            module = device.cublas.library
            self.library = Cublas(module, int(builder.stream.handle))
        for x in launches:
            x.prepare(device)
        with explaining("writing launches down as a graph"):
            self._write(builder, device, launches)
            self.graph = builder.complete()
            self.graph.upload(driver.stream)
        self.builder = builder  # its stream is the handle's: both go with the graph
        if self.library is None:
            builder.close()

    def _write(self, builder, device, launches):
        builder.begin_building("relaxed")
        try:
            with _writing(self.driver, builder, self.library):
                for x in launches:
                    x.run(device)
        except BaseException:
            with contextlib.suppress(Exception):  # the first fault is the one to tell
                builder.end_building()
            raise
        builder.end_building()

    def replay(self):
        """Asks the GPU for all of them."""
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
    """The block in which this thread's launches are written into a graph."""
    here = driver.here
    here.builder, here.library = builder, library
    try:
        yield
    finally:
        here.builder = here.library = None


def replayable(device, launches) -> Any:
    """What replays launches over the memory they name, which must stay where it is.

    A device without a driver runs the list, and so does one that is asked to wait after each
    launch (MINIGRAD_CUDA_SYNC=1), so that a fault shows where it happens.
    """
    driver = getattr(device, "driver", None)
    if driver is None or getattr(driver, "waits", True) or not launches:
        return Launches(device, launches)
    return LaunchGraph(device, launches)
