"""The message of a failed check: Given, Expected, Got, Where, Try, in at most 12 lines."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from minigrad.grader.formula import Formula
from minigrad.grader.wire import Other, leaves

WIDTH = 98
LABEL_WIDTH = 10
NARROW = 70  # below this width a part may take twice as many lines
KEPT = "\t\n\xa0\u3000"  # white space that moves no cursor back
# At the beginning of a line, a workflow's log takes these for a command.
COMMAND = re.compile(r"(?m)^(\s*)(::|##\[)")
MAX_LINES = {"Given": 3, "Expected": 2, "Got": 3, "Where": 2, "Try": 2}
LONGEST = 4_000  # characters of a part, of which a few lines are shown


@dataclass(frozen=True)
class Message:
    """What a learner reads when a check fails.

    `key` names the mistake for programs, such as tests; people read the five parts. `attempt` is
    the line after Try: a nudge, never the answer. `full` is the traceback of the learner's error,
    which `--full` shows.
    """

    key: str
    given: str
    expected: str
    got: str
    where: str
    attempt: str
    full: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, text in vars(self).items():
            shown = text if name == "full" or len(text) <= LONGEST else f"{text[:LONGEST]}…"
            object.__setattr__(self, name, inert(shown))

    def parts(self) -> list[tuple[str, str]]:
        """Return the five labelled parts in order."""
        texts = (self.given, self.expected, self.got, self.where, self.attempt)
        return list(zip(MAX_LINES, texts, strict=True))

    def lines(self, width: int = WIDTH) -> list[str]:
        """Return the message in lines of at most `width` columns: at most 12, more when narrow."""
        lines = []
        for label, text in self.parts():
            room = max(width - LABEL_WIDTH, 20)
            wrapped = [
                part
                for line in text.splitlines() or [""]
                for part in textwrap.wrap(line, room, subsequent_indent="  ") or [""]
            ]
            most = MAX_LINES[label] * (1 if width >= NARROW else 2)
            if len(wrapped) > most:
                wrapped = wrapped[:most]
                wrapped[-1] = wrapped[-1][: room - 2] + " …"
            for number, part in enumerate(wrapped):
                line = f"{label if number == 0 else '':<{LABEL_WIDTH}}{part}"
                lines.append(without_command(line).rstrip())
        return lines

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def as_dict(self) -> dict:
        """Return the fields as a dict of strings, but for `full`, which has the machine's paths."""
        fields = asdict(self)
        del fields["full"]
        return fields


def inert(text: str) -> str:
    r"""Return a learner's text with everything that a terminal would obey spelled out.

    That is: control characters except tab and line feed, marks that turn or hide text, and halves
    of surrogate pairs.

    >>> inert("a\tb\n\x1b[2J\u202ecod\r")
    'a\tb\n\\x1b[2J\\u202ecod\\r'
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in KEPT else c.encode("unicode_escape").decode() for c in text
    )


def one_line(text: str) -> str:
    """Return a text as `inert` does, in one line: spell out line feeds and tabs as well."""
    return inert(text).replace("\n", r"\n").replace("\t", r"\t")


def without_command(text: str) -> str:
    r"""Return a text in which no line begins like a workflow's command.

    >>> without_command("one::two\n  ::error::three")
    'one::two\n  \\::error::three'
    """
    return COMMAND.sub(r"\1\\\2", text)


class Failed(Exception):
    """Raised by a check that fails.

    Attributes:
        message: says what differs, and names no mistake.
        named: messages that each name a mistake, the likeliest first; shown only if confirmed.
    """

    def __init__(self, message: Message, named: Sequence[Message] = ()) -> None:
        super().__init__(str(message))
        self.message = message
        self.named = named


def show(value: Any, digits: int = 6, *, bare: bool = False, dtype: bool = False) -> str:
    """Return a value as a learner should see it: short, with shape and dtype for arrays.

    With `bare`, a short float64 array has neither; with `dtype`, a short array of any dtype has no
    shape.
    """
    if isinstance(value, Other):
        return f"an object of type {value.type_name}"
    if isinstance(value, bool | type(None)):
        return str(value)
    if isinstance(value, np.generic):
        number = _number(value.item(), digits)
        return number if value.dtype == np.float64 else f"{number} ({value.dtype})"
    if isinstance(value, float):
        return _number(value, digits)
    if isinstance(value, np.ndarray):
        view = _layout(value)
        is_short = value.size <= (8 if value.ndim <= 1 else 6) and max(value.shape, default=0) <= 8
        if is_short and value.ndim <= 2:
            text = _entries(value.tolist(), digits)
            if dtype and value.ndim:
                return f"{text} {value.dtype}{view}"
            if bare and value.ndim and value.dtype == np.float64:
                return text + view
        else:
            first = ", ".join(_number(entry, digits) for entry in value.ravel()[:4].tolist())
            text = f"[{first}, …]" if value.size else "[]"
        return f"{text} shape {value.shape} {value.dtype}{view}"
    if isinstance(value, tuple):
        comma = "," if len(value) == 1 else ""
        return f"({_joined(show(item, digits) for item in value)}{comma})"
    if isinstance(value, list):
        return f"[{_joined(show(item, digits) for item in value)}]"
    if isinstance(value, dict) and value:
        items = (f"{show(k)}: {show(v, digits, bare=bare, dtype=dtype)}" for k, v in value.items())
        return f"{{{_joined(items)}}}"
    if isinstance(value, str):
        return repr(value) if len(value) <= 80 else repr(value[:77]) + "…"
    return repr(value)[:120]


def _joined(texts: Iterable[str]) -> str:
    """Join texts with commas until a message is full; compute no text beyond that."""
    parts, n_characters = [], 0
    for text in texts:
        parts.append(text)
        n_characters += len(text) + 2
        if n_characters > LONGEST:
            return ", ".join([*parts, "…"])
    return ", ".join(parts)


def show_both(expected: Any, got: Any) -> tuple[str, str]:
    """Return two values, shown `bare`, with the digits and dtypes that tell them apart.

    >>> show_both(np.zeros(2), np.zeros(2, np.float32))
    ('[0, 0] float64', '[0, 0] float32')
    >>> show_both({"a": np.ones(1)}, {"a": np.array([1.0000001])})
    ("{'a': [1]}", "{'a': [1.0000001]}")
    """
    arrays = leaves([expected, got], np.ndarray)
    dtype = any(array.dtype != np.float64 for array in arrays)

    def both(digits: int) -> tuple[str, str]:
        first, second = (show(one, digits, bare=True, dtype=dtype) for one in (expected, got))
        return first, second

    pairs = (both(digits) for digits in (6, 9, 12, 17))
    return next((pair for pair in pairs if pair[0] != pair[1]), both(6))


def begins(name: str, place: str) -> str:
    """Return where a function begins, in words that cannot be taken for the line at fault.

    >>> begins("slope", "exercises/00_start.py:12")
    'in slope, from exercises/00_start.py:12 on'
    """
    return f"in {name}, from {place} on"


def a_kind(name: str) -> str:
    """Return a type's name with its article.

    >>> a_kind("int"), a_kind("list"), a_kind("NoneType")
    ('an int', 'a list', 'None')
    """
    if name == "NoneType":
        return "None"
    return f"{'an' if name[:1].lower() in tuple('aeiou') else 'a'} {name}"


def show_typed(value: Any) -> str:
    """Return a value followed by its type.

    >>> show_typed(3), show_typed("a"), show_typed(3.0)
    ('3, an int', "'a', a str", '3.0, a float')
    """
    if isinstance(value, Other):
        return show(value)
    name, text = type(value).__name__, show(value)
    if isinstance(value, float) and text.lstrip("-").isdigit():
        text += ".0"  # else it would read as an int, from which it must differ
    return f"{text}, {a_kind(name)}"


def digits_to_tell(got: Any, expected: Any) -> int:
    """Return the fewest digits, 6 or more, that show two numbers or arrays differently.

    It is 6 as well where they differ only in entries that are not shown.

    >>> digits_to_tell(100.0, 100.00001), digits_to_tell(1.0, 2.0)
    (9, 6)
    >>> digits_to_tell(np.arange(99.0), np.r_[0:98.0, 0.0])
    6
    """
    shown = (digits for digits in (6, 9, 12) if show(got, digits) != show(expected, digits))
    return next(shown, 6 if "…" in show(got) else 17)


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1.

    >>> counted(1, "call"), counted(2, "call")
    ('1 call', '2 calls')
    """
    return f"{n} {noun}{'s' * (n != 1)}"


def _layout(array: np.ndarray) -> str:
    """Return in words how an array lies in memory, "" for row by row without gaps."""
    if array.flags.c_contiguous:
        return ""
    if min(array.strides) < 0:
        return " (a reversed view)"
    return " (a transposed view)" if array.flags.f_contiguous else " (a view with gaps)"


def _entries(value: Any, digits: int) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_entries(item, digits) for item in value) + "]"
    return _number(value, digits)


def _number(value: Any, digits: int) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def show_call(name: str, arguments: list) -> str:
    """Return `name(…)` with the arguments shown, followed by each formula in full."""
    letters = iter([*"fghkpqrstuvw", *(f"f{number}" for number in range(1, 99))])
    spelled = []

    def one(argument: Any) -> str:
        if isinstance(argument, Formula):
            letter = next(letters)
            spelled.append(f"{letter}(x) = {argument}")
            return letter
        if isinstance(argument, list) and any(isinstance(item, Formula) for item in argument):
            return "[" + ", ".join(one(item) for item in argument) + "]"
        return show(argument, bare=True)

    call = f"{name}({', '.join(one(argument) for argument in arguments)})"
    return f"{call} with {'; '.join(spelled)}" if spelled else call
