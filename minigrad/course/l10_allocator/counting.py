"""Reference counts: the last owner frees, once, and leaves poison behind."""

from __future__ import annotations

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
CALLS = {"+": "b.incref()", "-": "b.decref()"}


class Case:
    """A Buffer, and what is done with it: a text of `+` and `-`."""

    def __init__(self, t: Tester, calls: str, nbytes: int = 0, place: int = 0) -> None:
        self.t, self.calls = t, calls
        self.nbytes = nbytes or int(t.random.integers(20, 90))
        self.place = place or 64 * int(t.random.integers(1, 6))
        self.say(len(calls))
        self.bytes = t.random.integers(1, 200, 1024).astype(np.uint8)
        arguments = [self.bytes, self.place, self.nbytes, calls]
        self.seen = t.drive("counted", *arguments, given=t.given)
        self.check()

    def say(self, n: int) -> None:
        """Let messages show the first n calls."""
        lines = [CALLS[c] for c in self.calls[:n]]
        self.t.given = "; ".join([f"b = Buffer(pool, {self.nbytes})", *lines])

    def fail(self, key: str, expected: str, got: str, attempt: str) -> None:
        """Fail at the call that messages show."""
        self.t.fail(key, expected, got, attempt)

    def check(self) -> None:
        """Compare what was seen after each call with the count of owners."""
        owners, freed = 1, 0
        if self.seen["asked"] != [self.nbytes]:
            attempt = "Who makes a Buffer owns new memory: how much, and asked how often?"
            self.fail(
                "asked", f"pool.alloc({self.nbytes}), once", show(self.seen["asked"]), attempt
            )
        self.say(0)
        self.at(self.seen["first"], owners, freed, False)
        for n, (call, seen) in enumerate(zip(self.calls, self.seen["after"], strict=True), 1):
            self.say(n)
            is_dead = not owners
            if not is_dead:
                owners += 1 if call == "+" else -1
                freed += not owners
            self.at(seen, owners, freed, is_dead)

    def at(self, seen: dict[str, Any], owners: int, freed: int, refused: bool) -> None:
        """Fail unless one moment is right."""
        t = self.t
        if refused and not seen["raised"]:
            again = "Freed twice, its bytes would get two owners. Who may still be counted here?"
            self.fail("did_not_raise", "NotInUseError: nobody owns it", "no error", again)
        if seen["raised"] and not refused:
            self.fail("false_alarm", "no error", "NotInUseError", "Somebody owns it. Who counts?")
        if seen["frees"] != [self.place] * freed:
            got = f"pool.free called with {show(seen['frees'])}" if seen["frees"] else "not freed"
            if len(seen["frees"]) > freed:
                key = "freed_twice" if freed else "freed_early"
                attempt = "Who still owns it? And who frees, if nobody is left to?"
            elif seen["frees"]:
                key, attempt = "wrong_address", "Which address did the pool give?"
            else:
                key, attempt = "not_freed", "Nobody owns it any more. Who gives the memory back?"
            expected = f"pool.free({self.place}), once" if freed else "memory that is kept"
            self.fail(key, expected, got, attempt)
        if seen["owners"] != owners:
            attempt = (
                "1 at first; one more with each incref, one less with each decref. Who counts?"
            )
            self.fail("count", f"owners {owners}", f"owners {show(seen['owners'])}", attempt)
        if seen["address"] != self.place or seen["nbytes"] != self.nbytes:
            got = f"address {show(seen['address'])}, nbytes {show(seen['nbytes'])}"
            attempt = "Both stay what they were, to the end."
            self.fail("where", f"address {self.place}, nbytes {self.nbytes}", got, attempt)
        self.poisoned(seen["memory"], freed > 0)
        if freed and not np.array_equal(seen["after_free"], seen["memory"]):
            attempt = "The pool has it back, and may have given it away. Whose bytes are these now?"
            self.fail("too_late", "no byte written after pool.free", "some were", attempt)
        t.given = ""
        self.say(0)

    def poisoned(self, memory: Any, is_free: bool) -> None:
        """Fail unless its bytes are as they were, or POISON if it is free; and the others' too."""
        wanted = self.bytes.copy()
        end = self.place + self.nbytes
        if is_free:
            wanted[self.place : end] = POISON
        if np.array_equal(memory, wanted):
            return
        inside = memory[self.place : end]
        if is_free and np.array_equal(inside, self.bytes[self.place : end]):
            attempt = "Who still reads it shall see that it is gone. What is written over it?"
            self.fail("no_poison", f"bytes {POISON} at [{self.place}:{end}]", "as before", attempt)
        others = np.flatnonzero(np.delete(memory != wanted, np.arange(self.place, end)))
        if others.size:
            attempt = (
                "The bytes beside it belong to others. Where does it begin, where does it end?"
            )
            self.fail("others", f"bytes outside [{self.place}:{end}] kept", "written to", attempt)
        if not is_free:
            attempt = "Somebody still owns these bytes. When is the moment for poison?"
            self.fail("early_poison", "its bytes as they were", "written to", attempt)
        wrong = self.place + int(np.flatnonzero(inside != POISON)[0])
        attempt = "Every byte of it, from the first to the last, and no other value."
        self.fail("poison", f"memory[{wrong}] = {POISON}", f"{memory[wrong]}", attempt)


@Buffer.check(points=2)
def last_owner_frees(t: Tester) -> None:
    """The last owner frees the memory, once; the others leave it alone."""
    for calls in ("-", "+--", "++---", "+-+--", "+-+-+++----"):
        Case(t, calls)


@Buffer.check(points=1)
def poison(t: Tester) -> None:
    """Exactly its bytes are POISON, before the pool has it back."""
    for nbytes, place in ((64, 128), (1, 64), (100, 192), (640, 320)):
        Case(t, "-", nbytes, place)
        Case(t, "+--", nbytes, place)


@Buffer.check(points=1, only_with=("last_owner_frees",))
def refuses(t: Tester) -> None:
    """Without an owner it raises, and nothing more happens."""
    for calls in ("--", "-+", "+---", "---", "-+-", "+--+-", "--++"):
        Case(t, calls)


@Buffer.check(points=1, only_with=("last_owner_frees",))
def apart(t: Tester) -> None:
    """Each Buffer counts for itself."""
    turns = [int(k) for k in t.random.permutation([0, 0, 0, 1, 1, 2, 2, 2])]
    counts, addresses = [3, 2, 3], [64, 128, 192]
    lines = "; ".join(f"b{k}.decref()" for k in turns)
    given = f"b0, b1, b2 of one pool at {addresses} with {counts} owners; {lines}"
    left = t.drive("counted_apart", counts, turns, given=given)
    now, freed = list(counts), []
    for n, (k, seen) in enumerate(zip(turns, left, strict=True), 1):
        now[k] -= 1
        freed += [addresses[k]] * (not now[k])
        if seen != [now, freed]:
            expected = f"after {n} of these: owners {now}, freed {freed}"
            got = f"owners {show(seen[0])}, freed {show(seen[1])}"
            attempt = "What is of one Buffer alone, and where do you keep it?"
            t.fail("shared", expected, got, attempt)
