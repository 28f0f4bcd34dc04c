"""Writes a result as text: for a terminal, for a notebook without HTML, for pytest."""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import TextIO

from minigrad.grader.message import LABEL_WIDTH, WIDTH, inert, without_command
from minigrad.grader.result import CheckResult, ExerciseResult, Result

SIGNS = {"passed": "✓", "failed": "✗", "follows": "↳", "not_run": "·"}
ASCII_SIGNS = {"passed": "+", "failed": "x", "follows": ">", "not_run": "."}
PRINTED_LINES = 5
INDENT = " " * 6
ENGINE_NOTE = "an engine exercise: it can import minigrad, so it is isolated less than a plain one"
COLOURS = {"passed": "32", "failed": "31", "follows": "2", "not_run": "2", "bold": "1", "dim": "2"}


class Style:
    """What a stream can show: colours (it honours NO_COLOR), signs beyond ASCII, its width."""

    def __init__(self, stream: TextIO | None = None, *, plain: bool = False) -> None:
        stream = stream or sys.stdout
        encoding = (getattr(stream, "encoding", None) or "ascii").lower()
        self.signs = SIGNS if encoding.startswith("utf") or plain else ASCII_SIGNS
        is_terminal = stream is not None and stream.isatty()
        self.colour = is_terminal and not plain and not os.environ.get("NO_COLOR")
        columns = shutil.get_terminal_size((WIDTH, 24)).columns if is_terminal else WIDTH
        self.width = max(40, min(WIDTH, columns - 1))

    def paint(self, text: str, name: str) -> str:
        """Return the text in a colour, if the stream shows colours."""
        return f"\x1b[{COLOURS[name]}m{text}\x1b[0m" if self.colour else text

    def stars(self, difficulty: int) -> str:
        """Return a difficulty as five stars."""
        full, empty = "★☆" if self.signs is SIGNS else "*."
        return full * difficulty + empty * (5 - difficulty)


def exercise_lines(
    exercise: ExerciseResult,
    style: Style,
    *,
    full: bool = False,
    unread: bool = False,
    note: str = "",
) -> list[str]:
    """Return the lines for one exercise, with the message of its first failure.

    Args:
        exercise: its result.
        style: how to write it.
        full: whether the whole traceback of the learner's error follows.
        unread: whether its file did not load, as an exercise above has said.
        note: a line below the heading.
    """
    if unread:
        line = (
            f"{style.signs['not_run']} {exercise.id}  not graded: the file does not load, see above"
        )
        return [style.paint(line, "dim")]
    status = "passed" if exercise.passed else "failed"
    time = f"{exercise.seconds:.2f} s"
    if exercise.compile_seconds:
        time += f", of which {exercise.compile_seconds:.2f} s compiling"
    head = f"{style.signs[status]} {exercise.id}"
    lines = [
        f"{style.paint(head, status)}  {style.stars(exercise.difficulty)}  "
        f"{exercise.points} of {exercise.of} points  {style.paint(f'({time})', 'dim')}"
    ]
    if note:
        lines.append(f"  {note}")
    for check in exercise.checks:
        sign = sign_of(check, exercise)
        line = f"{style.signs[sign]} {check.points}/{check.of}  {asked(check, exercise)}"
        if sign == "follows":
            lines.append(style.paint(f"    {line}", "dim"))
            continue
        lines.append(f"  {style.paint(line[0], sign)}{line[1:]}")
        if check is exercise.speaking:
            width = style.width - len(INDENT)
            lines += [f"{INDENT}{line}" for line in message_lines(check, exercise.id, width)]
            if full and check.message is not None:
                full_lines = without_command(check.message.full).splitlines()
                lines += [f"{INDENT}{line}" for line in full_lines]
    if exercise.limits_missing:
        names = ", ".join(exercise.limits_missing)
        lines.append(f"  this system sets no limit on: {names}")
    if exercise.needs == "engine":
        lines.append(f"  {style.paint(ENGINE_NOTE, 'dim')}")
    return lines


def sign_of(check: CheckResult, exercise: ExerciseResult) -> str:
    """Return the key of the sign before a check: its status, or `follows`."""
    return "follows" if exercise.leader_of(check) else check.status


def asked(check: CheckResult, exercise: ExerciseResult) -> str:
    """Return what a check asks for; if it failed, so that nobody reads that as an answer."""
    text = f"{check.name}{', wanted' if check.status == 'failed' else ''}: {check.summary}"
    if check.without:
        return f"{text} It earns nothing without {' or '.join(check.without)}."
    leader = exercise.leader_of(check)
    if leader:
        return f"{text} It fails as {leader.name} does."
    speaking = exercise.speaking
    if check.status == "failed" and speaking is not None and speaking is not check:
        return f"{text} The reason is shown once {speaking.name} passes."
    return text


def begin_elsewhere(exercise: ExerciseResult, result: Result) -> str:
    """Return a line that names the wrong exercises which a wrong one uses; "" for none."""
    wrong = {other.id for other in result.exercises if not other.passed and not other.is_untouched}
    used = [name for name in exercise.uses if name in wrong]
    if exercise.passed or not used:
        return ""
    return f"It uses {' and '.join(used)}, wrong so far: begin there."


def untouched_line(exercise: ExerciseResult, style: Style) -> str:
    """Return the line for an exercise that is not begun."""
    minutes = f"about {exercise.minutes} min"
    line = f"{style.signs['not_run']} {exercise.id:<28} {minutes}, {exercise.of} points: not begun"
    return style.paint(line, "dim")


def message_lines(check: CheckResult, exercise_id: str, width: int = WIDTH) -> list[str]:
    """Return the lines of a check's message and of what the code printed."""
    lines = check.message.lines(width) if check.message else []
    for number, line in enumerate(printed_lines(check, exercise_id)):
        lines.append(f"{'Printed' if number == 0 else '':<{LABEL_WIDTH}}{line}")
    return lines


WARNED = re.compile(r"^\S.*:\d+: \w*Warning: .*\n(?:  .*\n)?", re.MULTILINE)


def printed_lines(check: CheckResult, exercise_id: str) -> list[str]:
    """Return the beginning of what the code printed; if that is cut, say where to see all of it."""
    text = inert(check.printed.replace("\r\n", "\n"))  # as Windows ends a line
    if check.message is None:
        text = WARNED.sub("", text)  # a warning about inputs that the check chose: nothing is wrong
    printed = [line for line in text.splitlines() if line.strip()]
    if not printed or (check.message is not None and check.message.key == "printed"):
        return []
    room = WIDTH - LABEL_WIDTH
    shown = [line if len(line) <= room else f"{line[: room - 2]} …" for line in printed]
    is_whole = shown == printed[:PRINTED_LINES]
    shown = [without_command(line) for line in shown]
    if is_whole:
        return shown
    lesson, _, name = exercise_id.partition(".")
    call = f'check(load("{lesson}").{name})'
    rest = f"({len(printed)} lines or more; in the notebook, {call} shows them all)"
    return [*shown[:PRINTED_LINES], rest]


def next_step(result: Result, hint: str = "`minigrad hint {id}`") -> str:
    """Return one line that says what to do now; `hint` says how to get a hint."""
    for exercise in result.exercises:
        if not exercise.passed:
            return f"next: edit the file, save, check again; or {hint.format(id=exercise.id)}"
    return "everything passes"


def what_is_open(result: Result) -> str:
    """Return the points of several exercises and which are open; "" for a single one."""
    if len(result.exercises) < 2:
        return ""
    left = [exercise for exercise in result.exercises if not exercise.passed]
    names = ", ".join(exercise.id for exercise in left) or "nothing"
    minutes = sum(exercise.minutes for exercise in left)
    time = f"; about {minutes} min" if left else ""
    return f"{result.points} of {result.of} points. Open: {names}{time}"


def text(result: Result, style: Style | None = None, *, full: bool = False) -> str:
    """Return the whole result as text; `full` as in `exercise_lines`."""
    style = style or Style()
    lines: list[str] = []
    said = None  # the reason given for the last file that did not load
    for exercise in result.exercises:
        if exercise.is_untouched and len(result.exercises) > 1:
            lines.append(untouched_line(exercise, style))
            continue
        message = None if exercise.loaded else exercise.first_message
        told = message is not None and message == said
        lines += exercise_lines(
            exercise, style, full=full, unread=told, note=begin_elsewhere(exercise, result)
        )
        said = message or said
    total = f"{result.points} of {result.of} points"
    lines.append(f"{style.paint(total, 'bold')}   seed {result.seed}   {next_step(result)}")
    return "\n".join(lines)
