"""Pictures of lesson 10: which bytes of a pool are in use, at one moment. matplotlib axes in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from minigrad.course.l10_allocator.programs import Life
from minigrad.memory.buffer import blocks
from minigrad.memory.host import of_the_host
from minigrad.memory.pool import Pool as EnginePool

USED, LAST, FREE, EDGE = "#90caf9", "#ef6c00", "#f5f5f5", "#78909c"
KIB = 1024
Segments = list[tuple[int, int]]  # (address, bytes)
Event = tuple[str, int, int]  # ("take", "back", "alloc" or "free", address, bytes)


def recorded(pool: type) -> tuple[type, list[Event]]:
    """Return a subclass of a learner's Pool that writes down what happens, and what it writes."""
    log: list[Event] = []

    class Recorded(pool):
        def __init__(self, system: Any) -> None:
            super().__init__(Watched(system, log))

        def alloc(self, nbytes: int) -> int:
            address = super().alloc(nbytes)
            log.append(("alloc", address, nbytes))
            return address

        def free(self, address: int) -> None:
            super().free(address)
            log.append(("free", address, 0))

    Recorded.__name__ = pool.__name__
    return Recorded, log


class Watched:
    """A system whose segments are written down."""

    def __init__(self, system: Any, log: list[Event]) -> None:
        self.system, self.log = system, log

    def take(self, nbytes: int) -> int:
        """Return the address of a new segment."""
        address = self.system.take(nbytes)
        self.log.append(("take", address, nbytes))
        return address

    def give_back(self, address: int) -> None:
        """Give a segment back."""
        self.system.give_back(address)
        self.log.append(("back", address, 0))


class PlainSystem:
    """A system of numbers alone: addresses without memory behind them.

    reserved: the bytes that it has given and not got back; most: the most of them so far.
    """

    def __init__(self) -> None:
        self.end, self.given, self.most = 4096, {}, 0

    def take(self, nbytes: int) -> int:
        """Return the address of a new segment."""
        address, self.end = self.end, self.end - (-nbytes // 64) * 64
        self.given[address] = nbytes
        self.most = max(self.most, self.reserved)
        return address

    def give_back(self, address: int) -> None:
        """Take a segment back."""
        del self.given[address]

    @property
    def reserved(self) -> int:
        """The bytes that the pool holds."""
        return sum(self.given.values())


def layout(log: Sequence[Event], at: int) -> tuple[Segments, dict[int, int]]:
    """Return the segments, and address -> bytes of what is in use, after event number `at`."""
    segments: dict[int, int] = {}
    in_use: dict[int, int] = {}
    for what, address, nbytes in log[: at + 1]:
        if what in ("take", "alloc"):
            (segments if what == "take" else in_use)[address] = nbytes
        else:
            del (segments if what == "back" else in_use)[address]
    return sorted(segments.items()), in_use


def draw_layout(axis: Any, log: Sequence[Event], at: int) -> None:
    """Draw a learner's pool after one event: a row for each segment, coloured where in use."""
    segments, in_use = layout(log, at)
    what, address, nbytes = log[at]
    draw_rows(axis, segments, in_use, address)
    widest = max(n for kind, _, n in log if kind == "take")
    rows = max(len(layout(log, k)[0]) for k, event in enumerate(log) if event[0] == "take")
    axis.set(xlim=(-0.02 * widest / KIB, 1.02 * widest / KIB), ylim=(rows - 0.4, -0.6))
    size = f" {nbytes:,} bytes" if nbytes else ""
    total = sum(in_use.values()) / KIB
    axis.set_title(f"event {at}: {what}{size}\n{total:.0f} KiB in use", fontsize=9)


def draw_rows(axis: Any, segments: Segments, in_use: dict[int, int], last: int = -1) -> None:
    """Draw segments as rows, and blocks in use in them; `last` is the address of another colour."""
    for row, (start, length) in enumerate(segments):
        draw_block(axis, row, 0, length, FREE)
        for address, nbytes in in_use.items():
            if start <= address < start + length:
                colour = LAST if address == last else USED
                draw_block(axis, row, address - start, nbytes, colour)
    axis.set_yticks(range(len(segments)), [str(k) for k in range(len(segments))], fontsize=7)
    axis.set(xlabel="KiB from the segment's beginning", ylabel="segment")


def draw_block(axis: Any, row: float, start: int, nbytes: int, colour: str) -> None:
    """Draw a block as a box."""
    axis.broken_barh(
        [(start / KIB, nbytes / KIB)],
        (row - 0.38, 0.76),
        facecolor=colour,
        edgecolor=EDGE,
        linewidth=0.5,
    )


class Game:
    """One segment of the engine's own pool, full of blocks of one size.

    Attributes:
        n: the number of blocks.
        largest: after each release so far, the largest piece that is free, in bytes.
    """

    def __init__(self, n: int = 16, nbytes: int = 128 * KIB) -> None:
        self.pool = EnginePool("game", of_the_host)
        self.n, self.nbytes = n, nbytes
        self.blocks = [self.pool.take(nbytes) for _ in range(n)]
        self.largest: list[int] = []

    def free(self, order: Iterable[int]) -> Game:
        """Release blocks in this order."""
        for k in order:
            block = self.blocks[k]
            block.owners = 0
            self.pool.release(block)
            self.pool.flush()  # joins what touches
            self.largest.append(max(nbytes for nbytes, _, _ in self.pool.free[True]))
        return self

    def draw(self, axis: Any, title: str) -> None:
        """Draw the pool's segments, as they are."""
        segments = [(s.address, s.nbytes) for s in self.pool.segments]
        in_use = {b.address: b.nbytes for s in self.pool.segments for b in blocks(s) if b.owners}
        draw_rows(axis, segments, in_use)
        axis.set(title=title, ylim=(len(segments) - 0.5, -0.5))


def draw_plan(axis: Any, lives: Sequence[Life], offsets: Sequence[int], title: str) -> None:
    """Draw values as boxes: from first to last moment, at their offsets."""
    from matplotlib.patches import Rectangle

    end = max(o + n for o, (n, _, _) in zip(offsets, lives, strict=True))
    for k, (offset, (nbytes, first, last)) in enumerate(zip(offsets, lives, strict=True)):
        corner = first, offset / KIB
        box = Rectangle(corner, last - first + 1, nbytes / KIB, facecolor=f"C{k % 10}", alpha=0.75)
        box.set(edgecolor="white", linewidth=0.5)
        axis.add_patch(box)
    axis.set(xlim=(0, 1 + max(last for _, _, last in lives)), ylim=(0, 1.05 * end / KIB))
    axis.set_title(f"{title}: {end / KIB:.0f} KiB", fontsize=10)
