"""A plan of memory: offsets for values whose lives are known."""

from __future__ import annotations

import numpy as np

from minigrad.course.l10_allocator import lesson
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
        "else offset = max(offset, end). Lives overlap if each begins before the other has ended.",
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


def clash(t: Tester, lives: list[Life], offsets: list[int], j: int, k: int) -> None:
    """Fail for two values that share bytes while both are needed."""
    (_, a, b), (_, c, d) = lives[j], lives[k]
    key, attempt = "overlap", "Which values are in the way of one that is to be placed?"
    if b == c or d == a:
        key = "touching"
        attempt = "`last` is included: at that moment it is still read. What is written then?"
    elif not in_conflict(sorted(lives, key=lambda life: (-life[0], life[1])), offsets):
        key = "order"
        attempt = "These would be the offsets of sorted values. In which order did they come?"
    both = f"values {j} and {k} are needed at moment {max(a, c)}: no byte in common"
    text = "; ".join(
        f"{i}: {offsets[i]} to {offsets[i] + rounded(lives[i][0])}, moments {lives[i][1:]}"
        for i in (j, k)
    )
    t.fail(key, both, text, attempt)


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


@plan_reuse.mistake("equals")
def _(lifetimes):
    return placed(lifetimes, sorted(range(len(lifetimes)), key=lambda k: -lifetimes[k][0]))


@plan_reuse.mistake("equals")
def _(lifetimes):
    return placed(lifetimes, list(range(len(lifetimes))))


@plan_reuse.mistake("longer")
def _(lifetimes):
    return placed(lifetimes, sorted(range(len(lifetimes)), key=lambda k: lifetimes[k][1]))


@plan_reuse.mistake("equals")
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
    lifetimes.sort(key=lambda life: (-life[0], life[1]))
    return by_size(lifetimes)


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
    ):
        ask(t, lives)


@plan_reuse.check(points=2, only_with=("valid",))
def equal_sizes(t: Tester) -> None:
    """Values of one size take no more than is needed at the fullest moment."""
    for lives in (
        [(64, 0, 1), (64, 2, 3), (64, 4, 5)],
        [(256, 6, 9), (256, 0, 5), (256, 3, 7), (256, 8, 9), (256, 0, 2)],
        [(64, 0, 0), (64, 0, 2), (64, 5, 9), (64, 2, 5)],
        *(equals(t.fixed, n, size, 30) for n, size in ((8, 64), (20, 100), (60, 4096))),
    ):
        got, least = ask(t, lives), most_alive(lives)
        if (taken := length(lives, got)) > least:
            separate = sum(rounded(n) for n, _, _ in lives)
            key, attempt = "equals", "Of equally large ones, which should be placed first?"
            if taken == separate:
                key = "apart"
                attempt = "Each has a place of its own. Who is gone when another one comes?"
            t.fail(key, f"{least:,} bytes: the fullest moment", f"{taken:,} bytes", attempt)


@plan_reuse.check(points=2, only_with=("valid",))
def mixed_sizes(t: Tester) -> None:
    """Values of many sizes take at most a tenth more than by the rule."""
    for lives in (
        lives_in(training((64, 128, 10), [32])),
        lives_in(training((64, 128, 256, 64, 10), [50])),
        *(mixed(t.fixed, n, moments) for n in (15, 40, 80) for moments in (12, 25, 40)),
    ):
        got, by_rule = ask(t, lives), length(lives, by_size(lives))
        if (taken := length(lives, got)) > 1.1 * by_rule:
            t.fail(
                "longer",
                f"at most a tenth more than {by_rule:,} bytes",
                f"{taken:,} bytes; {most_alive(lives):,} are needed at the fullest moment",
                "A large value finds no room between small ones. Which should be placed first? "
                "And is a gap between two others used?",
            )
