"""`minigrad update`: merges the installed course into a learner's folder, after a dated copy.

It merges exercises by function name (`minigrad.course.merge`). It replaces a notebook only if the
learner changed none of its cells, and else puts the new one beside it. It plans the whole update,
makes a copy, then writes each file in one step and saves the file's new version. So the next update
finishes one that was killed at any point.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from pathlib import Path

from minigrad import __version__
from minigrad.cli.start import README
from minigrad.course.copies import as_it_came, keep_copy, remember
from minigrad.course.merge import MergeError, merge
from minigrad.course.source import Source, installed, is_checkout, source_in
from minigrad.grader.atomic import place, write_atomically
from minigrad.grader.folder import CourseError, CourseFolder, find_folder
from minigrad.grader.opening import LARGEST_KEPT, read_file


@dataclass
class Change:
    """The planned change of one of the learner's files.

    `old` is the content that was read (None: there is no file). `text` is the content to write
    (None: nothing), to `target` if that is another path. `new` is the new course's version, to be
    saved unless `is_left` says that the file could not be merged.
    """

    path: Path
    old: bytes | None
    text: str | None
    new: str
    notes: list[str] = field(default_factory=list)
    is_left: bool = False
    target: Path | None = None


def run(options: argparse.Namespace) -> int:
    """Update the folder; return 1 if a file had to stay as it is."""
    folder = find_folder()
    if is_checkout(folder.root):
        raise CourseError(
            f"{folder.root} is a git clone, where the new course comes by `git pull`: commit what "
            "you wrote first, and git merges it. (Or `minigrad start FOLDER` makes a folder that "
            "`minigrad update` works in.)"
        )
    source = installed() if options.source is None else source_in(Path(options.source).resolve())
    changes = plan(folder, source)
    touched = [change for change in changes if change.text is not None]
    for change in changes:
        report(change, folder)
    if options.dry_run:
        print(f"{len(touched)} files would change; nothing was written")
        return 1 if any(change.is_left for change in changes) else 0
    try:
        if touched:
            kept = keep_copy(folder, learners_files(folder))
            print(f"a copy of your files is in {kept.relative_to(folder.root)}")
        for change in changes:
            apply(change, folder)
        remember(folder, folder.root / "version", f"{__version__}\n")
    except OSError as error:
        raise CourseError(
            f"the update stopped: {error}. Nothing of yours is lost; fix that and run "
            "`minigrad update` again"
        ) from error
    print(closing(touched))
    return 1 if any(change.is_left for change in changes) else 0


def closing(touched: list[Change]) -> str:
    """Return the last line of the report."""
    if not touched:
        return "everything is up to date"
    changed = any(change.path.suffix == ".py" and change.old is not None for change in touched)
    return f"{len(touched)} files updated" + (
        "; their points count again after `minigrad check`" if changed else ""
    )


def learners_files(folder: CourseFolder) -> list[Path]:
    """Return the files that a learner may have changed, for the dated copy."""
    paths = [*folder.root.glob("exercises/*.py"), *folder.root.glob("lessons/*.ipynb")]
    paths += [*folder.root.glob("*.md"), *folder.root.glob("exercises/*.md")]
    paths.append(folder.state / "progress.json")
    return sorted(path for path in paths if path.is_file())


def plan(folder: CourseFolder, source: Source) -> list[Change]:
    """Return a change for each file of the new course, in order."""
    texts = {"README.md": README} | source.advice()
    changes = [plan_text(folder, folder.root / name, text) for name, text in texts.items()]
    for stem, new in source.notebooks().items():
        changes.append(plan_notebook(folder, folder.root / "lessons" / f"{stem}.ipynb", new))
    for stem, new in source.stubs().items():
        changes.append(plan_exercises(folder, folder.root / "exercises" / f"{stem}.py", new))
    return changes


def plan_text(folder: CourseFolder, path: Path, new: str) -> Change:
    """Plan the change of a text, which stays as it is if the learner changed a letter of it."""
    old = read(path)
    came = as_it_came(folder, path)
    if old is None and came is not None:
        return Change(path, old, None, new)  # the learner deleted it
    if old is None:
        return missing(folder, path, new)
    is_theirs = came is None or old != came.encode()
    return Change(path, old, None if is_theirs or old == new.encode() else new, new)


def missing(folder: CourseFolder, path: Path, new: str) -> Change:
    """Plan the writing of a missing file."""
    note = "is new" if as_it_came(folder, path) is None else "was missing, and is there again"
    return Change(path, None, new, new, [note])


def plan_notebook(folder: CourseFolder, path: Path, new: str) -> Change:
    """Plan for a lesson: replace it if no cell was changed, else put the new one beside it."""
    old = read(path)
    if old is None:
        return missing(folder, path, new)
    came = as_it_came(folder, path)
    if cells(old) == cells(new.encode()) or came == new:
        return Change(path, old, None, new)
    if came is not None and cells(old) == cells(came.encode()):
        return Change(path, old, new, new, ["was replaced (you had changed no cell)"])
    beside = path.with_name(f"{path.stem}.new.ipynb")
    number = 1
    while read(beside) not in (None, new.encode()):  # from an earlier update
        number += 1
        beside = path.with_name(f"{path.stem}.new-{number}.ipynb")
    note = f"has changes of yours and is kept; the new one is beside it: {beside.name}"
    text = new if read(beside) is None else None
    return Change(path, old, text, new, [note], target=beside)


def plan_exercises(folder: CourseFolder, path: Path, new: str) -> Change:
    """Plan the merge of an exercise file by function name."""
    old = read(path)
    if old is None:
        return missing(folder, path, new)
    try:
        mine = old.decode("utf-8-sig")
        has_crlf = "\r\n" in mine
        mine = mine.replace("\r\n", "\n").replace("\r", "\n")
        merged = merge(as_it_came(folder, path), mine, new)
    except (UnicodeDecodeError, MergeError) as error:
        why = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
        note = f"was LEFT AS IT IS: {why}. Fix that and run `minigrad update` again"
        return Change(path, old, None, new, [note], is_left=True)
    if merged.text == mine:
        return Change(path, old, None, new, merged.notes)
    text = merged.text.replace("\n", "\r\n") if has_crlf else merged.text
    return Change(path, old, text, new, merged.notes)


def apply(change: Change, folder: CourseFolder) -> None:
    """Write one file, then save its new version: in this order a killed update can go on."""
    if change.text is not None:
        target, content = change.target or change.path, change.text.encode()
        target.parent.mkdir(parents=True, exist_ok=True)
        if change.old is None or change.target is not None:
            place(target, content)
        elif read(target) == change.old:
            write_atomically(target, content)
        else:
            raise OSError(f"{target} was saved while the update ran")
    if not change.is_left and as_it_came(folder, change.path) != change.new:
        remember(folder, change.path, change.new)


def report(change: Change, folder: CourseFolder) -> None:
    """Print what happens to a file, if anything does."""
    shown = change.path.relative_to(folder.root).as_posix()
    if not change.notes and change.text is not None:
        print(f"{shown}: updated")
    for note in change.notes:
        print(f"{shown}: {note}")
    if any("yours" in note for note in change.notes) and change.path.suffix == ".py":
        print(f"{shown}: the new course's file is .minigrad/course/{shown}")


def read(path: Path) -> bytes | None:
    """Return a file's content, None if there is no file."""
    try:
        return read_file(path, LARGEST_KEPT)
    except FileNotFoundError:
        return None


def cells(notebook: bytes) -> list[tuple[str, str]] | bytes:
    """Return the kind and text of each cell: running a notebook changes neither.

    Return a file that cannot be read as a notebook unchanged.
    """
    try:
        parts = json.loads(notebook)["cells"]
        return [(cell["cell_type"], "".join(cell["source"])) for cell in parts]
    except (ValueError, KeyError, TypeError):
        return notebook
