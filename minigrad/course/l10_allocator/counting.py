"""Reference counts: the last owner frees, once, and leaves poison behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad.course.l10_allocator import lesson
from minigrad.grader.message import show
from minigrad.grader.tester import Tester

Buffer = lesson.exercise(
    "Buffer",
    difficulty=2,
    minutes=15,
    returns="a Buffer with incref and decref",
    hints=(
        "Which number do incref and decref change, and for which value of it does more happen?",
        "decref: first refuse if owners is 0. Then one less. If that leaves none: write POISON "
        "over the bytes, and only then give the memory back. Why in this order?",
        "self.pool.memory[self.address : self.address + self.nbytes] = POISON writes every byte of "
        "a slice. self.pool.free(self.address) comes after it.",
    ),
)
POISON = 0xFF
CALLS = {"+": "incref", "-": "decref"}
SIZE = 1024  # bytes of a pool's memory
SHOWN = 7  # calls that a message shows
Call = tuple[str, int] | tuple[str, int, int]  # ("make", pool, nbytes), ("+" or "-", buffer)


@dataclass
class Known:
    """What must be true of a Buffer."""

    number: int  # from 1 on: what is written into its bytes
    pool: int
    place: int
    nbytes: int
    owners: int = 1


class Case:
    """Buffers of pools, and what is done with them.

    places: the addresses that each pool gives; what came back last is given first.
    """

    def __init__(self, t: Tester, calls: Sequence[Call], places: Sequence[int], n_pools: int = 1):
        self.t, self.calls, self.n_pools = t, calls, n_pools
        self.is_alone = sum(call[0] == "make" for call in calls) == 1
        values = [t.random.integers(10, 200, SIZE).astype(np.uint8) for _ in range(n_pools)]
        self.say(len(calls))
        self.arguments = [values, list(places), [list(call) for call in calls]]
        seen = t.drive("counted", *self.arguments, -1, given=t.given)
        self.known: list[Known] = []
        self.places = [list(places) for _ in values]
        self.asked: list[list[int]] = [[] for _ in values]
        self.frees: list[list[int]] = [[] for _ in values]
        self.memory = [one.copy() for one in values]
        for n, (call, one) in enumerate(zip(calls, seen, strict=True)):
            self.say(n)
            self.check(n, call, one)

    # ---- what is said -----------------------------------------------------------------------

    def name(self, k: int) -> str:
        """Return the name of a Buffer."""
        return "b" if self.is_alone else chr(ord("a") + k)

    def pool(self, k: int) -> str:
        """Return the name of a pool."""
        return "pool" if self.n_pools == 1 else "pq"[k]

    def say(self, last: int) -> None:
        """Let messages show the calls up to this one."""
        lines, n = [], 0
        for what, number, *more in self.calls[: last + 1]:
            if what == "make":
                lines.append(f"{self.name(n)} = Buffer({self.pool(number)}, {more[0]})")
                n += 1
            else:
                lines.append(f"{self.name(number)}.{CALLS[what]}()")
        left_out = [f"… ({len(lines) - SHOWN} calls)"] if len(lines) > SHOWN else []
        self.t.given = "; ".join(left_out + lines[-SHOWN:])

    def fail(self, key: str, expected: str, got: str, attempt: str) -> None:
        """Fail at the call that messages show."""
        self.t.fail(key, expected, got, attempt)

    # ---- what must be -----------------------------------------------------------------------

    def check(self, n: int, call: Call, seen: dict[str, Any]) -> None:
        """Do call number n on what is known, and compare."""
        what, number, *more = call
        if what == "make":
            self.make(number, more[0])
            mine = self.known[-1]
        else:
            mine = self.known[number]
            refused = not mine.owners
            self.check_raised(n, mine, refused, seen["raised"])
            if not refused:
                mine.owners += 1 if what == "+" else -1
                if not mine.owners:
                    self.frees[mine.pool].append(mine.place)
                    self.places[mine.pool].insert(0, mine.place)
        is_freed = what == "-" and not refused and not mine.owners
        if is_freed:
            self.memory[mine.pool][mine.place : mine.place + mine.nbytes] = POISON
        for k, (asked, frees, memory, at_free) in enumerate(seen["pools"]):
            self.check_asked(k, asked)
            self.check_frees(k, mine, frees)
            self.check_memory(k, mine, memory, is_freed)
            if is_freed and k == mine.pool and not np.array_equal(at_free, memory):
                attempt = "The pool has it back, and may have given it away. Whose bytes are these?"
                self.fail("too_late", "no byte written after pool.free", "some were", attempt)
        self.check_buffers(mine, seen["buffers"], what != "make" and refused)

    def make(self, pool: int, nbytes: int) -> None:
        """Note a new Buffer."""
        new = Known(len(self.known) + 1, pool, self.places[pool].pop(0), nbytes)
        self.known.append(new)
        self.asked[pool].append(nbytes)
        self.memory[pool][new.place : new.place + nbytes] = new.number  # by the driver: it owns it

    def heir(self, mine: Known) -> str:
        """Return the name of the Buffer that has this one's memory now, if there is one."""
        where = mine.pool, mine.place
        some = (k for k, one in enumerate(self.known) if (one.pool, one.place) == where)
        return next((self.name(k) for k in some if self.known[k].owners), "")

    def check_raised(self, n: int, mine: Known, refused: bool, raised: Any) -> None:
        """Fail unless a call raised what it should: an error if nobody owns the Buffer."""
        wanted = "NotInUseError: nobody owns it"
        if raised and not raised["is_it"]:
            if not refused or "NotImplementedError" in raised["kinds"]:
                self.t.drive("counted", *self.arguments, n, given=self.t.given)
            attempt = "Which exception does the docstring ask for? Ask before Python stumbles."
            self.fail("wrong_error", wanted, f"{raised['kinds'][0]}: {raised['text']}", attempt)
        if raised and not refused:
            got = f"NotInUseError: {raised['text']}"
            attempt = "Somebody owns it. Who counts?"
            if not mine.place and any(one.place for one in self.known):
                attempt = "Its address is 0, as good as any other. Which test takes it for none?"
            self.fail("false_alarm", "no error", got, attempt)
        if refused and not raised:
            key, attempt = "did_not_raise", "Its memory is the pool's again. Who is counted here?"
            if heir := self.heir(mine):
                key = "shared"
                attempt = f"{heir} has this memory now. Whose count was looked at, and changed?"
            self.fail(key, wanted, "no error", attempt)

    def check_asked(self, k: int, asked: Any) -> None:
        """Fail unless the pool was asked for the memory of each Buffer, once."""
        if asked != self.asked[k]:
            attempt = "Who makes a Buffer owns new memory: how much, and asked how often?"
            wanted = f"{self.pool(k)}.alloc called with {show(self.asked[k])}"
            self.fail("asked", wanted, show(asked), attempt)

    def check_frees(self, k: int, mine: Known, frees: Any) -> None:
        """Fail unless what was freed is what had lost its last owner."""
        wanted = self.frees[k]
        if frees == wanted:
            return
        new, before = frees[len(wanted) :], frees.count(mine.place)
        expected = f"{self.pool(k)}.free({wanted[-1]}), once" if wanted else "memory that is kept"
        got = f"{self.pool(k)}.free called with {show(frees)}" if frees else "not freed"
        if new:
            key = "freed_twice" if before > 1 and not mine.owners else "freed_early"
            attempt = "Who still owns it? And who frees, if nobody is left to?"
            if self.heir(mine) and not mine.owners:
                key, attempt = "shared", "Whose memory is this by now?"
        elif len(frees) == len(wanted):
            key, attempt = "wrong_address", "Which address did the pool give?"
        else:
            key, attempt = "not_freed", "Nobody owns it any more. Who gives the memory back?"
        self.fail(key, expected, got, attempt)

    def check_buffers(self, mine: Known, seen: list[list[Any]], refused: bool) -> None:
        """Fail unless each Buffer knows its owners, its address and its size."""
        for k, (one, (owners, address, nbytes)) in enumerate(zip(self.known, seen, strict=True)):
            if owners != one.owners:
                key = "count"
                attempt = "1 at first; one more with each incref, one less with each decref."
                if one is not mine:
                    key = "shared"
                    attempt = f"No call of {self.name(k)}. What is of one Buffer alone?"
                    if not one.owners and (heir := self.heir(one)):
                        attempt = (
                            f"{heir} has the memory that {self.name(k)} had, and a count of its "
                            "own. Whose count is this?"
                        )
                elif refused:
                    key = "changed"
                    attempt = (
                        "It was refused: nothing changes. What comes first, asking or writing?"
                    )
                name = self.name(k)
                got = f"{name}.owners = {show(owners)}"
                self.fail(key, f"{name}.owners = {one.owners}", got, attempt)
            if address != one.place or nbytes != one.nbytes:
                got = f"address {show(address)}, nbytes {show(nbytes)}"
                attempt = "Both stay what they were, to the end."
                self.fail("where", f"address {one.place}, nbytes {one.nbytes}", got, attempt)

    def check_memory(self, k: int, mine: Known, memory: Any, is_freed: bool) -> None:
        """Fail unless all bytes are as they were, but for POISON over what was freed now."""
        wanted = self.memory[k]
        if np.array_equal(memory, wanted):
            return
        place, end = mine.place, mine.place + mine.nbytes
        inside = memory[place:end]
        others = np.flatnonzero(np.delete(memory != wanted, np.arange(place, end)))
        if others.size or k != mine.pool:
            attempt = "The bytes beside it belong to others. Where does it begin, and end?"
            self.fail("others", f"bytes outside [{place}:{end}] kept", "written to", attempt)
        if not is_freed:
            attempt = "Somebody owns these bytes. When is the moment for poison?"
            self.fail("early_poison", "bytes as they were", "written to", attempt)
        if (inside == mine.number).all():
            attempt = (
                "Who still reads it shall see that it is gone. Which bytes are written over, from "
                "where to where, and in the array that is the pool's memory?"
            )
            self.fail("no_poison", f"bytes {POISON} at [{place}:{end}]", "as before", attempt)
        wrong = place + int(np.flatnonzero(inside != POISON)[0])
        attempt = "Every byte of it, from the first to the last, and no other value."
        self.fail("poison", f"memory[{wrong}] = {POISON}", f"{memory[wrong]}", attempt)


def alone(t: Tester, calls: str, nbytes: int = 0, place: int = 0) -> None:
    """Check one Buffer, and what is done with it: a text of `+` and `-`."""
    nbytes = nbytes or int(t.random.integers(20, 90))
    place = place or 64 * int(t.random.integers(1, 6))
    Case(t, [("make", 0, nbytes), *((one, 0) for one in calls)], [place])


def written(text: str) -> list[Call]:
    """Return the calls of words: `p30` makes a Buffer of 30 bytes in pool p, `-0` is its decref."""
    return [
        (word[0], int(word[1:]))
        if word[0] in CALLS
        else ("make", "pq".index(word[0]), int(word[1:]))
        for word in text.split()
    ]


def at_random(random: np.random.Generator, n: int, n_pools: int, dead: bool) -> list[Call]:
    """Return n calls on up to 6 Buffers; dead: on those that nobody owns as well."""
    calls: list[Call] = []
    owners: list[int] = []
    for _ in range(n):
        some = [k for k, count in enumerate(owners) if count or dead]
        if not some or (len(owners) < 6 and random.random() < 0.3):
            calls.append(("make", int(random.integers(n_pools)), int(random.integers(1, 65))))
            owners.append(1)
            continue
        k = int(random.choice(some))
        what = "+" if random.random() < 0.3 else "-"
        calls.append((what, k))
        owners[k] += (1 if what == "+" else -1) * (owners[k] > 0)
    return calls


PLACES = [64 * k for k in (3, 0, 5, 1, 8, 11)]  # apart, and one is 0


@Buffer.check(points=2)
def last_owner_frees(t: Tester) -> None:
    """The last owner frees the memory, once; the others leave it alone."""
    for calls in ("-", "+--", "++---", "+-+--", "+-+-+++----"):
        alone(t, calls)


@Buffer.check(points=1)
def poison(t: Tester) -> None:
    """Exactly its bytes are POISON, before the pool has it back."""
    for nbytes, place in ((64, 128), (1, 64), (100, 192), (640, 320)):
        alone(t, "-", nbytes, place)
        alone(t, "+--", nbytes, place)


@Buffer.check(points=1, only_with=("last_owner_frees",))
def apart(t: Tester) -> None:
    """Each Buffer counts for itself."""
    for text in ("p30 p40 +0 -1 -0 -0", "p30 -0 p30 +1 -1 -1", "p30 p40 -0 p20 p50 -3 -2 -1"):
        Case(t, written(text), PLACES)
    Case(t, written("p30 q30 +0 -1 -0 -0"), PLACES, 2)
    for n_pools in (1, 2):
        Case(t, at_random(t.fixed, 40, n_pools, False), PLACES, n_pools)


@Buffer.check(points=1, only_with=("last_owner_frees",))
def refuses(t: Tester) -> None:
    """Without an owner it raises, and nothing more happens, whoever has its memory by then."""
    for calls in ("--", "-+", "+---", "---", "-+-", "+--+-", "--++"):
        alone(t, calls)
    for text in ("p30 -0 p40 -0 -1", "p30 -0 p30 +0 -1", "p30 +0 -0 -0 p40 +1 -0 -1 -1"):
        Case(t, written(text), PLACES)
    for n_pools in (1, 2):
        Case(t, at_random(t.fixed, 60, n_pools, True), PLACES, n_pools)
