"""A plan of memory: offsets for values whose lives are known."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.course.l10_allocator import lesson
from minigrad.course.l10_allocator.classes import right as of_class
from minigrad.course.l10_allocator.programs import Life, lives_in, training
from minigrad.grader.message import show, show_typed
from minigrad.grader.tester import Tester

plan_reuse = lesson.exercise(
    "plan_reuse",
    difficulty=3,
    minutes=20,
    returns="a list of ints, an offset for each value",
    hints=(
        "Which values are in the way of one that is still to be placed: all that have a place, or "
        "only some? And in which order do you place them?",
        "Place the largest first, and of equally large ones that which is needed first. Walk along "
        "the places that are in the way, from the lowest: is there room before this one? Else try "
        "where it ends.",
        "offset = 0; for begin, end in sorted(places in the way): if offset + room <= begin, stop, "
        "else offset = max(offset, end). In the way are places of lives that begin no later than "
        "this one ends, and end no earlier than it begins.",
    ),
)


SHOWN = 6  # of many values, in messages


def rounded(nbytes: int) -> int:
    """Return how many bytes a value takes."""
    return -(-nbytes // 64) * 64


def overlap(a: Life, b: Life) -> bool:
    """Whether two values are needed at the same moment."""
    return a[1] <= b[2] and b[1] <= a[2]


def placed(lives: list[Life], order: list[int]) -> list[int]:
    """Return offsets: in this order, each value gets the lowest that is free during its life."""
    offsets = [0] * len(lives)
    done: list[int] = []
    for k in order:
        room, offset = rounded(lives[k][0]), 0
        for other in sorted(done, key=lambda j: offsets[j]):
            if overlap(lives[k], lives[other]):
                if offset + room <= offsets[other]:
                    break
                offset = max(offset, offsets[other] + rounded(lives[other][0]))
        offsets[k] = offset
        done.append(k)
    return offsets


def by_size(lives: list[Life]) -> list[int]:
    """Return the offsets of the rule: largest first, the earlier of equals first."""
    return placed(lives, sorted(range(len(lives)), key=lambda k: (-lives[k][0], lives[k][1])))


def length(lives: list[Life], offsets: list[int]) -> int:
    """Return how long the piece is."""
    return max((o + rounded(n) for o, (n, _, _) in zip(offsets, lives, strict=True)), default=0)


def most_alive(lives: list[Life]) -> int:
    """Return the most bytes that are needed at one moment: no piece can be shorter."""
    moments = {first for _, first, _ in lives}
    return max((sum(rounded(n) for n, a, b in lives if a <= m <= b) for m in moments), default=0)


def ask(t: Tester, lives: list[Life]) -> list[int]:
    """Return the learner's offsets; fail unless they are offsets, and nobody shares a byte."""
    got = t.call("plan_reuse", lives)
    if len(lives) > SHOWN:
        sizes = sorted({n for n, _, _ in lives})
        many = (
            f"sizes from {sizes[0]} to {sizes[-1]} bytes" if sizes[1:] else f"{sizes[0]} bytes each"
        )
        first = ", ".join(map(str, lives[:SHOWN]))
        t.given = f"plan_reuse([{first}, …]): {len(lives)} values, {many}"
    if got is None:
        t.none(f"a list of {len(lives)} offsets")
    if not isinstance(got, list) or len(got) != len(lives):
        said = f"{len(got)} of them" if isinstance(got, list) else show(got)[:100]
        attempt = "An offset for each value, in the order in which they came."
        t.fail("count", f"a list of {len(lives)} offsets", said, attempt)
    for k, offset in enumerate(got):
        if type(offset) is not int:
            attempt = "An offset is a number of bytes."
            t.fail("type", f"offsets[{k}]: an int", show_typed(offset), attempt)
        if offset < 0 or offset % 64:
            attempt = "Which sizes do you add up: as they came, or rounded up?"
            t.fail("misaligned", f"offsets[{k}]: a multiple of 64", show(offset), attempt)
    if pair := in_conflict(lives, got):
        clash(t, lives, got, *pair)
    return got


def in_conflict(lives: list[Life], offsets: list[int]) -> tuple[int, int] | None:
    """Return two values that share a byte while both are needed, if there are any."""
    for k, mine in enumerate(lives):
        for j, other in enumerate(lives[:k]):
            if overlap(mine, other) and meets(offsets, lives, j, k):
                return j, k
    return None


def meets(offsets: list[int], lives: list[Life], j: int, k: int) -> bool:
    """Whether the places of two values share a byte."""
    mine, other = offsets[k], offsets[j]
    return mine < other + rounded(lives[j][0]) and other < mine + rounded(lives[k][0])


SORTED_BY: tuple[Callable[[Life], Any], ...] = (
    lambda life: (-life[0], life[1]),
    lambda life: -life[0],
    lambda life: life,
    lambda life: life[1],
    lambda life: life[2],
    lambda life: (life[0], life[1]),
)


def clash(t: Tester, lives: list[Life], offsets: list[int], j: int, k: int) -> None:
    """Fail for two values that share bytes while both are needed."""
    low, high = sorted((j, k), key=lambda i: (offsets[i], i))
    nbytes, a, b = lives[low]
    _, c, d = lives[high]
    room, beyond = rounded(nbytes), offsets[high] - offsets[low]
    key = "overlap"
    attempt = "Which values are in the way of one that is to be placed, and which are not?"
    if 0 < beyond == nbytes // 64 * 64 < room:
        key = "rounding"
        attempt = f"How many bytes does value {low} take: {nbytes}, rounded to which side?"
    elif any(not in_conflict(sorted(lives, key=by), offsets) for by in SORTED_BY):
        key = "order"
        attempt = "These would be the offsets of sorted values. In which order did they come?"
    elif lives[low] == lives[high]:
        attempt = "All numbers of these two are alike. Has each of them a place, or one for both?"
    elif b == c or d == a:
        key = "touching"
        attempt = "`last` is included: at that moment it is still read. What is written then?"
    elif beyond:
        key = "gap"
        attempt = (
            f"At {offsets[high]} value {low} is in the way, or at {offsets[low]} there is too "
            f"little room below value {high}. Which was placed second, and what did it look at?"
        )
    elif a < 0 or c < 0:
        attempt = "A moment below 0 is one like the others. What does it mean as an index?"
    both = f"values {low} and {high} are needed at moment {max(a, c)}: no byte in common"
    text = "; ".join(
        f"{i}: {offsets[i]} to {offsets[i] + rounded(lives[i][0])}, moments {lives[i][1:]}"
        for i in (low, high)
    )
    t.fail(key, both, text, attempt)


def lower_place(lives: list[Life], offsets: list[int]) -> tuple[int, int, bool] | None:
    """Return a value that could lie lower, where, and whether what is below it got too much room.

    In a plan that gives each value the lowest place that is free, whatever the order, none could.
    """
    for k in sorted(range(len(lives)), key=lambda k: offsets[k]):
        room, offset = rounded(lives[k][0]), 0
        others = [j for j in range(len(lives)) if j != k and overlap(lives[k], lives[j])]
        ends = {j: offsets[j] + rounded(lives[j][0]) for j in others}
        for j in sorted(others, key=lambda j: offsets[j]):
            if offset + room <= offsets[j]:
                break
            offset = max(offset, ends[j])
        if offset < offsets[k]:
            unused = offsets[k] - offset
            below = (lives[j][0] for j in others if ends[j] == offset)
            return k, offset, any(unused <= max(128, nbytes // 8 + 64) for nbytes in below)
    return None


def are_apart(lives: list[Life], offsets: list[int]) -> bool:
    """Return whether no two values share a byte."""
    order = sorted(range(len(lives)), key=lambda k: offsets[k])
    return not any(meets(offsets, lives, j, k) for j, k in itertools.pairwise(order))


def too_long(t: Tester, lives: list[Life], offsets: list[int], wanted: str, order: str) -> None:
    """Fail for a piece that is too long; order: what to say if no value could lie lower."""
    key, attempt, got = "order_of_places", order, f"{length(lives, offsets):,} bytes"
    if are_apart(lives, offsets):
        key, attempt = "apart", "Each has a place of its own. Who is gone when another one comes?"
    elif lower := lower_place(lives, offsets):
        k, offset, is_room = lower
        got += f"; value {k} at {offsets[k]}, though it would fit at {offset}"
        key, attempt = (
            "gap",
            "Which places does it try: at the bottom, above each value in its way?",
        )
        if is_room:
            key = "room"
            attempt = (
                f"Nobody needs the bytes {offset} to {offsets[k]} below it. How much room does a "
                "value take, by the docstring?"
            )
    t.fail(key, wanted, got, attempt)


def equals(random: np.random.Generator, n: int, nbytes: int, moments: int) -> list[Life]:
    """Return lives of values of one size."""
    starts = random.integers(0, moments, n)
    return [(nbytes, int(a), int(a + random.integers(0, moments // 3))) for a in starts]


def mixed(random: np.random.Generator, n: int, moments: int) -> list[Life]:
    """Return lives of values of many sizes."""
    sizes = (2 ** random.uniform(5, 12, n)).astype(int)
    starts = random.integers(0, moments, n)
    lasts = starts + random.integers(0, moments // 3, n)
    return [(int(n), int(a), int(b)) for n, a, b in zip(sizes, starts, lasts, strict=True)]


def earlier(lives: list[Life], by: int) -> list[Life]:
    """Return lives that begin and end earlier, some of them below 0."""
    return [(nbytes, first - by, last - by) for nbytes, first, last in lives]


@plan_reuse.mistake("apart")
def _(lifetimes):
    offsets, end = [], 0
    for nbytes, _, _ in lifetimes:
        offsets.append(end)
        end += rounded(nbytes)
    return offsets


@plan_reuse.mistake("apart")
def _(lifetimes):
    offsets = [0] * len(lifetimes)
    end = 0
    for k in sorted(range(len(lifetimes)), key=lambda k: -lifetimes[k][0]):
        offsets[k] = end
        end += rounded(lifetimes[k][0])
    return offsets


@plan_reuse.mistake("overlap")
def _(lifetimes):
    return [0 for _ in lifetimes]


@plan_reuse.mistake("order_of_places")
def _(lifetimes):
    return placed(lifetimes, sorted(range(len(lifetimes)), key=lambda k: -lifetimes[k][0]))


@plan_reuse.mistake("order_of_places")
def _(lifetimes):
    return placed(lifetimes, list(range(len(lifetimes))))


@plan_reuse.mistake("order_of_places")
def _(lifetimes):
    return placed(lifetimes, sorted(range(len(lifetimes)), key=lambda k: lifetimes[k][1]))


@plan_reuse.mistake("order_of_places")
def _(lifetimes):
    return placed(lifetimes, sorted(range(len(lifetimes)), key=lambda k: lifetimes[k][0]))


@plan_reuse.mistake("count")
def _(lifetimes):
    offsets = by_size(lifetimes)
    return dict(enumerate(offsets))


@plan_reuse.mistake("type")
def _(lifetimes):
    return [float(offset) for offset in by_size(lifetimes)]


@plan_reuse.mistake("touching")
def _(lifetimes):
    return by_size([(n, first, max(first, last - 1)) for n, first, last in lifetimes])


@plan_reuse.mistake("order")
def _(lifetimes):
    return by_size(sorted(lifetimes, key=lambda life: (-life[0], life[1])))


@plan_reuse.mistake("order")
def _(lifetimes):
    return by_size(sorted(lifetimes))


@plan_reuse.mistake("changed_input")
def _(lifetimes):
    lifetimes.sort(key=lambda life: (-life[0], life[1]))
    return by_size(lifetimes)


@plan_reuse.mistake("changed_input")
def _(lifetimes):
    offsets = by_size(lifetimes)
    lifetimes.sort()
    return offsets


def classes(lifetimes):
    """Return lives whose sizes are those of the pool's blocks."""
    return [(of_class(nbytes), first, last) for nbytes, first, last in lifetimes]


@plan_reuse.mistake("room")
def _(lifetimes):
    return by_size(classes(lifetimes))


@plan_reuse.mistake("room")
def _(lifetimes):
    return by_size([(nbytes + 64, first, last) for nbytes, first, last in lifetimes])


@plan_reuse.check(points=2)
def valid(t: Tester) -> None:
    """What is needed at the same moment shares no byte; offsets are multiples of 64."""
    for lives in (
        [],
        [(100, 0, 3)],
        [(100, 0, 6), (200, 2, 4), (50, 1, 5)],
        [(64, 0, 1), (64, 1, 2), (64, 2, 3)],
        [(300, 0, 5), (100, 2, 3), (200, 5, 6)],
        [(100, 4, 6), (300, 0, 4), (50, 3, 3), (500, 3, 3), (64, 6, 9)],
        lives_in(training((16, 12, 4), [8])),
        *(mixed(t.fixed, n, 20) for n in (4, 8, 12, 30, 60)),
        *(earlier(mixed(t.fixed, n, 20), by) for n, by in ((12, 10), (30, 10), (30, 40))),
    ):
        ask(t, lives)


@plan_reuse.check(points=2, only_with=("valid",))
def equal_sizes(t: Tester) -> None:
    """Values of one size take no more than is needed at the fullest moment."""
    for lives in (
        [(64, 0, 1), (64, 2, 3), (64, 4, 5)],
        [(256, 6, 9), (256, 0, 5), (256, 3, 7), (256, 8, 9), (256, 0, 2)],
        [(64, 0, 0), (64, 0, 2), (64, 5, 9), (64, 2, 5)],
        [(1200, 0, 2), (1200, 1, 5), (1200, 3, 4)],
        *(equals(t.fixed, *case) for case in ((8, 64, 30), (20, 100, 30), (60, 4096, 30))),
        *(equals(t.fixed, *case) for case in ((15, 2600, 12), (40, 5001, 30))),
    ):
        got, least = ask(t, lives), most_alive(lives)
        if length(lives, got) > least:
            wanted = f"{least:,} bytes: the fullest moment"
            too_long(t, lives, got, wanted, "Of equally large ones, which should be placed first?")


@plan_reuse.check(points=2, only_with=("valid",))
def mixed_sizes(t: Tester) -> None:
    """Values of many sizes take at most a tenth more than by the rule."""
    for lives in (
        lives_in(training((64, 128, 10), [32])),
        lives_in(training((64, 128, 256, 64, 10), [50])),
        *(mixed(t.fixed, n, moments) for n in (15, 40, 80) for moments in (12, 25, 40)),
    ):
        got, by_rule = ask(t, lives), length(lives, by_size(lives))
        if length(lives, got) > 1.1 * by_rule:
            wanted = f"at most a tenth more than {by_rule:,} bytes"
            order = "A large value finds no room between small ones. Which should be placed first?"
            too_long(t, lives, got, wanted, order)
