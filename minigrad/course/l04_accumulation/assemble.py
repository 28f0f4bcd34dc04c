"""Puts a learner's functions of lessons 01 to 04 into one file that is an engine.

The frame is a whole engine in plain NumPy. It has a mark before each part that a lesson asks for.
There the learner's own function replaces the given one, if it passes its checks.
"""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from pathlib import Path
from typing import NamedTuple

from minigrad.course.copies import keep_copy
from minigrad.course.notebook import check
from minigrad.grader import progress
from minigrad.grader.folder import CourseError, find_exercises, find_folder, find_stem
from minigrad.grader.reading import read_source
from minigrad.grader.run import Submission
from minigrad.parsing import tree_of

FRAME = Path(__file__).with_name("frame.py")
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
MARK = re.compile(r"^# --- (\d\d\.\w+|the engine)$", re.MULTILINE)


class Part(NamedTuple):
    """One part of the assembled engine: its name, whose it is, and its lines of code."""

    exercise: str
    is_mine: bool
    lines: int


class NotAlone(ValueError):
    """Raised if a function needs what a file of its own cannot have; the text says what."""


def assemble(name: str = "my_engine.py") -> tuple[Path, list[Part]]:
    """Write the engine into the learner's folder; return its path, and whose its parts are.

    First copy a different file of this name into `.minigrad/backup`.
    """
    folder = find_folder()
    text, *blocks = MARK.split(FRAME.read_text(encoding="utf-8"))
    names = {block.partition(".")[2] for block in blocks[::2]}
    parts = []
    for which, given in zip(blocks[::2], blocks[1::2], strict=True):
        mine = own_text(which, names) if "." in which else None
        code = given if mine is None else f"\n{mine}\n\n\n"
        whose = "" if "." not in which else ": given" if mine is None else ": yours"
        text += f"# --- {which}{whose}{code}"
        if "." in which:
            parts.append(Part(which, mine is not None, lines_of_code(code)))
    path = folder.root / name
    if path.exists() and path.read_text(encoding="utf-8") != text:
        keep_copy(folder, [path])
    path.write_text(text, encoding="utf-8")
    return path, parts


def own_text(exercise_id: str, known: set[str]) -> str | None:
    """Return the learner's function, None unless it passes and stands alone."""
    try:
        folder = find_folder()
        path = folder.exercise_file(find_stem(exercise_id[:2]))
        remembered = progress.load(folder.state)["exercises"].get(exercise_id, {})
        _, [exercise] = find_exercises(exercise_id)
        now = Submission.read(path).fingerprint(exercise)
        is_known = remembered.get("passed_hash") == now
        if not is_known and not check(exercise_id).passed:
            return None
        return alone(read_source(path), exercise_id[3:], known | {"np", "Node"})
    except (CourseError, NotAlone):
        return None


def alone(source: str, name: str, known: set[str]) -> str:
    """Return a function of a file together with all that it needs from that file.

    Helpers go inside the function, so that they cannot clash with another part's.

    Args:
        source: the text of the file.
        name: the function.
        known: names that the engine's file defines anyway.

    Raises:
        NotAlone: the function needs minigrad, or is not in the file.
    """
    lines = source.split("\n")
    defined: dict[str, ast.stmt] = {}
    for statement in tree_of(source).body:
        for one in names_of(statement):
            defined[one] = statement
    if name not in defined:
        raise NotAlone(f"no {name} here")
    needed: list[ast.stmt] = []
    waiting = [defined[name]]
    while waiting:
        statement = waiting.pop()
        if statement in needed:
            continue
        is_import = isinstance(statement, ast.Import | ast.ImportFrom)
        if is_import and "minigrad" in ast.dump(statement):
            raise NotAlone(f"{name} needs minigrad")
        needed.append(statement)
        used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        waiting += [defined[one] for one in sorted(used - known) if one in defined]
    needed.sort(key=lambda statement: statement.lineno)
    texts = [text_of(statement, lines) for statement in needed]
    if len(texts) == 1:
        return texts[0]
    inner = textwrap.indent("\n\n".join([*texts, f"return {name}"]), "    ")
    return f"def _whole():\n{inner}\n\n\n{name} = _whole()"


def names_of(statement: ast.stmt) -> list[str]:
    """Return the names that a module-level statement defines."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [(one.asname or one.name).partition(".")[0] for one in statement.names]
    return [
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]


def text_of(statement: ast.stmt, lines: list[str]) -> str:
    """Return a statement's source, with only the first line of a function's docstring."""
    first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
    own = lines[first - 1 : statement.end_lineno]
    if isinstance(statement, ast.FunctionDef) and ast.get_docstring(statement):
        docstring = statement.body[0]
        title = lines[docstring.lineno - 1].rstrip()
        if docstring.end_lineno != docstring.lineno:
            title += '"""'
            own[docstring.lineno - first : (docstring.end_lineno or 0) - first + 1] = [title]
    return "\n".join(line for line in own if not line.lstrip().startswith("### "))


def lines_of_code(text: str) -> int:
    """Count the lines that are not empty and belong to no comment or docstring."""
    counted: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            counted.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree_of(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            counted -= {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    return len(counted)
