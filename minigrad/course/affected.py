"""Finds the exercises that a change to a file affects."""

from __future__ import annotations

from minigrad.course.pieces import Piece, is_unwritten, names_used, split
from minigrad.grader.reading import parse


def affected(names: list[str], before: str | None, now: str, stub: str | None) -> list[str]:
    """Return the exercises to grade again, in order; none if nothing changed.

    These are the exercises whose text changed, or that use changed code, directly or not. A change
    that belongs to no exercise, such as an import or the answer to a bug hunt, affects all. Omits
    exercises that are still stubs, unless all of them are.

    Args:
        names: the lesson's exercises.
        before: the file's text before, None if there was none.
        now: its text now.
        stub: the file's stub, None if unknown.
    """
    pieces, old = _pieces(now), _pieces(before or "")
    if pieces is None or old is None:
        return []
    came = _pieces(stub or "") or []
    changed = _named({piece.key: piece for piece in pieces}, {piece.key: piece for piece in old})
    loose = any(
        piece.kind != "named" and piece.plain not in {other.plain for other in old}
        for piece in pieces
    )
    concerned = _users(changed, pieces)
    chosen = [name for name in names if name in concerned]
    unclaimed = any(
        name not in names and not _users({name}, pieces) & set(names) for name in changed
    )
    if loose or unclaimed:
        chosen = names
    begun = [name for name in chosen if _is_begun(name, names, pieces, came)]
    return begun or chosen[:1]


def _pieces(text: str) -> list[Piece] | None:
    return split(text)[0] if parse(text) else None


def _named(now: dict, before: dict) -> set[str]:
    """Return the names that were changed, added or removed."""
    keys = {key for key in {*now, *before} if key[0] == "named"}
    differ = {
        key
        for key in keys
        if key not in now or key not in before or now[key].plain != before[key].plain
    }
    return set().union(*(one[key].names for one in (now, before) for key in differ & {*one}))


def _users(names: set[str], pieces: list[Piece]) -> set[str]:
    """Return these names and all names that use them, directly or not."""
    users = set(names)
    grew = True
    while grew:
        more = set().union(*(piece.names for piece in pieces if names_used(piece.node) & users))
        grew = not more <= users
        users |= more
    return users


def _is_begun(name: str, names: list[str], pieces: list[Piece], came: list[Piece]) -> bool:
    """Return whether the learner has begun an exercise."""
    untouched = {piece.plain for piece in came}
    own = [piece for piece in pieces if name in piece.names and not is_unwritten(piece.node)]
    if any(piece.plain not in untouched for piece in own):
        return True
    # A bug hunt's defect may be in a helper, and its answer in a line that nothing uses.
    given = set().union(*(piece.names for piece in came)) - set(names)
    changed = [piece.names for piece in pieces if piece.plain not in untouched]
    users = [_users(some, pieces) for some in changed if some & given]
    return bool(own) and any(name in some or not some & set(names) for some in users)
