"""`minigrad start FOLDER`: writes a learner's folder from the installed package.

It writes a file only if there is none, so that an interrupted start, run again, finishes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from minigrad import __version__
from minigrad.course.source import installed, is_checkout
from minigrad.grader.atomic import is_leftover, place
from minigrad.grader.folder import CourseError, CourseFolder
from minigrad.grader.message import counted
from minigrad.grader.opening import read_file

README = """\
# Your minigrad course

Lessons are in `lessons/`, and what you write is in `exercises/`. In this folder:

    minigrad lab            all lessons, your points, and what is next
    minigrad lab 00         open a lesson, its exercises beside it
    minigrad next           the next exercise
    minigrad check 00       grade what is saved
    minigrad watch          grade whenever a file is saved
    minigrad hint 00.hello  three hints for each exercise; they cost nothing
    minigrad status         what is solved, and which parts of the engine are yours
    minigrad update         update the course after minigrad itself; what you wrote is kept

Nothing you write is overwritten: `reset` and `update` put a dated copy into `.minigrad/backup`
first. `.minigrad` holds your points too; take it along when you move this folder. `AGENTS.md` asks
an assistant to explain and to ask, and to leave the exercises to you.
"""


def files_of_the_course() -> dict[str, str]:
    """Return the files of a new learner's folder, by path; the visible ones come last."""
    source = installed()
    visible = {f"lessons/{stem}.ipynb": text for stem, text in source.notebooks().items()}
    visible |= {f"exercises/{stem}.py": text for stem, text in source.stubs().items()}
    visible = {"README.md": README} | source.advice() | visible
    remembered = {f".minigrad/course/{name}": text for name, text in visible.items()}
    version = {".minigrad/course/version": f"{__version__}\n"}
    return version | remembered | visible


def run(options: argparse.Namespace) -> int:
    """Write the folder, unless it holds other files."""
    root = Path(options.folder).expanduser().resolve()
    files = files_of_the_course()
    refuse_if_taken(root, files)
    written = 0
    try:
        for name, text in files.items():
            path = root / name
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                place(path, text.encode())
                written += 1
    except OSError as error:
        raise CourseError(
            f"the course is not complete: {error}; fix that and run the same command again"
        ) from error
    if not written:
        print(f"The course is in {root} already, unchanged.")
    else:
        n_lessons = sum(name.startswith("lessons/") for name in files)
        print(f"Wrote {counted(n_lessons, 'lesson')} with exercises into {root}")
    print(f"Go on with\n  cd {options.folder}\n  minigrad lab")
    return 0


def refuse_if_taken(root: Path, files: dict[str, str]) -> None:
    """Raise CourseError if the folder holds anything that `start` does not write."""
    if not root.exists():
        return
    if not root.is_dir():
        raise CourseError(f"{root} is a file; name a folder that is new or empty")
    if is_checkout(root):
        raise CourseError(
            f"{root} is a clone of minigrad, with the course in it already: `minigrad lab` there"
        )
    foreign = next((path for path in root.rglob("*") if _is_foreign(path, root, files)), None)
    if foreign is None:
        return
    folder = CourseFolder(root)
    if folder.state.is_dir() and (root / "exercises").is_dir():
        raise CourseError(
            f"nothing was written: {root} holds a course that you began. "
            "`minigrad update` there brings the newest lessons and keeps what you wrote"
        )
    raise CourseError(
        f"nothing was written: {root} is not empty (it has {foreign.relative_to(root)}); "
        "name a folder that is new or empty"
    )


def _is_foreign(path: Path, root: Path, files: dict[str, str]) -> bool:
    """Return whether `start` neither writes this file nor left it when interrupted."""
    if is_leftover(path):
        return False
    if path.is_dir() and not path.is_symlink():
        inside = f"{path.relative_to(root).as_posix()}/"
        return not any(name.startswith(inside) for name in files)
    text = files.get(path.relative_to(root).as_posix())
    if text is None or path.is_symlink():
        return True
    content = text.encode()
    try:
        return read_file(path, len(content)) != content
    except OSError:
        return True
