"""Launches that are replayed: as a list by the simulator, as a CUDA graph by a GPU."""

from typing import Any


class Launches:
    """Launches of a device, run one after the other by `replay`."""

    def __init__(self, device, launches):
        self.device, self.launches = device, launches

    def replay(self):
        """Launches them all."""
        launch = self.device.launch
        for x in self.launches:
            launch(*x)


def replayable(device, launches) -> Any:
    """What replays launches, each the arguments of `Gpu.launch`, over the memory they name.

    The memory stays where it is as long as the result lives; a device that has `graph_of` makes it.
    """
    make = getattr(device, "graph_of", Launches)
    if make is Launches or not launches:
        return Launches(device, launches)
    return make(launches)
