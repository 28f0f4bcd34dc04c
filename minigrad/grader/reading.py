"""Reads a learner's file as Python does, whichever editor and system it comes from."""

from __future__ import annotations

import ast
import codecs
import io
import tokenize
from pathlib import Path

from minigrad.grader.opening import NotAFileError, read_file
from minigrad.parsing import tree_of

LARGEST = 1_000_000  # bytes of a file
MAX_PARSED = 200_000  # characters: a longer file is one part, as parsing it takes too long
# As `codecs.lookup` names them. Each decodes in linear time and extends ASCII. Python's others
# include some that encode no text (unicode_escape) or take a minute for a megabyte (punycode).
ENCODINGS = {
    "utf-8", "utf-8-sig", "ascii", "big5", "big5hkscs", "cp437", "cp850", "cp852", "cp855", "cp857",
    "cp858", "cp860", "cp861", "cp862", "cp863", "cp865", "cp866", "cp869", "cp874", "cp932",
    "cp949", "cp950", "euc_jp", "euc_jis_2004", "euc_jisx0213", "euc_kr", "gb18030", "gb2312",
    "gbk", "johab", "koi8-r", "koi8-u", "mac-cyrillic", "mac-greek", "mac-iceland", "mac-latin2",
    "mac-roman", "mac-turkish", "shift_jis", "tis-620",
    *(f"iso8859-{part}" for part in range(1, 17) if part != 12),
    *(f"cp125{page}" for page in range(9)),
}  # fmt: skip
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


SAVE_AS_UTF8 = "Save the file as UTF-8; editors have the encoding in a menu, or beside Save."
PUT_A_FILE = "Put a file of your code alone in its place: no link, no pipe, and none so large."


class UnreadableError(ValueError):
    """Bytes that Python could not decode either; the message says why.

    `line` is the number of the line at fault and `shown` its text; 0 and "" if no line is at fault.
    `attempt` says what to do.
    """

    def __init__(
        self, why: str, line: int = 0, shown: str = "", attempt: str = SAVE_AS_UTF8
    ) -> None:
        super().__init__(f"Python cannot read this file: {why}")
        self.line, self.shown, self.attempt = line, shown, attempt


def read_source(path: Path, within: Path | None = None) -> str:
    r"""Return the text of a Python file with "\n" at the ends of lines.

    As in Python, the encoding is UTF-8 unless the first two lines name another, a byte-order mark
    is dropped, and lines may end in "\r\n" and "\r".

    With `within`, a resolved path, the file must lie there once all links are followed.

    Raises:
        UnreadableError: it is no regular file or too large (`read_file`), its bytes are not in that
            encoding, one of them is null, or the encoding is not among `ENCODINGS`.
    """
    try:
        content = read_file(path, LARGEST, within=within)
    except NotAFileError as error:
        raise UnreadableError(error.strerror or "it is no file", attempt=PUT_A_FILE) from None
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        if codecs.lookup(encoding).name not in ENCODINGS:
            raise LookupError(f"{encoding} is not an encoding that editors write")
        text = content.decode(encoding)
    except (SyntaxError, ValueError, LookupError) as error:
        raise _unreadable(content, error) from None
    if "\0" in text:
        raise _at(content, content.index(b"\0"), "a null byte, as UTF-16 does")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _unreadable(content: bytes, error: Exception) -> UnreadableError:
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return UnreadableError("it begins as UTF-16 does; save it as UTF-8")
    if "missing encoding" in str(error):  # Python's only complaint about the first two lines
        try:
            content.decode("utf-8")
        except UnicodeDecodeError as undecoded:
            error = undecoded
    if isinstance(error, UnicodeDecodeError):
        return _at(content, error.start, f"a byte that is not {error.encoding}")
    return UnreadableError(str(error))


def _at(content: bytes, start: int, what: str) -> UnreadableError:
    """Return the error for a file with something wrong at this byte."""
    before, text = (
        part.replace(b"\r\n", b"\n").replace(b"\r", b"\n") for part in (content[:start], content)
    )
    line = 1 + before.count(b"\n")
    shown = text.split(b"\n")[line - 1].decode("utf-8", "replace").strip()
    return UnreadableError(f"line {line} holds {what}", line, shown)


def parse(source: str) -> ast.Module | None:
    """Return the syntax tree of a file, None if it cannot be parsed."""
    try:
        return tree_of(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return None


def parse_short(source: str) -> ast.Module | None:
    """Return the syntax tree of a file, None if it is too long or cannot be parsed.

    Parsing a megabyte of small statements takes seconds, and many places ask for it.
    """
    return parse(source) if len(source) <= MAX_PARSED else None


def line_of(source: str, name: str) -> int:
    """Return the line of the last top-level definition of `name`, 0 for none.

    For `Class.method` that is the method's line, or the class's if it defines no such method.
    """
    name, _, method = name.partition(".")
    if tree := parse_short(source):
        nodes = [node for node in tree.body if name in names_defined(node)]
        for node in nodes[-1:]:
            nodes += [part for part in getattr(node, "body", ()) if method in names_defined(part)]
        return nodes[-1].lineno if nodes else 0
    starts = (f"def {name}(", f"class {name}(", f"class {name}:", f"{name} =", f"{name}:")
    numbered = enumerate(source.split("\n"), 1)  # splitlines() also splits at form feeds
    return next((number for number, line in numbered if name and line.startswith(starts)), 0)


def is_definition(source: str, name: str) -> bool:
    """Return whether `name`, or the class of `Class.method`, is last bound by `def` or `class`."""
    name, _, _ = name.partition(".")
    tree = parse_short(source)
    nodes = [node for node in tree.body if name in names_defined(node)] if tree else []
    return bool(nodes) and isinstance(nodes[-1], DEFINITIONS)


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
