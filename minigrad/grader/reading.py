"""A learner's file as text: what Python itself reads, from any editor on any system."""

from __future__ import annotations

import io
import tokenize
from pathlib import Path


class UnreadableError(ValueError):
    """The bytes are no text; Python would not read them either. The text says why."""


def read_source(path: Path) -> str:
    r"""Return the text of a Python file, with lines that end in "\n".

    As in Python: UTF-8 unless the first two lines name another encoding; a byte-order mark is no
    part of the text; lines may end in "\r\n" and "\r".

    Raises:
        UnreadableError: the bytes are not of that encoding, or there is no such one.
    """
    content = path.read_bytes()
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
    except (SyntaxError, ValueError, LookupError) as error:
        why = _why(content, error)
        raise UnreadableError(f"this file is no text that Python reads: {why}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _why(content: bytes, error: Exception) -> str:
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "it begins as UTF-16 does; save it as UTF-8"
    if "missing encoding" in str(error):  # of the first two lines Python says no more
        try:
            content.decode("utf-8")
        except UnicodeDecodeError as undecoded:
            error = undecoded
    if isinstance(error, UnicodeDecodeError):
        line = 1 + content.count(b"\n", 0, error.start)
        return f"line {line} holds a byte that is not {error.encoding}"
    return str(error)


def lines_of(source: str) -> list[str]:
    r"""Return the lines as Python counts them: a form feed or a line separator ends none."""
    return source.split("\n")
