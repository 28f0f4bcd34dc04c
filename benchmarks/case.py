"""What a peer offers for one row, and how a round of it is timed."""

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

CHECKED_STEPS = 5
SHORTEST_BATCH = 2e-4  # seconds


def nothing():
    """Does nothing."""


@dataclass
class Case:
    """One row as one peer does it.

    Attributes:
        step: does the timed work once.
        reset: puts parameters and optimizer state back to the initial values.
        numbers: what the work computed, as a few floats equal for all peers up to rounding.
        finish: waits for work still running, for peers that run behind the caller's back.
        held: runs some steps and returns what one holds at its peak, besides parameters and batch:
            `bytes`, and `allocated` where the peer's allocator counts in another way. Values are
            None where the peer cannot say.
    """

    step: Callable[[], object]
    reset: Callable[[], None]
    numbers: Callable[[], list[float]]
    finish: Callable[[], None] = nothing
    held: Callable[[], dict[str, int | None]] | None = None


def training(step, reset, as_float=float, finish=nothing, held=None) -> Case:
    """A Case whose step returns a loss: the numbers are the losses of the first steps."""

    def numbers():
        reset()
        return [as_float(step()) for _ in range(CHECKED_STEPS)]

    return Case(step, reset, numbers, finish, held)


def repeated(step, arrays, finish=nothing) -> Case:
    """A Case without state: the numbers are averages over the arrays that `arrays()` returns."""

    def numbers():
        step()
        finish()
        return [float(abs(a).mean()) for a in arrays()]

    return Case(step, nothing, numbers, finish)


def first_calls(case: Case, clock=time.perf_counter) -> float:
    """Seconds that the first two calls take together, compilation included.

    Two, because what is compiled first, the call or the one after it, is up to the peer.
    """
    start = clock()
    for _ in range(2):
        case.step()
    case.finish()
    return clock() - start


def measure(case: Case, seconds: float, clock=time.perf_counter) -> dict:
    """One round: resets, warms up, then times steps for about `seconds`.

    Steps shorter than 0.2 ms are timed in batches of that length: long against the clock's own
    time, short against what else the machine does.

    Returns:
        Seconds per step: `median` and `best` over the round's batches; `steps` counts them. For a
        peer that runs behind the caller's back also `waited`, the median of steps that are waited
        for one by one, as by a loop that reads the loss each time.
    """
    case.reset()
    gc.collect()
    for _ in range(2):
        case.step()
    case.finish()
    start = clock()
    case.step()
    case.finish()
    once = max(clock() - start, 1e-7)
    count = max(1, round(SHORTEST_BATCH / once))
    batches, spent = [], 0.0
    while spent < seconds or len(batches) < 3:
        start = clock()
        for _ in range(count):
            case.step()
        case.finish()
        took = clock() - start
        spent += took
        batches.append(took / count)
    found = {
        "median": statistics.median(batches),
        "best": min(batches),
        "steps": count * len(batches),
    }
    if case.finish is not nothing:
        found["waited"] = statistics.median(waited_for(case, seconds / 4, clock))
    return found


def waited_for(case: Case, seconds: float, clock) -> list[float]:
    """Seconds of each of some steps, none begun before the last has ended."""
    found, end = [], clock() + seconds
    while clock() < end or len(found) < 3:
        start = clock()
        case.step()
        case.finish()
        found.append(clock() - start)
    return found
