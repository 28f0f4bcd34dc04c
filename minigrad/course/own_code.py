"""Takes a learner's solution out of an exercise file: the definition, and its helpers."""

from __future__ import annotations

import ast
import re

from minigrad.course.pieces import Piece, names_used, split

MARK = re.compile(r"\s*### (BEGIN|END) SOLUTION")  # only the course's own solutions have them


def own_code(source: str, name: str) -> str:
    """Return a definition of a file with the ones that it uses; "" if it is not there.

    Docstrings keep their first paragraph only: the rest is the exercise's text.

    Args:
        source: the text of the file.
        name: a function or a class at the top of it.
    """
    pieces, _ = split(source)
    named = [piece for piece in pieces if piece.kind == "named"]
    taken: list[Piece] = []
    waiting = [piece for piece in named if name in piece.names][-1:]
    while waiting:
        piece = waiting.pop()
        if piece not in taken:
            taken.append(piece)
            used = names_used(piece.node)
            waiting += [one for one in named if one.names & used]
    return "\n\n\n".join(_shortened(p) for p in sorted(taken, key=lambda piece: piece.line))


def _shortened(piece: Piece) -> str:
    """Return a piece's text without what follows the first paragraphs of its docstrings."""
    lines = piece.text.split("\n")
    for node in sorted(ast.walk(piece.node), key=lambda one: -getattr(one, "lineno", 0)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        text = node.body[0]
        if ast.get_docstring(node) is None or text.lineno == text.end_lineno:
            continue
        first, last = text.lineno - piece.line, (text.end_lineno or 0) - piece.line
        kept = lines[first : last + 1]
        if "" not in map(str.strip, kept):
            continue
        end = [line.strip() for line in kept].index("")
        quotes = kept[-1].rstrip()[-3:]
        lines[first : last + 1] = [*kept[: end - 1], kept[end - 1].rstrip() + quotes]
    return "\n".join(line for line in lines if not MARK.match(line)).strip("\n")
