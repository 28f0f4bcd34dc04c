"""Reads a learner's file as Python does, from any editor on any system."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

from minigrad.parsing import tree_of

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class UnreadableError(ValueError):
    """Bytes that Python could not decode either; the text says why."""


def read_source(path: Path) -> str:
    r"""Return the text of a Python file, with lines that end in "\n".

    As in Python, the encoding is UTF-8 unless the first two lines name another, a byte-order mark
    is dropped, and lines may end in "\r\n" and "\r".

    Raises:
        UnreadableError: the bytes are not in that encoding, or it does not exist.
    """
    content = path.read_bytes()
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
    except (SyntaxError, ValueError, LookupError) as error:
        why = _why(content, error)
        raise UnreadableError(f"Python cannot read this file: {why}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _why(content: bytes, error: Exception) -> str:
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "it begins as UTF-16 does; save it as UTF-8"
    if "missing encoding" in str(error):  # all that Python says about the first two lines
        try:
            content.decode("utf-8")
        except UnicodeDecodeError as undecoded:
            error = undecoded
    if isinstance(error, UnicodeDecodeError):
        line = 1 + content.count(b"\n", 0, error.start)
        return f"line {line} holds a byte that is not {error.encoding}"
    return str(error)


def parse(source: str) -> ast.Module | None:
    """Return the syntax tree of a file, None if it cannot be parsed."""
    try:
        return tree_of(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


def line_of(source: str, name: str) -> int:
    """Return the line of the last definition of `name` at the file's top level, 0 for none.

    For `Class.method` it is the method's line, or the class's where it defines no such method.
    """
    name, _, method = name.partition(".")
    if tree := parse(source):
        nodes = [node for node in tree.body if name in names_defined(node)]
        for node in nodes[-1:]:
            nodes += [part for part in getattr(node, "body", ()) if method in names_defined(part)]
        return nodes[-1].lineno if nodes else 0
    starts = (f"def {name}(", f"class {name}(", f"class {name}:", f"{name} =", f"{name}:")
    numbered = enumerate(source.split("\n"), 1)  # splitlines() also splits at form feeds
    return next((number for number, line in numbered if name and line.startswith(starts)), 0)


def names_defined(node: ast.stmt) -> set[str]:
    """Return the names that a top-level definition or assignment defines."""
    if isinstance(node, DEFINITIONS):
        return {node.name}
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return set()
    return {
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
