"""`minigrad book`: runs the lessons and writes them as pages for a browser."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from minigrad.cli.ranges import SEVERAL, stems_in
from minigrad.course import book
from minigrad.course.executing import execute, needed_packages
from minigrad.course.source import Source, installed
from minigrad.grader.atomic import write_atomically
from minigrad.grader.folder import CourseError, find_folder, known_stems, load_lesson
from minigrad.grader.message import counted
from minigrad.grader.opening import LARGEST_TEXT, read_file


def run(options: argparse.Namespace) -> int:
    """Run the lessons and write the book; return 1 if a cell raised an error."""
    needed_packages()
    if SEVERAL.fullmatch(options.folder):
        how = f"`minigrad book FOLDER --lessons {options.folder}`"
        raise CourseError(f"{options.folder} names lessons, not the folder to write: {how}")
    target = Path(options.folder).expanduser().resolve()
    refuse_if_foreign(target)
    source = installed()
    stubs = source.stubs()
    mine = find_folder() if options.mine else None
    notebooks = source.notebooks() if mine is None else own_notebooks(mine.root)
    pages, n_errors = [], 0
    with tempfile.TemporaryDirectory(prefix="minigrad-book-") as name:
        course = Path(name)
        write_course(course, source, mine.root if mine else None)
        for stem in stems_in(options.lessons, list(notebooks)):
            started = time.monotonic()
            try:
                notebook, errors = execute(notebooks[stem], course / "lessons")
            except CourseError as error:
                raise CourseError(f"{stem}: {error}") from error
            pages.append(book.make_page(stem, notebook, stubs.get(stem, "")))
            print(f"{stem}: {time.monotonic() - started:.1f} s", flush=True)
            for error in errors:
                n_errors += 1
                print(f"  {error}")
    target.mkdir(parents=True, exist_ok=True)
    files = book.write_book(pages, options.site, fast_track())
    for name, text in files.items():
        write_atomically(target / name, text.encode())
    for path in target.glob("[0-9][0-9]_*.html"):  # left by an earlier, longer book
        if path.name not in files and is_a_page(path):
            path.unlink()
    for name in set(book.SCRIPTS) - files.keys():  # left by an earlier site
        (target / name).unlink(missing_ok=True)
    print(f"Wrote {counted(len(pages), 'lesson')}; open {target / 'index.html'}")
    return 1 if n_errors else 0


def fast_track() -> set[str]:
    """Return the stems of the lessons that fit in a weekend."""
    return {stem for stem in known_stems() if load_lesson(stem).on_fast_track}


def refuse_if_foreign(target: Path) -> None:
    """Raise CourseError if the folder holds anything but an earlier book."""
    if target.is_dir() and any(target.iterdir()):
        if not is_a_page(target / "index.html"):
            raise CourseError(f"{target} is not empty and holds no book; name another folder")
    elif target.exists() and not target.is_dir():
        raise CourseError(f"{target} is a file; name a folder")


def is_a_page(path: Path) -> bool:
    """Return whether `minigrad book` wrote this file."""
    try:
        return book.GENERATOR.encode() in read_file(path, LARGEST_TEXT)
    except OSError:
        return False


def own_notebooks(root: Path) -> dict[str, str]:
    """Return the learner's notebooks; in a clone, those that `minigrad lab` opened."""
    return {
        path.stem: own_text(path)
        for place in ("lessons", "work")
        for path in sorted((root / place).glob("*.ipynb"))
        if path.stem in known_stems()
    }


def own_content(path: Path) -> bytes:
    """Return a learner's file's content; raise CourseError if it cannot be read."""
    try:
        return read_file(path, LARGEST_TEXT)
    except OSError as error:
        why = error.strerror or str(error)
        raise CourseError(
            f"{path} cannot be read: {why}; put a file in its place, or leave --mine out"
        ) from None


def own_text(path: Path) -> str:
    """Return the text of a learner's notebook; raise CourseError if it has none."""
    try:
        return own_content(path).decode("utf-8")
    except UnicodeDecodeError:
        raise CourseError(
            f"{path} is not UTF-8 text; save it as that, or leave --mine out"
        ) from None


def write_course(folder: Path, source: Source, mine: Path | None) -> None:
    """Write the exercise files that lessons load: the learner's, else solutions, else stubs."""
    (folder / "lessons").mkdir()
    (folder / "exercises").mkdir()
    for stem, stub in source.stubs().items():
        path = source.solution(stem)
        content = path.read_bytes() if path else stub.encode()
        own = mine / "exercises" / f"{stem}.py" if mine else None
        if own is not None and own.exists():
            content = own_content(own)
        (folder / "exercises" / f"{stem}.py").write_bytes(content)
