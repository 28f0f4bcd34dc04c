"""`minigrad grade FOLDER`: prints a row per submission; a bad one never stops the others."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from pathlib import Path

from minigrad.cli import strangers
from minigrad.cli.gradebook import Gradebook, Row, width_of
from minigrad.cli.ranges import stems_in
from minigrad.cli.submissions import Handed, find_submissions
from minigrad.course.source import installed
from minigrad.grader.atomic import write_atomically
from minigrad.grader.folder import CourseError, known_stems, load_lesson
from minigrad.grader.jail import hindrance, root_changes_user
from minigrad.grader.launcher import Server, other_user
from minigrad.grader.report import Style
from minigrad.grader.result import Result
from minigrad.grader.run import ENDED, grade, secret_seed
from minigrad.grader.views import gradescope

KEEPING = (
    "This course has no solutions to compile the engine's kernels with, so the files that are "
    "graded may write into your cache of kernels."
)
COMPILING = (
    "This course has no solutions to compile the engine's kernels with: each file compiles those "
    "that your cache lacks, within its time."
)
STOPPED = {*ENDED, "import", "imports_minigrad", "input"}  # keys: there was no answer


def run(options: argparse.Namespace) -> int:
    """Grade all; return 0 if everybody has full marks, 1 if not, 3 if the grader failed."""
    handed = find_submissions(Path(options.folder).expanduser())
    handed_in = sorted({stem for one in handed for stem in one.files})
    stems = stems_in(options.lessons, known_stems()) if options.lessons else handed_in
    if not stems:
        raise CourseError(f"no submission in {options.folder} has an exercise file NN_slug.py")
    book = Gradebook(stems, secret_seed() if options.seed is None else options.seed)
    for path in (options.csv, options.json, options.gradescope):
        if path and path != "-" and not Path(path).resolve().parent.is_dir():
            raise CourseError(f"there is no folder to write {path} into")
    if not options.minutes > 0:
        raise CourseError(f"--minutes is {options.minutes:g}; a submission needs more than none")
    user = user_of_files(jailed=bool(options.jail), unsafe=options.unsafe)
    if options.jail:
        can_be_jailed(user)
    is_closed = bool(options.jail) or user is not None
    style = Style(sys.stderr if options.json == "-" else None)
    width = max(width_of([one.name for one in handed]), 11)
    table = sys.stderr if options.json == "-" else sys.stdout  # JSON goes to stdout alone
    print(book.head(width), file=table, flush=True)
    keep = not compile_kernels(stems)
    if keep:
        print(COMPILING if is_closed else KEEPING, file=sys.stderr)
    with strangers.kernels_for(user) as kernels:
        kept = None if keep and not is_closed else kernels
        server = Server(kernels=kept, jailed=bool(options.jail), user=user)
        following = server
        try:
            for one in handed:
                if server.jailed:  # what a file does inside ends with the jail
                    following = server.another()
                    following.start()  # starts up while this one is graded
                row, server = grade_one(one, book, server, 60 * options.minutes)
                if server.jailed:
                    server.close()
                    server = following
                book.rows.append(row)
                if options.gradescope and len(handed) > 1 and not row.fault:
                    name, plain = file_name(book), f"{plain_name(row)}.json"
                    row.notes += [f"its file is {name}, as another is {plain}"] * (name != plain)
                print(book.line(row, width, style), file=table, flush=True)
                write(book, options, of_many=len(handed) > 1)
        finally:
            server.close()
            following.close()
    print("\n".join(book.summary()), file=table)
    if options.jail:
        as_root = ", as root" if user is None and strangers.is_root() else ""
        print(f"each file ran in a jail of bubblewrap's{as_root}", file=table)
    elif user is None and strangers.is_root():
        print("each file ran as root", file=table)
    if options.json == "-":
        print(json.dumps(book.as_dict(), indent=1))
    if any(row.fault for row in book.rows):
        return 3
    return 0 if all(row.points == book.of for row in book.rows) else 1


def user_of_files(*, jailed: bool, unsafe: bool) -> int | None:
    """Return the user id that files run under, None for this process's own.

    Raises CourseError where that would be root, unless there is a jail or the teacher allows it.
    """
    if not strangers.is_root():
        return None
    user, why = strangers.other_user(jailed=jailed)
    if user is None and not jailed and not unsafe:
        raise CourseError(
            "you are root, and so would be the files that are graded: no other user can run them "
            f"here ({why}). Grade as another user, who can read this Python and minigrad; or in a "
            "jail (--jail=bwrap); or allow it with --unsafe."
        )
    return user


def can_be_jailed(user: int | None) -> None:
    """Raise CourseError if no jail can be made."""
    changed = {} if user is None or root_changes_user() else other_user(user)
    if why := hindrance(**changed):
        raise CourseError(f"--jail=bwrap cannot be used here: {why}")


def compile_kernels(stems: list[str]) -> bool:
    """Grade our solutions of the exercises that need the engine, to compile their kernels.

    Strangers' processes only read the cache of kernels: each would compile a missing one again,
    within its time. Return whether all kernels are there; a course without solutions cannot tell.
    """
    is_complete = True
    with Server() as server:
        for lesson in map(load_lesson, stems):
            names = [name for name, one in lesson.exercises.items() if one.needs == "engine"]
            if names and (path := installed().solution(lesson.stem)) is not None:
                grade(server, lesson, path, names=names)
            elif names:
                is_complete = False
    return is_complete


def grade_one(
    handed: Handed, book: Gradebook, server: Server, seconds: float
) -> tuple[Row, Server]:
    """Return one submission's row, and the server for the next: a fresh one after a fault.

    `seconds` bound all files of the submission, checks included; whatever is not graded by then
    earns nothing.
    """
    row = Row(handed.name, notes=list(handed.notes), fault=handed.fault)
    if row.fault:
        return row, server
    started = time.monotonic()
    for stem in book.stems:
        path = handed.files.get(stem)
        if path is None:
            row.missing.append(stem)
            continue
        try:
            row.results[stem] = grade(
                server,
                load_lesson(stem),
                path,
                seed=book.seed,
                within=handed.within[stem],
                until=started + seconds,
            )
            row.notes += reasons(f"{stem}.py", row.results[stem])
        except Exception as error:  # the other submissions must still be graded
            row.fault = f"{stem}: {type(error).__name__}: {error}"
            server = fresh(server)
    row.seconds = time.monotonic() - started
    return row, server


def fresh(server: Server) -> Server:
    """Close a server and return a new one of its kind."""
    server.close()
    return server.another()


def reasons(file: str, result: Result) -> list[str]:
    """Return the reasons why exercises of a file gave no answers, as opposed to wrong ones."""
    failed = [(one, one.first_message) for one in result.exercises if one.first_message]
    names: dict[str, list[str]] = {}
    for exercise, message in failed:
        name = exercise.id.partition(".")[2]
        line = re.search(r":(\d+)", message.where.partition("\n")[0])
        said = message.got.partition("\n")[0]
        if line and f"line {line[1]} " not in said:
            said += f" (line {line[1]})"
        if message.key == "budget":
            names.setdefault(f"{file}: no time was left for ", []).append(name)
        elif not exercise.loaded:
            names.setdefault(f"{file} does not load: {said}", [])
        elif message.key == "missing":
            names.setdefault(f"{file} does not define ", []).append(name)
        elif message.key in STOPPED:
            names.setdefault(f"{exercise.id}: {said}", [])
    if len(failed) == len(result.exercises) and all(one.is_untouched for one, _ in failed):
        names[f"{file} is as it came"] = []
    return [why + ", ".join(some) for why, some in names.items()]


def write(book: Gradebook, options: argparse.Namespace, *, of_many: bool) -> None:
    """Write the requested files after every row, so that an interrupted run keeps them."""
    if options.csv:
        write_atomically(Path(options.csv), b"\xef\xbb\xbf" + book.as_csv().encode())
    if options.json and options.json != "-":
        write_atomically(Path(options.json), json.dumps(book.as_dict(), indent=1).encode())
    if options.gradescope:
        row = book.rows[-1]
        if row.fault:
            return  # without a file Gradescope reports a failure instead of zero points
        content = json.dumps(for_gradescope(row, book.seed), indent=1).encode()
        path = Path(options.gradescope)
        if of_many:
            path.mkdir(exist_ok=True)
            path = path / file_name(book)
        write_atomically(path, content)


def plain_name(row: Row) -> str:
    """Return a row's name in a form that a file can have."""
    return re.sub(r"[^\w.-]", "_", row.name)[:60].lstrip(".") or "_"


def file_name(book: Gradebook) -> str:
    """Return a file name for the last row, different from every other row's."""
    taken: set[str] = set()
    name = ""
    for row in book.rows:
        plain = plain_name(row)
        name, number = plain, 1
        while name.casefold() in taken:
            number += 1
            name = f"{plain}-{number}"
        taken.add(name.casefold())
    return f"{name}.json"


def for_gradescope(row: Row, seed: int) -> dict:
    """Return a row in Gradescope's format, with a failed test for each missing file."""
    exercises = [exercise for result in row.results.values() for exercise in result.exercises]
    content = gradescope(Result(seed, exercises))
    content["tests"] += [
        {
            "name": f"{stem}.py",
            "number": f"{int(stem[:2])}",
            "score": 0,
            "max_score": load_lesson(stem).points,
            "status": "failed",
            "output": f"{stem}.py was not handed in.",
            "visibility": "visible",
        }
        for stem in row.missing
    ]
    return content
