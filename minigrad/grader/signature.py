"""Recognizes parameters that a learner changed from the stub's, which checks rely on."""

from __future__ import annotations

import ast
import contextlib
import re

from minigrad.grader.folder import CHECKS_FOLDER
from minigrad.grader.reading import names_defined, parse_short

# The errors of Python and Numba for a call that does not fit; Numba's names no function
REFUSED = re.compile(
    r"(?:[\w.]+\.<locals>\.)*([\w.]+|<lambda>)\(\) "
    r"(?:takes|missing|got an unexpected|got multiple|got some)"
)
NAMELESS = re.compile(r"(?:too many|not enough|missing an?) argument")
STUBS = (CHECKS_FOLDER / "files" / "exercises", CHECKS_FOLDER.parents[1] / "solutions")


def differing(raised: dict, source: str, exercise: str, stem: str) -> tuple[str, str, str] | None:
    """Return what was called, its parameters in the stub, and those in a file, if they differ.

    Args:
        raised: the worker's description of an exception.
        source: the learner's file.
        exercise: the name to assume where the error names no function.
        stem: of the lesson.

    Returns:
        None for any other error, and if the parameters are those of the stub.
    """
    if "TypeError" not in raised["kinds"] or raised["n_frames"]:
        return None
    named = REFUSED.match(raised["text"])
    if not named and not NAMELESS.match(raised["text"]):
        return None
    name = named[1] if named and named[1] != "<lambda>" else exercise
    wanted, got = parameters(stub(stem), name), parameters(source, name)
    return (name, wanted, got) if wanted and got and wanted != got else None


def stub(stem: str) -> str:
    """Return a text with the signatures of a lesson's stub: the solution's, which are the same."""
    paths = [folder / f"{stem}.py" for folder in STUBS]
    return next((path.read_text(encoding="utf-8") for path in paths if path.is_file()), "")


def parameters(source: str, name: str) -> str:
    """Return the parameters of a function, a `Class.method` or a class, "" if there is none.

    >>> parameters("class A:\\n    def f(self, x=1): pass", "A.f")
    '(self, x=1)'
    >>> parameters("class A: pass", "A")
    '(self)'
    """
    name, _, method = name.partition(".")
    node = _defined(parse_short(source), name)
    if isinstance(node, ast.ClassDef):
        node = _defined(node, method or "__init__")
        if node is None:
            return "(self)"
    if isinstance(node, ast.Assign | ast.Expr):
        node = node.value
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        with contextlib.suppress(ValueError, RecursionError, MemoryError):  # a default value
            return f"({ast.unparse(node.args)})"
    return ""


def _defined(tree: ast.Module | ast.ClassDef | None, name: str) -> ast.stmt | None:
    """Return the last definition of a name in a body."""
    nodes = [node for node in tree.body if name in names_defined(node)] if tree else []
    return nodes[-1] if nodes else None
