"""Hashes the part of a file on which a grade depends.

Writing the second function of a file does not invalidate the points of the first; changing a helper
does.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable

from minigrad.grader.reading import DEFINITIONS, parse


def file_hash(source: str) -> str:
    """Return a short hash of a text."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def fingerprint(source: str, name: str, exercises: Iterable[str]) -> str:
    """Return a hash of the part of a file on which one exercise's grade depends.

    That part is everything except comments and the exercises that this one mentions neither itself
    nor through other code. For a file that is not Python it is the whole text.

    Args:
        source: the text of the file.
        name: the exercise.
        exercises: the names of all exercises of the file.
    """
    if (tree := parse(source)) is None:
        return file_hash(source)
    others = set(exercises) - {name} - _reached(tree, name)
    kept = [n for n in tree.body if not (isinstance(n, DEFINITIONS) and n.name in others)]
    return file_hash("\n".join(map(dumped, kept)))


def used(source: str, name: str, exercises: Iterable[str]) -> list[str]:
    """Return the other exercises that one mentions, itself or through other code."""
    if (tree := parse(source)) is None:
        return []
    reached = _reached(tree, name, is_own=True)
    return [other for other in exercises if other in reached and other != name]


def _reached(tree: ast.Module, name: str, *, is_own: bool = False) -> set[str]:
    """Return the definitions that an exercise, or code outside definitions, reaches by mention.

    With `is_own` neither code outside definitions nor strings count.
    """
    unread: dict[str, list[ast.stmt]] = {}
    new = []
    for node in tree.body:
        if isinstance(node, DEFINITIONS) and node.name != name:
            unread.setdefault(node.name, []).append(node)
        elif not is_own or isinstance(node, DEFINITIONS):
            new.append(node)
    reached = set()
    read = plain_names_in if is_own else names_in
    while new:
        mentioned = set().union(*map(read, new)) & unread.keys()
        reached |= mentioned
        new = [node for one in mentioned for node in unread.pop(one)]
    return reached


def dumped(node: ast.AST) -> str:
    """Return a syntax tree as text without line numbers, however deeply nested."""
    try:
        return ast.dump(node)
    except (RecursionError, ValueError):  # a sum of a thousand terms; an int of 5,000 digits
        pass
    texts: list[str] = []
    waiting: list[object] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.AST):
            texts.append(type(part).__name__)
            waiting += [")", *reversed([value for _, value in ast.iter_fields(part)]), "("]
        elif isinstance(part, list):
            waiting += ["]", *reversed(part), "["]
        else:
            texts.append(hex(part) if type(part) is int else repr(part))
    return " ".join(texts)


def names_in(node: ast.AST) -> set[str]:
    """Return the names that a piece of code mentions, those in strings included."""
    texts = (p.value for p in ast.walk(node) if isinstance(p, ast.Constant))
    return plain_names_in(node) | {text for text in texts if isinstance(text, str)}


def plain_names_in(node: ast.AST) -> set[str]:
    """Return the names that a piece of code mentions."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
