"""Merges a new version of an exercise file into a learner's, by function name.

Code that differs from its stub is the learner's and stays, with its helpers, imports and constants.
Other code is replaced by the new version, and new functions are added. A learner's function whose
signature changed in the course is kept and reported.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from minigrad.course.pieces import (
    Piece,
    is_unwritten,
    join,
    names_used,
    signature,
    split,
)
from minigrad.parsing import tree_of

Pieces = dict[tuple[str, str, int], Piece]


class MergeError(ValueError):
    """Raised if two versions cannot be merged; the text says why. The learner's file must stay."""


@dataclass
class Merged:
    """The merged text, and notes for the learner."""

    text: str
    notes: list[str] = field(default_factory=list)


def merge(stub: str | None, mine: str, new: str) -> Merged:
    """Merge a new stub into a learner's file.

    Args:
        stub: the stub that the learner began with; None if unknown.
        mine: the learner's file.
        new: the stub of the new course.

    Raises:
        MergeError: the learner's file, or the merged one, cannot be parsed.
    """
    try:
        pieces, tail = split(mine)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line})" if line else ""
        raise MergeError(f"it cannot be read as Python{where}") from error
    new_pieces, new_tail = split(new)
    merging = _Merging(stub, pieces, new_pieces)
    merged = merging.run()
    text = join(merged, _lines_of(tail, merging.stub_tail, new_tail))
    try:
        tree_of(text)
    except (SyntaxError, RecursionError) as error:
        line = getattr(error, "lineno", "?")
        raise MergeError(f"the merged file would not be Python (line {line})") from error
    return Merged(text, merging.notes)


def _lines_of(mine: tuple, stub: tuple | None, new: tuple) -> tuple:
    """Return the new comment lines if the learner did not change the old ones."""
    return new if stub is not None and mine == stub else mine


class _Merging:
    def __init__(self, stub: str | None, mine: list[Piece], new: list[Piece]) -> None:
        self.stub: Pieces | None = None
        self.stub_tail: tuple[str, ...] | None = None
        if stub is not None:
            stub_pieces, self.stub_tail = split(stub)
            self.stub = _by_key(stub_pieces)
        self.mine = mine
        self.new = new
        self.new_by_key = _by_key(new)
        self.notes: list[str] = []

    def run(self) -> list[Piece]:
        """Return the merged pieces in the learner's order, with new ones after their neighbours."""
        result: list[Piece] = []
        withdrawn: list[Piece] = []
        for piece in self.mine:
            new = self.new_by_key.get(piece.key)
            if new is not None:
                result.append(self._choose(piece, new))
            elif self._is_as_it_came(piece):
                withdrawn.append(piece)
                result.append(piece)
            else:
                if self.stub is not None and piece.key in self.stub:
                    self.notes.append(f"{piece.name} left the course; yours is kept")
                result.append(piece)
        have = {piece.key for piece in self.mine}
        for number, piece in enumerate(self.new):
            if piece.key not in have and not self._was_removed(piece):
                self._insert(result, number)
                if piece.kind == "named":
                    self.notes.append(f"{piece.name} is new")
        for piece in withdrawn:
            self._withdraw(result, piece)
        return result

    def _choose(self, mine: Piece, new: Piece) -> Piece:
        stub = self.stub.get(mine.key) if self.stub is not None else None
        lead = _lines_of(mine.lead, stub.lead if stub else None, new.lead)
        same = mine.plain == new.plain
        if same or self._is_untouched(mine):
            if not same and mine.kind == "named":
                self.notes.append(f"{mine.name} was not begun; it was replaced by the new one")
            return Piece(new.key, lead, new.text, new.node, new.line)
        if mine.kind == "named" and (stub is None or stub.plain != new.plain):
            self._report(mine, stub, new)
        return Piece(mine.key, lead, mine.text, mine.node, mine.line)

    def _report(self, mine: Piece, stub: Piece | None, new: Piece) -> None:
        """Note the course's changes to a piece that stays the learner's."""
        before = signature((stub or mine).node)
        after = signature(new.node)
        if after not in (before, signature(mine.node)):
            self.notes.append(f"SIGNATURE of {mine.name} was {before}, is now {after}; yours kept")
        elif stub is None:
            self.notes.append(f"{mine.name} differs from the new stub; yours is kept")
        else:
            self.notes.append(f"{mine.name} has another stub now; yours is kept")

    def _is_untouched(self, piece: Piece) -> bool:
        """Return whether the learner left a piece unchanged, so that it may be replaced."""
        if self.stub is None:
            return is_unwritten(piece.node)
        stub = self.stub.get(piece.key)
        return stub is not None and stub.plain == piece.plain

    def _is_as_it_came(self, piece: Piece) -> bool:
        """Return whether a piece and the comments above it are known to be unchanged."""
        stub = self.stub.get(piece.key) if self.stub is not None else None
        return stub is not None and (stub.plain, stub.lead) == (piece.plain, piece.lead)

    def _was_removed(self, piece: Piece) -> bool:
        """Return whether the learner removed a nameless statement; a removed name comes back."""
        return piece.kind in ("other", "docstring") and bool(self.stub and piece.key in self.stub)

    def _insert(self, result: list[Piece], number: int) -> None:
        """Insert a new piece after the one it follows in the new course, or before the next."""
        places = {piece.key: place for place, piece in enumerate(result)}
        piece = self.new[number]
        for before in reversed(self.new[:number]):
            if before.key in places:
                result.insert(places[before.key] + 1, piece)
                return
        for after in self.new[number + 1 :]:
            if after.key in places:
                result.insert(places[after.key], piece)
                return
        result.append(piece)

    def _withdraw(self, result: list[Piece], piece: Piece) -> None:
        """Remove an unchanged piece that the course dropped, unless other code uses it."""
        if piece.kind == "import":
            return  # the learner's code may use it
        others = [other for other in result if other is not piece]
        if piece.names & set().union(*(names_used(other.node) for other in others)):
            self.notes.append(f"{piece.name} left the course; it is kept, as your code uses it")
            return
        result.remove(piece)
        if piece.kind == "named":
            self.notes.append(f"{piece.name} left the course, and you had not begun it")


def _by_key(pieces: list[Piece]) -> Pieces:
    return {piece.key: piece for piece in pieces}
