"""Drawings for lesson 06: what is in memory at one moment of a timeline. matplotlib axes in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad.viz.memory_timeline import lifetimes
from minigrad.viz.units import format_bytes

FORWARD, BACKWARD = "C0", "C1"
KIB = 1024


def draw_alive(axis: Any, events: Sequence[Any], at: int) -> None:
    """Draw the buffers that are in use after event number `at`, the oldest at the top.

    Args:
        axis: a matplotlib axis.
        events: the events of a `mg.memory.timeline()`.
        at: an event's index; buffers older than the timeline are not drawn.
    """
    spans = lifetimes(events)
    alive = [span for span in spans if span.start <= at < span.stop]
    most = max(sum(s.start <= event.index < s.stop for s in spans) for event in events)
    colours = [BACKWARD if "backward" in span.op else FORWARD for span in alive]
    axis.barh(range(len(alive)), [span.nbytes / KIB for span in alive], color=colours)
    axis.set_yticks(range(len(alive)), [span.op or "data" for span in alive], fontsize=8)
    axis.set(
        xlim=(0, 1.05 * max(span.nbytes for span in spans) / KIB),
        ylim=(most - 0.4, -0.6),
        xlabel="KiB",
        ylabel="buffers in use, by maker",
    )
    event, total = events[at], sum(span.nbytes for span in alive)
    what = f"{event.op} takes" if event.kind == "alloc" else "something frees"
    axis.set_title(
        f"event {at}: {what} {format_bytes(event.bytes)}\n"
        f"now {format_bytes(total)} in {len(alive)} buffer{'s' * (len(alive) != 1)}",
        fontsize=9,
    )


def bytes_in_use(events: Sequence[Any]) -> list[float]:
    """Return the MiB in use after each event, relative to the time before the first."""
    first = events[0]
    before = first.current_bytes - (first.bytes if first.kind == "alloc" else -first.bytes)
    return [0.0, *((event.current_bytes - before) / KIB**2 for event in events)]
