"""The check's own account of a pool: what is in use, what is free, what the system gave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad.course.l10_allocator.classes import right
from minigrad.course.l10_allocator.programs import Step
from minigrad.grader.message import Failed, a_kind, show
from minigrad.grader.tester import Tester

SEGMENT = 1 << 16
SHOWN = 7  # steps of a program that a message shows
APART = (4096,)  # gaps before segments: none touches another
ALL_RULES = {"early": True, "smallest": True, "empty": True}
JOIN = "Free pieces that touch are one piece. Look at both neighbours, in a segment."
CHANGED = "changed_by_error"  # the key where a call that was refused has changed something


def step_text(step: Sequence[Any], number: int) -> str:
    """Return a step as the line of Python that it is; number: of the request."""
    what, value, *more = step
    if what == "alloc":
        return f"{name(number)} = p.alloc({value})"
    return f"p.free({name(value)}{f' + {more[0]}' if more else ''})"


def name(request: int) -> str:
    """Return the name of what a request got."""
    return chr(ord("a") + request) if request < 15 else f"a{request}"


class Ledger:
    """Replays the log of a pool, and fails where it breaks a rule.

    Attributes:
        segments: address -> bytes of what the system gave.
        blocks: address -> bytes of what is in use.
        live, peak: bytes in use now, and at most so far.
        n_taken, n_requests: segments taken, and blocks asked for.
        refused: the numbers of the steps so far that were to raise, and did.
        overdrawn: the largest (reserved, peak) in bytes over the bound, if any.
    """

    def __init__(
        self, t: Tester, steps: Sequence[Step], gaps: Sequence[int], through: int = -1
    ) -> None:
        """Run the program; what step number `through` raises is the message."""
        self.t, self.steps, self.gaps_before, self.through = t, steps, gaps, through
        self.segments: dict[int, int] = {}
        self.blocks: dict[int, int] = {}
        self.asked: dict[int, int] = {}  # the bytes that were asked for
        self.pieces: list[tuple[int, int]] = []  # (address, bytes): freed, never merged
        self.rests: list[tuple[int, int]] = []  # what was left of a cut
        self.unjoined: list[tuple[int, int]] = []  # both, before the present request
        self.live = self.peak = self.reserved = self.n_taken = self.n_requests = 0
        self.overdrawn: tuple[int, int] | None = None
        self.refused: list[int] = []
        self.former: dict[int, int] = {}  # address -> bytes of the segment that was there before
        self.has_taken = self.has_given = False  # in the present step
        self.rules: dict[str, bool] = {}
        self.done = len(steps) if through < 0 else through
        self.say()
        plain = [list(step) for step in steps]
        self.log = t.drive("pool_log", plain, list(gaps), through, given=t.given)
        self.done = 0  # steps

    def say(self) -> None:
        """Let messages show the steps so far."""
        numbers, n = [], 0
        for step in self.steps[: self.done + 1]:
            numbers.append(n)
            n += step[0] == "alloc"
        lines = [step_text(step, k) for step, k in zip(self.steps, numbers, strict=False)]
        left_out = [f"… ({len(lines) - SHOWN} steps)"] if len(lines) > SHOWN else []
        self.t.given = "; ".join(["p = Pool(system)", *left_out, *lines[-SHOWN:]])

    def fail(self, key: str, expected: str, got: str, attempt: str) -> None:
        """Fail at the present step; if it goes well without the refused calls, say that."""
        if self.refused and self.goes_well_without():
            key = CHANGED
            attempt = (
                f"Without `{step_text(self.steps[self.refused[-1]], 0)}`, which was refused, all "
                "goes well. What had been changed when it raised?"
            )
        self.stop(key, expected, got, attempt)

    def stop(self, key: str, expected: str, got: str, attempt: str) -> None:
        """Fail at the present step."""
        self.say()
        self.t.fail(key, expected, got, attempt)

    def goes_well_without(self) -> bool:
        """Return whether the steps up to the present one go well without those refused."""
        some = enumerate(self.steps[: self.done + 1])
        honest = [step for n, step in some if n not in self.refused]
        return holds(self.t, honest, self.gaps_before, **self.rules)

    def replay(self, *, early: bool = False, smallest: bool = False, empty: bool = False) -> Ledger:
        """Check the whole log.

        early: no segment is taken while a free piece is large enough. smallest: a block is cut
        from the smallest piece that holds it. empty: before a segment is taken, those in which
        nothing is in use have gone back.
        """
        self.rules = {"early": early, "smallest": smallest, "empty": empty}
        before: list[tuple[int, int]] = []
        addresses: list[Any] = []
        if self.log[:1] != [["made", 0, 0]]:
            attempt = "A Pool begins with no memory at all. Who asks for some, and when?"
            self.stop("begins", "no segment before the first request", "one", attempt)
        for entry in self.log[1:]:
            what, first, second = entry
            if what in ("alloc", "free") and self.next_call(addresses) != [what, first]:
                self.rewritten()
            if what == "take":
                nbytes = self.steps[self.done][1] if self.done < len(self.steps) else 0
                if early:
                    self.check_needed(right(nbytes), f"system.take({first})")
                if empty:
                    self.check_empty()
                self.take(first, second, nbytes)
                self.has_taken = True
            elif what == "back":
                self.check_moment(first, early)
                self.give_back(first)
            elif self.is_unwanted(what, first, second):
                if self.through >= 0:
                    attempt = "The same calls end in different ways. What do they depend on?"
                    self.stop("raised", "no error", f"{second['kinds'][0]}", attempt)
                return Ledger(self.t, self.steps, self.gaps_before, self.done).replay(**self.rules)
            elif what == "alloc":
                before, self.unjoined = self.gaps(), [*self.pieces, *self.rests]
                addresses.append(second)
                self.has_taken = self.has_given = False
                self.alloc(first, second)
                if smallest:
                    self.check_smallest(second, right(first), before)
                self.done += 1
            else:
                self.free(first, second)
                self.done += 1
        if self.done != len(self.steps):
            self.rewritten()
        return self

    def is_unwanted(self, what: str, address: int, raised: Any) -> bool:
        """Return whether a call raised an error whose own words and line should be shown."""
        if not isinstance(raised, dict):
            return False
        is_refusal = what == "free" and raised["is_it"]
        is_wanted = what == "free" and address not in self.blocks
        return not is_refusal and (not is_wanted or "NotImplementedError" in raised["kinds"])

    def next_call(self, addresses: list[Any]) -> list[Any]:
        """Return which call of the pool the log must show next."""
        if self.done >= len(self.steps):
            return []
        what, number, *more = self.steps[self.done]
        if what == "alloc":
            return [what, number]
        return ["free", addresses[number] + (more[0] if more else 0)]

    def rewritten(self) -> None:
        """Fail as the log does not show the calls that were made."""
        attempt = "A pool answers requests, and leaves the notes of others alone."
        self.fail("rewritten", "a note of each call", "other notes", attempt)

    def check_moment(self, address: Any, early: bool) -> None:
        """Fail if a segment goes back while no other is needed."""
        step = self.steps[self.done] if self.done < len(self.steps) else ("end", 0)
        if step[0] != "alloc":
            attempt = "The next request may come at once. When is it time to give memory back?"
            got = f"system.give_back({show(address)})"
            self.fail("too_eager", "memory kept for the next request", got, attempt)
        if self.has_taken:
            attempt = "How much does the pool hold in between? Which of the two comes first?"
            got = f"system.take, and then system.give_back({show(address)})"
            self.fail("back_late", "system.give_back first, system.take last", got, attempt)
        if early:
            self.check_needed(right(step[1]), f"system.give_back({show(address)})")

    # ---- events -----------------------------------------------------------------------------

    def take(self, nbytes: int, address: int, asked_for: int) -> None:
        """Note a segment; it is as large as the block, and SEGMENT at least."""
        asked = right(asked_for)
        wanted = max(asked, SEGMENT)
        if nbytes != wanted and asked_for <= nbytes != SEGMENT and SEGMENT < nbytes < 2 * asked:
            attempt = (
                f"size_class({asked_for}) is {asked}: so long is the block, and so long a segment "
                "for it alone. Which of the two is not, in your code?"
            )
            self.fail("size", f"system.take({wanted})", f"system.take({nbytes})", attempt)
        if nbytes != wanted:
            attempt = (
                "A segment is as long as the block, or SEGMENT bytes: which is more? And no longer."
            )
            self.fail("segment", f"system.take({wanted})", f"system.take({nbytes})", attempt)
        self.segments[address] = nbytes
        self.pieces.append((address, nbytes))
        self.reserved += nbytes
        self.n_taken += 1
        bound = max(self.peak, self.live + asked)
        if self.reserved > 2 * bound + SEGMENT and self.overdrawn is None:
            self.overdrawn = self.reserved, bound

    def give_back(self, address: Any) -> None:
        """Note that a segment went back; nothing in it may be in use."""
        if address not in self.segments:
            attempt = "The system takes back whole segments, at the address where each begins."
            self.fail("no_segment", "the address of a segment", show(address), attempt)
        self.former[address] = self.segments.pop(address)
        end = address + self.former[address]
        self.reserved -= end - address
        self.has_given = True
        if inside := [b for b in self.blocks if address <= b < end]:
            attempt = "Its owner would write into memory that belongs to somebody else. Who checks?"
            self.fail(
                "gave_live",
                f"the segment at {address} kept: a block in it is in use",
                f"system.give_back({address}), with {inside[0]} in use",
                attempt,
            )
        for pieces in (self.pieces, self.rests):
            pieces[:] = [piece for piece in pieces if not address <= piece[0] < end]

    def alloc(self, nbytes: int, address: Any) -> None:
        """Note a block; it lies in a segment, and touches no other."""
        size = right(nbytes)
        if address == "NoneType":
            self.say()
            self.t.none("an address")
        if type(address) is not int:
            attempt = "An address is the number of a byte."
            self.fail("type", "an address, an int", a_kind(str(address)), attempt)
        if address % 64:
            attempt = "How long is a block, really: as long as it was asked for, or rounded up?"
            self.fail("misaligned", "a multiple of 64", str(address), attempt)
        home = [s for s, n in self.segments.items() if s <= address and address + size <= s + n]
        if not home:
            self.fail(
                "outside",
                f"{size} bytes inside a segment: {self.segment_text()}",
                f"{address} to {address + size}",
                self.beyond(address, size),
            )
        for other, length in self.blocks.items():
            if other < address + size and address < other + length:
                in_use = f"in use is {other} to {other + length}"
                n = self.asked[other]
                if other < address and other + n <= address:
                    got = f"{address} to {address + size}; {in_use}"
                    self.fail("size", f"{size} bytes that nobody uses", got, of_class(n))
                self.fail(
                    "overlap",
                    f"{size} bytes that nobody uses",
                    f"{address} to {address + size}; {in_use}",
                    "Two owners, one memory. What must become of a piece when a block is cut out "
                    "of it, and of a block when it is given out?",
                )
        self.blocks[address], self.asked[address] = size, nbytes
        self.live += size
        self.peak = max(self.peak, self.live)
        self.n_requests += 1
        self.cut(address, size)

    def beyond(self, address: int, size: int) -> str:
        """Return what to try where a block does not lie inside a segment."""
        for start, length in self.segments.items():
            if not start <= address <= start + length:
                continue
            if length < (before := self.former.get(start, 0)):
                return (
                    f"A segment of {before} bytes began at {start} before, and went back. How long "
                    "is the one that begins there now?"
                )
            if start + length in self.segments and address + size > start + length:
                return (
                    "Here one segment ends and another begins. No piece reaches beyond its "
                    "segment: where do you join two, to the left and to the right?"
                )
        return "Whose bytes are these? The pool owns what the system gave it, and no byte more."

    def free(self, address: int, raised: dict[str, Any] | None) -> None:
        """Note a release, or that it was refused."""
        if address in self.blocks:
            if raised:
                attempt = "This block is in use. How do you know which blocks are?"
                if not address:
                    attempt = "Address 0 is as good as any other. Which test takes it for none?"
                got = f"NotInUseError: {raised['text']}"
                self.fail("false_alarm", f"the block at {address} freed", got, attempt)
            size = self.blocks.pop(address)
            self.live -= size
            self.pieces.append((address, size))
            return
        wanted = f"NotInUseError: no block in use begins at {address}"
        if raised is None:
            attempt = (
                "Freed twice, it would be given to two. Which blocks are in use, and who knows?"
            )
            if self.steps[self.done][0] == "at":
                attempt = (
                    "alloc has returned no such address. How do you tell it from those it has?"
                )
            self.stop("did_not_raise", wanted, "no error", attempt)
        elif not raised["is_it"]:
            attempt = "Which exception does the docstring ask for? Ask before Python stumbles."
            self.stop("wrong_error", wanted, f"{raised['kinds'][0]}: {raised['text']}", attempt)
        self.refused.append(self.done)

    # ---- what is free -----------------------------------------------------------------------

    def gaps(self) -> list[tuple[int, int]]:
        """Return (address, bytes) of the free pieces: what lies between blocks, per segment."""
        pieces = []
        for start, length in self.segments.items():
            at = start
            inside = sorted((b, n) for b, n in self.blocks.items() if start <= b < start + length)
            for block, size in [*inside, (start + length, 0)]:
                if block > at:
                    pieces.append((at, block - at))
                at = block + size
        return pieces

    def cut(self, address: int, size: int) -> None:
        """Note what is left of the pieces out of which a block was cut, if it was one piece."""
        for piece in self.pieces + self.rests:
            start, length = piece
            if start <= address and address + size <= start + length:
                (self.pieces if piece in self.pieces else self.rests).remove(piece)
                parts = (
                    (start, address - start),
                    (address + size, start + length - address - size),
                )
                self.rests += [part for part in parts if part[1]]
                return
        for pieces in (self.pieces, self.rests):  # it took several
            pieces[:] = [p for p in pieces if p[0] + p[1] <= address or address + size <= p[0]]

    def check_needed(self, asked: int, got: str) -> None:
        """Fail if the system is called although a free piece is large enough."""
        fitting = [gap for gap in self.gaps() if gap[1] >= asked]
        if not fitting:
            return
        expected = f"the system left alone: {show_piece(fitting[0])} is free, {asked} are needed"
        if any(n >= asked for _, n in self.pieces):
            key, attempt = "no_reuse", "What becomes of a block when it is freed? Who finds it?"
        elif any(n >= asked for _, n in self.rests):
            key = "no_split"
            attempt = "A block was cut out of a larger piece. What becomes of the rest?"
        else:
            key, attempt = "no_merge", JOIN
        self.fail(key, expected, got, attempt)

    def check_empty(self) -> None:
        """Fail if a segment is taken although one in which nothing is in use was kept."""
        whole = [gap for gap in self.gaps() if self.segments.get(gap[0]) == gap[1]]
        if whole:
            attempt = (
                "Before more is taken, what is of no use goes back. How do you know that a free "
                "piece is a whole segment?"
            )
            if self.has_given:
                attempt = "Another one went back just now. How many of them are to go, and do all?"
            self.fail(
                "kept_empty",
                f"system.give_back({whole[0][0]}) first: nothing in that segment is in use",
                f"it was kept, with {whole[0][1]} bytes, and a new one taken",
                attempt,
            )

    def check_smallest(self, address: int, size: int, gaps: list[tuple[int, int]]) -> None:
        """Fail unless a block lies at the beginning of the smallest piece that holds it."""
        fitting = [gap for gap in gaps if gap[1] >= size]
        least = min((n for _, n in fitting), default=0)
        best = [gap for gap in fitting if gap[1] == least]
        if not best or address in [start for start, _ in best]:
            return
        home, length = next((gap for gap in gaps if gap[0] <= address < sum(gap)), (0, 0))
        part = next((n for start, n in self.unjoined if start == address), 0)
        if size <= part < length and (address != home or part < least):
            self.fail(
                "no_merge",
                f"{best[0][0]}, where {show_piece(best[0])} begins",
                f"{address}, a part of {show_piece((home, length))}",
                JOIN,
            )
        if any(start <= address < start + n for start, n in best):
            attempt = "It is the right piece. At which of its ends does the rest stay?"
            self.fail(
                "not_at_start", f"{best[0][0]}, where the piece begins", str(address), attempt
            )
        self.fail(
            "not_smallest",
            f"{size} bytes out of {show_piece(best[0])}",
            f"{address}, in a larger piece",
            "Who cuts up large pieces has none when a large one is needed. Which piece is best?",
        )

    def segment_text(self) -> str:
        """Return where segments are, in words."""
        return ", ".join(f"{s} to {s + n}" for s, n in self.segments.items()) or "there is none"


def show_piece(piece: tuple[int, int]) -> str:
    """Return a free piece in words."""
    return f"{piece[0]} to {piece[0] + piece[1]} ({piece[1]} bytes)"


def of_class(nbytes: int) -> str:
    """Return what to try where a block is not as large as its class."""
    return f"size_class({nbytes}) is {right(nbytes)}: which size has a block, and what returns it?"


def account(t: Tester, steps: Sequence[Step], gaps: Sequence[int] = APART, **rules: bool) -> Ledger:
    """Run a program on the learner's pool and check it; return the account."""
    return Ledger(t, steps, gaps).replay(**rules)


def holds(t: Tester, steps: Sequence[Step], gaps: Sequence[int], **rules: bool) -> bool:
    """Return whether a program goes well."""
    try:
        account(t, steps, gaps, **rules)
    except Failed:
        return False
    return True


def unharmed(t: Tester, steps: Sequence[Step], gaps: Sequence[int]) -> None:
    """Fail where a call that was refused changes what comes later, by any of the rules."""
    try:
        account(t, steps, gaps, **ALL_RULES)
    except Failed as failed:
        if failed.message.key == CHANGED:
            raise
