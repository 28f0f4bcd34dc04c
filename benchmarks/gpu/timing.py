"""How long work on the GPU takes: between two events on its stream, so that Python does not count.

Work is repeated until it takes long enough to measure, and measured several times.
"""

import statistics
import time
from dataclasses import dataclass

SHORTEST = 0.02  # seconds between two events
ROUNDS = 5


@dataclass
class Row:
    """One figure.

    Attributes:
        what: was measured.
        value: the figure, in `unit`.
        share: of what it is compared with, or None.
        goal: the least share, or None; or the most `value`, where there is no share.
        note: anything else.
    """

    what: str
    value: float
    unit: str
    share: float | None = None
    goal: float | None = None
    note: str = ""

    def is_met(self):
        """Whether the goal is met; None without one."""
        if self.goal is None:
            return None
        return self.value <= self.goal if self.share is None else self.share >= self.goal


def seconds_on_gpu(device, function):
    """The median time of one call, once all code is compiled and caches are warm."""
    for _ in range(3):
        function()
    device.synchronize()
    count = 1
    while True:
        spent = _between_events(device, function, count)
        if spent >= SHORTEST or count >= 1 << 14:
            break
        count = max(2 * count, int(count * SHORTEST / max(spent, 1e-6)) + 1)
    rounds = [_between_events(device, function, count) / count for _ in range(ROUNDS)]
    return statistics.median(rounds)


def _between_events(device, function, count):
    start = device.driver.record(is_timed=True)
    for _ in range(count):
        function()
    end = device.driver.record(is_timed=True)
    device.driver.wait(end)
    return (end - start) / 1000  # milliseconds


def seconds_to_ask(device, function, count=1000):
    """The median time that Python takes to ask for something that the GPU does at once."""
    rounds = []
    for _ in range(ROUNDS + 1):
        device.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            function()
        rounds.append((time.perf_counter() - start) / count)
    device.synchronize()
    return statistics.median(rounds[1:])
