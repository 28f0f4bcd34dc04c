"""`minigrad portfolio`: writes one page with a learner's engine, its curves and its code."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from minigrad.cli.engine import report_apart
from minigrad.course import capstone
from minigrad.course.own_code import own_code
from minigrad.course.own_run import Report
from minigrad.course.parts import passed_parts
from minigrad.course.portfolio import Portfolio, Shown, is_untouched, page
from minigrad.course.scores import up_to_date
from minigrad.course.tiles import remember
from minigrad.grader.atomic import place, write_atomically
from minigrad.grader.folder import CourseError, CourseFolder, find_folder, find_stem
from minigrad.grader.opening import LARGEST_TEXT, read_file
from minigrad.grader.run import Submission


def run(options: argparse.Namespace) -> int:
    """Train on all parts, and write the page."""
    folder = find_folder()
    target = Path(options.file).expanduser().absolute()
    refuse_if_foreign(target)
    ids = passed_parts()
    report, missing = trained(folder, ids)
    lessons = list(up_to_date(folder))
    own = capstones(folder)
    ran = ids + [one.exercise_id for one in own if any(one.curves.values())]
    shown = Portfolio(options.name, lessons, report, missing, codes(folder, ran), own)
    content = page(shown).encode("utf-8", "replace")
    if os.path.lexists(target):
        refuse_if_foreign(target)  # again: the training took a while
        write_atomically(target, content)
    else:
        place(target, content)
    print(f"Wrote {target}; open it in a browser.")
    if missing:
        print(missing)
    return 0


def trained(folder: CourseFolder, ids: list[str]) -> tuple[Report | None, str]:
    """Return the report of a training on these parts, or None and why there is none."""
    if not ids:
        return None, (
            "No part has passed yet. `minigrad next` shows the next exercise; with the first part "
            "that passes, this page shows digits that are learned with it."
        )
    print(f"Training digits with {len(ids)} of your parts ...", flush=True)
    try:
        report = report_apart(folder, ids)
    except CourseError as error:
        return None, f"The training on these parts failed: {error}"
    for one in report.runs:
        remember(folder, one.calls, one.mine[-1])
    return report, ""


def codes(folder: CourseFolder, ids: list[str]) -> dict[str, str]:
    """Return the learner's code of these exercises."""
    code_of = {}
    for exercise_id in ids:
        path = folder.exercise_file(find_stem(exercise_id[:2]))
        code_of[exercise_id] = own_code(Submission.read(path).source, exercise_id[3:])
    return code_of


def capstones(folder: CourseFolder) -> list[Shown]:
    """Return the capstones with the runs that count for the present code."""
    shown = []
    for name, one in capstone.CAPSTONES.items():
        runs = {which: capstone.kept(folder, name, which) for which in capstone.ENGINES}
        curves = {
            which: [[(x, y) for x, y in run.curve] for run in some] for which, some in runs.items()
        }
        said = {which: capstone.standing(folder, name, which) for which in capstone.ENGINES}
        command = f"minigrad capstone {name}"
        shown.append(
            Shown(one.exercise_id, one.title, command, said, curves, one.xlabel, one.ylabel)
        )
    return shown


def refuse_if_foreign(target: Path) -> None:
    """Raise CourseError if a page cannot or must not be written there."""
    if target.is_dir():
        raise CourseError(f"{target} is a folder; name a file, such as {target / 'portfolio.html'}")
    if not target.parent.is_dir():
        raise CourseError(f"there is no folder {target.parent}; make it, or name another file")
    if not os.access(target.parent, os.W_OK):
        raise CourseError(f"nothing can be written in {target.parent}; name a file elsewhere")
    if not os.path.lexists(target):
        return
    try:
        is_ours = is_untouched(read_file(target, LARGEST_TEXT).decode("utf-8", "replace"))
    except OSError:
        is_ours = False
    if not is_ours:
        raise CourseError(
            f"{target} is there already, and is not as `minigrad portfolio` wrote it, so it stays; "
            "name another file, or move that one away"
        )
