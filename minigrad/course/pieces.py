"""Splits a Python file into pieces: one per top-level statement, with the comments above it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from minigrad.grader.reading import DEFINITIONS, names_defined
from minigrad.parsing import tree_of


@dataclass(frozen=True)
class Piece:
    """One statement: its name (or else its text), the lines above it, and its own lines.

    `key` identifies the piece in other versions of the file: its kind, its name or text, and a
    number that tells a second definition of a name from the first.
    """

    key: tuple[str, str, int]
    lead: tuple[str, ...]
    text: str
    node: ast.stmt
    line: int

    @property
    def kind(self) -> str:
        """'named', 'import', 'docstring' or 'other'."""
        return self.key[0]

    @property
    def name(self) -> str:
        """Return the name that messages use."""
        return self.key[1] if self.kind == "named" else self.text.strip().partition("\n")[0]

    @property
    def plain(self) -> str:
        """Its text without blanks at the ends of lines, for comparing two versions."""
        return "\n".join(line.rstrip() for line in self.text.splitlines()).strip("\n")

    @property
    def names(self) -> set[str]:
        """Return the names that it defines."""
        return names_defined(self.node) if self.kind == "named" else set()


def split(text: str) -> tuple[list[Piece], tuple[str, ...]]:
    """Return the pieces of a file and the lines that follow the last one.

    Raises:
        SyntaxError: the text cannot be parsed.
    """
    tree = tree_of(text)
    lines = text.split("\n")
    pieces: list[Piece] = []
    seen: dict[tuple[str, str], int] = {}
    done = 0  # the number of lines that already belong to a piece
    for node in tree.body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) - 1
        last = _with_indented_comments(lines, node.end_lineno or node.lineno)
        if first < done:  # a second statement on the previous one's line
            before = pieces.pop()
            body = "\n".join([*before.text.split("\n"), *lines[done:last]])
            key = _numbered(seen, ("other", body.strip()))
            pieces.append(Piece(key, before.lead, body, node, before.line))
        else:
            body = "\n".join(lines[first:last])
            key = _numbered(seen, _identity(node, body, is_first=not pieces))
            pieces.append(Piece(key, tuple(lines[done:first]), body, node, first + 1))
        done = last
    return pieces, tuple(lines[done:])


def join(pieces: list[Piece], tail: tuple[str, ...]) -> str:
    """Return the text of the file that these pieces form."""
    lines = [line for piece in pieces for line in (*piece.lead, piece.text)]
    return "\n".join([*lines, *tail]).rstrip("\n") + "\n"


def signature(node: ast.stmt) -> str:
    """Return the signature of a function, or of a class and its methods, as text; else ''."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        returns = f" -> {_text(node.returns)}" if node.returns else ""
        return f"{node.name}({_text(node.args)}){returns}"
    if isinstance(node, ast.ClassDef):
        bases = f"({', '.join(map(_text, node.bases))})" if node.bases else ""
        return "; ".join([node.name + bases, *filter(None, map(signature, node.body))])
    return ""


def is_unwritten(node: ast.stmt) -> bool:
    """Return whether a function, or each method of a class, only raises NotImplementedError."""
    if isinstance(node, ast.ClassDef):
        methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
        return bool(methods) and all(map(is_unwritten, methods))
    return (
        isinstance(node, ast.FunctionDef)
        and len(node.body) <= 2
        and isinstance(last := node.body[-1], ast.Raise)
        and any(getattr(part, "id", "") == "NotImplementedError" for part in ast.walk(last))
    )


def names_used(node: ast.stmt) -> set[str]:
    """Return the names that a statement mentions."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _identity(node: ast.stmt, body: str, *, is_first: bool) -> tuple[str, str]:
    if isinstance(node, DEFINITIONS):
        return "named", node.name
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return "named", ", ".join(map(_text, targets))
    if isinstance(node, ast.Import | ast.ImportFrom):
        return "import", ast.unparse(node)
    if is_first and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return "docstring", ""
    return "other", body.strip()


def _text(node: ast.AST) -> str:
    try:
        return ast.unparse(node)
    except RecursionError:  # a default that is a sum of a thousand terms
        return "…"


def _numbered(seen: dict[tuple[str, str], int], identity: tuple[str, str]) -> tuple[str, str, int]:
    seen[identity] = seen.get(identity, 0) + 1
    return (*identity, seen[identity])


def _with_indented_comments(lines: list[str], last: int) -> int:
    """Return the last line of a statement, with the indented comments below it."""
    end = last
    for number in range(last, len(lines)):
        line = lines[number]
        if line.strip() and not (line[0] in " \t" and line.lstrip().startswith("#")):
            break
        if line.strip():
            end = number + 1
    return end
