"""The pool: blocks that never overlap, and memory that serves again."""

from __future__ import annotations

from minigrad.course.l10_allocator import lesson
from minigrad.course.l10_allocator.ledger import APART, SEGMENT, account, unharmed
from minigrad.course.l10_allocator.programs import (
    at_random,
    in_little,
    nearly_alike,
    refused,
    training,
    written,
)
from minigrad.grader.tester import Tester

Pool = lesson.exercise(
    "Pool",
    difficulty=4,
    minutes=45,
    returns="a Pool with alloc and free",
    hints=(
        "What must the pool know of each block that is in use, to take it back? And of each free "
        "piece, to find it, cut it, and join it to its neighbours? Write these two down first.",
        "in_use: address -> (bytes, segment). free_blocks: a list of (address, bytes, segment). "
        "alloc: which free ones are large enough, which is the smallest of them, what is left of "
        "it? free: which free ones end where it begins, or begin where it ends, in its segment?",
        "alloc: fitting = [p for p in free_blocks if p[1] >= size]; none: give back each p that "
        "is as long as its segment, then take max(size, SEGMENT) and make that a piece. "
        "min(fitting, key=...), remove it, add what is left. free: pop the block, remove the "
        "pieces that touch it, add one piece that spans them all.",
    ),
)
NOT_ONE = 64, 0, 192  # gaps before segments: some touch, some do not
TOUCH = (0,)  # the first segment begins at address 0, and all touch


@Pool.check(points=2)
def blocks(t: Tester) -> None:
    """Blocks lie in segments, at multiples of 64, and never overlap."""
    account(t, written("100 200 64 1000"))
    account(t, written("100 200 -0 100 64 -1 -2 300"))
    account(t, written("70000 100 65536 65537 -1 64 64"), NOT_ONE)
    account(t, written("0 64 0 -0 -2 100 0"), TOUCH)
    for order in ("-0 -1", "-1 -0"):
        account(t, written(f"65536 65536 {order} 131072"), TOUCH)  # two segments that touch
    account(t, written("70000 -0 80000 65536 4096"))  # a shorter one where another was
    for most, largest in ((4, 300), (30, 3000), (12, 60000), (4, 200000)):
        account(t, at_random(t.fixed, 120, most, largest), NOT_ONE)


@Pool.check(points=1, only_with=("blocks",))
def misuse(t: Tester) -> None:
    """It refuses to free what is not in use, and goes on as if nothing had happened."""
    for steps, gaps in (
        (written("60000 -0 -0 60000 -1"), APART),
        (written("100 200 -0 -0 100 100 -1"), APART),
        (written("100 200 64 -0 -1 -0 100 200"), APART),
        (written("100 200 64 -0 -1 -1 300 64"), TOUCH),
        (written("100 200 300 -2 -1 -2 -0 -1 600"), APART),
        (written("70000 100 -0 90000 -0 100 -1"), APART),
        (written("100 -0 100 -1 -0 100"), TOUCH),
        ([*written("100 200"), ("at", 0, 64), ("at", 1, 4096), *written("-0 -1 -1 300")], APART),
        ([*written("100 200 300 -1"), ("at", 0, 128), *written("150 -2 -0 -0 50 60")], APART),
        ([("alloc", 64), ("at", 0, -64), ("at", 0, 1), *written("-0 64 -1 -1")], TOUCH),
        *((refused(n, beyond), APART) for n, beyond in ((1, 0), (1, 64), (1, 4096), (3, 0))),
        (at_random(t.fixed, 100, 4, 300, 0.3), TOUCH),
        (at_random(t.fixed, 150, 12, 5000, 0.3), APART),
        (at_random(t.fixed, 100, 6, 30000, 0.3), NOT_ONE),
    ):
        account(t, steps, gaps)
        unharmed(t, steps, gaps)


@Pool.check(points=2, only_with=("blocks",))
def serves_again(t: Tester) -> None:
    """It takes no segment while a free piece is large enough: what was freed, what was left."""
    account(t, written("60000 -0 60000 -1 60000"), early=True)
    account(t, written("30000 20000 -0 30000 -1 20000"), early=True)
    account(t, written("40000 -0 100 200 30000"), early=True)
    account(t, written("65536 -0 100 100 60000 -3 100"), early=True)
    account(t, written("200000 -0 60000 60000 60000"), early=True)
    account(t, written("512 61440 3584 -0 448 64"), early=True)  # the rest has 64 bytes


@Pool.check(points=2, only_with=("blocks",))
def joins_neighbours(t: Tester) -> None:
    """Free pieces that touch serve as one, in whichever order they were freed."""
    for order in ("-0 -1", "-1 -0"):
        account(t, written(f"20480 20480 20480 {order} 40960"), early=True)
    for order in ("-0 -1 -2", "-2 -1 -0", "-0 -2 -1", "-1 -0 -2", "-1 -2 -0"):
        account(t, written(f"16384 16384 16384 16384 {order} 49152"), early=True)
    account(t, written("20480 20480 20480 -2 24576"), early=True)  # with the rest of a segment
    account(t, written("65536 65536 -0 -1 131072"), TOUCH, early=True)  # two segments that touch
    account(t, written("40960 65536 -0 100 -1 98304"), TOUCH, early=True)
    for room in (512, 1024, 2048):
        account(t, in_little(t.fixed, 60, room), early=True)
    for most, largest in ((5, 20000), (20, 9000)):
        account(t, at_random(t.fixed, 150, most, largest), NOT_ONE, early=True)


@Pool.check(points=1, only_with=("blocks",))
def smallest(t: Tester) -> None:
    """A block is cut out of the smallest free piece that holds it."""
    account(t, written("10240 64 4096 64 20480 64 -0 -2 -4 4096 8192 16384"), smallest=True)
    account(t, written("4096 64 10240 64 20480 64 -4 -2 -0 3000 9000 15000"), smallest=True)
    account(t, at_random(t.fixed, 150, 15, 9000), NOT_ONE, early=True, smallest=True)
    for room in (1024, 2048):
        account(t, in_little(t.fixed, 120, room), smallest=True)
    for nbytes, n in ((1152, 2), (2304, 4), (4096, 6)):
        account(t, nearly_alike(t.fixed, nbytes, n), smallest=True)


@Pool.check(points=1, only_with=("blocks",))
def while_training(t: Tester) -> None:
    """While a network trains, at least 9 of 10 requests are served without the system."""
    for widths, batch in (((64, 48, 10), 64), ((64, 128, 128, 128, 10), 32), ((8, 300, 8), 100)):
        ledger = account(t, training(widths, [batch] * 6), NOT_ONE)
        reuse = 1 - ledger.n_taken / ledger.n_requests
        if reuse < 0.9:
            ledger.fail(
                "reuse",
                "at least 90% of the requests served by memory that was freed",
                f"{reuse:.0%}: {ledger.n_taken} segments for {ledger.n_requests} requests",
                "Every step asks for the same sizes. What is in the way of using them again?",
            )


@Pool.check(points=2, only_with=("blocks",))
def bounded(t: Tester) -> None:
    """However many sizes there are, it keeps at most twice what was ever in use at once."""
    growing = " ".join(f"{70_000 + 9_000 * k} -{k}" for k in range(12))
    for steps in (
        written(growing),
        written("70000 -0 80000 100 -2 -1 90000"),
        written("70000 80000 90000 -0 -1 -2 100000"),  # the first two would make room for it
        training((64, 128, 128, 10), (32, 200, 64, 500, 16, 350, 700, 100, 900)),
    ):
        ledger = account(t, steps, NOT_ONE)
        if ledger.overdrawn:
            reserved, peak = ledger.overdrawn
            ledger.fail(
                "unbounded",
                f"at most 2 * {peak:,} + {SEGMENT:,} bytes from the system",
                f"{reserved:,}",
                "Nothing leaks, and yet it grows. Of what use are pieces into which nothing fits? "
                "When could they go back?",
            )
        account(t, steps, NOT_ONE, empty=True)
