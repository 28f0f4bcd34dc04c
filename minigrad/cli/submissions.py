"""Finds the files that a class handed in, and trusts nothing about them."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from minigrad.grader.folder import CourseError, known_stems

FLAT = re.compile(r"(?s)(?P<who>.+?)[_-](?P<stem>\d\d_[a-z0-9_]+?)(?:[-_ ]?\(?\d+\)?)?\.py")
AGAIN = re.compile(r"(?P<stem>\d\d_[a-z0-9_]+?)[-_ ]?\(?\d+\)?\.py")  # 02_graph (1).py
FOREIGN = {"minigrad", "solutions", "tests", "node_modules", "__MACOSX", "__pycache__"}
LARGEST = 1_000_000  # bytes
DEEPEST = 5  # folders below a submission


@dataclass
class Handed:
    """One submission: its name, its files by stem, and notes on other files."""

    name: str
    files: dict[str, Path] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def find_submissions(folder: Path) -> list[Handed]:
    """Return the submissions in a folder, by name.

    A submission is a folder (a clone or an unpacked archive), or files named `somebody_NN_slug.py`,
    as learning platforms name them. A folder with exercise files of its own is one submission.
    """
    if not folder.is_dir():
        raise CourseError(f"{folder} is not a folder")
    if any(
        (folder / place / f"{stem}.py").exists()
        for place in (".", "exercises")
        for stem in known_stems()
    ):
        return [search(folder, printable(folder.resolve().name))]
    found: dict[str, Handed] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in FOREIGN:
            continue
        if path.is_dir():
            found[path.name] = search(path, path.name)
        elif (match := FLAT.fullmatch(path.name)) and match["stem"] in known_stems():
            handed = found.setdefault(match["who"], Handed(match["who"]))
            add(handed, match["stem"], path, folder)
        elif path.suffix in (".zip", ".gz", ".tar", ".7z", ".rar", ".ipynb"):
            what = "a notebook, not exercises" if path.suffix == ".ipynb" else "packed: unpack it"
            found[path.name] = Handed(path.name, notes=[what])
    if not found:
        raise CourseError(
            f"{folder} holds no submissions: neither folders nor files named somebody_NN_slug.py"
        )
    for one in found.values():
        one.name = printable(one.name)
    return [found[name] for name in sorted(found, key=str.casefold)]


def printable(name: str) -> str:
    r"""Return a file's name as one line, with escapes such as `\n` for unprintable characters."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def search(folder: Path, name: str) -> Handed:
    """Return a submission with the exercise files in its folder; of duplicates, the outermost."""
    handed = Handed(name)
    candidates: dict[str, list[Path]] = {}
    again: dict[str, list[Path]] = {}
    known = set(known_stems())

    def unsearched(error: OSError) -> None:
        handed.notes.append(f"cannot be searched: {error.strerror}")

    try:
        for place, folders, files in os.walk(folder, onerror=unsearched):
            here = Path(place)
            depth = len(here.relative_to(folder).parts)
            folders[:] = sorted(
                one for one in folders if one not in FOREIGN and not one.startswith(".")
            )
            if depth >= DEEPEST:
                folders.clear()
            for file in sorted(files):
                if file.endswith(".py") and file[:-3] in known:
                    candidates.setdefault(file[:-3], []).append(here / file)
                elif (match := AGAIN.fullmatch(file)) and match["stem"] in known:
                    again.setdefault(match["stem"], []).append(here / file)
    except OSError as error:
        unsearched(error)
    for stem, paths in again.items():
        if stem not in candidates:  # a platform or a browser numbered it
            candidates[stem] = [max(paths, key=lambda path: (path.lstat().st_mtime, path.name))]
            handed.notes.append(f"graded {candidates[stem][0].name}")
    for stem, paths in sorted(candidates.items()):
        paths.sort(key=lambda path: (path.parent.name != "exercises", len(path.parts)))
        add(handed, stem, paths[0], folder)
        if len(paths) > 1:
            handed.notes.append(f"{stem}.py is there {len(paths)} times; graded the outermost")
    return handed


def add(handed: Handed, stem: str, path: Path, folder: Path) -> None:
    """Add a file, unless it is a link out of the submission, no regular file, or huge."""
    try:
        inside = path.resolve(strict=True).is_relative_to(folder.resolve())
        status = path.stat()
        if inside and stat.S_ISREG(status.st_mode):
            path.open("rb").close()
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        handed.notes.append(f"{printable(path.name)} cannot be read: {why}")
        return
    if not inside:
        handed.notes.append(f"{path.name} is a link that leads out of the submission")
    elif not stat.S_ISREG(status.st_mode):
        handed.notes.append(f"{path.name} is not a file")
    elif status.st_size > LARGEST:
        handed.notes.append(f"{path.name} is larger than {LARGEST:,} bytes")
    else:
        handed.files[stem] = path
