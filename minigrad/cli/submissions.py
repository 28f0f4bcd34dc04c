"""Finds the files that a class handed in, and trusts nothing about them."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from minigrad.grader.folder import CourseError, known_stems
from minigrad.grader.opening import open_file
from minigrad.grader.reading import LARGEST

STEM = "(?P<stem>{})"  # any lesson's
NUMBER = r"[-_ ]?\(?\d+\)?"  # 02_graph (1).py: added by a platform or a browser
FLAT = rf"(?s)(?P<who>.+)[_-]{STEM}(?:{NUMBER})?\.py"  # takes the last stem of smith_12_00_start
AGAIN = rf"{STEM}{NUMBER}\.py"
PACKED = (".zip", ".gz", ".tgz", ".bz2", ".xz", ".tar", ".7z", ".rar")
FOREIGN = {"minigrad", "solutions", "tests", "node_modules", "__MACOSX", "__pycache__"}
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)  # characters that Python prints but nobody sees
CYRILLIC, AS_LATIN = "асеорхуіјѕАВЕКМНОРСТХІЈЅ", "aceopxyijsABEKMHOPCTXIJS"
GREEK, IN_LATIN = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο", "ABEZHIKMNOPTYXo"
LATIN = str.maketrans(CYRILLIC + GREEK, AS_LATIN + IN_LATIN)  # letters that look the same
DEEPEST = 5  # nested folders below a submission


@dataclass
class Handed:
    """One submission: its name, its files by stem, and notes on other files.

    `within` has, by stem, the path that a file must still lie in when it is opened, since it may be
    a link by then: the submission's, or the file's own.
    `fault` says why it cannot be graded: a file that nobody could read must not earn zero points.
    """

    name: str
    files: dict[str, Path] = field(default_factory=dict)
    within: dict[str, Path] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    fault: str = ""


def is_visible(character: str) -> bool:
    """Return whether a character shows as what it is, in its place."""
    return character.isprintable() and not INVISIBLE.match(character)


def is_unmistakable(character: str) -> bool:
    """Return whether a character looks like no other, in any font."""
    return character.isascii() and (character.isalnum() or character in "._-")


def find_submissions(folder: Path) -> list[Handed]:
    """Return the submissions in a folder, by name.

    A submission is a folder (a clone or an unpacked archive), or files named `somebody_NN_slug.py`,
    as learning platforms name them. A folder with exercise files of its own is one submission,
    unless it is no course folder and has others inside.
    """
    if not folder.is_dir():
        raise CourseError(f"{folder} is not a folder")
    if is_one_submission(folder):
        return [search(folder, printable(folder.resolve().name))]
    submissions: dict[str, Handed] = {}
    flat: dict[tuple[str, str], list[Path]] = {}
    alike: list[tuple[str, str]] = []
    for path in sorted(folder.iterdir()):
        if path.is_symlink() and path.is_dir():
            submissions[path.name] = Handed(
                path.name, notes=["is a link to a folder: not followed"]
            )
        elif path.is_dir():
            handed = search(path, path.name)
            if handed.files or handed.fault or not is_foreign(path.name):
                submissions[path.name] = handed
        elif path.name.startswith("."):
            continue
        elif path.name[:-3] in known_stems() and path.suffix == ".py":
            note = "lies beside the submissions, so nobody knows whose it is: not graded"
            submissions[path.name] = Handed(path.name, notes=[note])
        elif match := named_as(FLAT, path.name):
            flat.setdefault((match["who"], match["stem"]), []).append(path)
        elif path.name.lower().endswith((*PACKED, ".ipynb")):
            submissions[path.name] = Handed(path.name, notes=[no_exercises(path.name)])
        elif stem := named_alike(path.name):
            who = path.name[: path.name.lower().index(stem)].rstrip("_- ") or path.name
            alike.append((who, not_graded(path, stem)))
    for (who, stem), paths in flat.items():
        if stem in submissions.setdefault(who, Handed(who)).files:
            names = ", ".join(printable(path.name) for path in paths)
            submissions[who].notes.append(f"graded the one in the folder, not {names} beside it")
        else:
            choose(submissions[who], stem, paths, None)
    for who, note in alike:
        submissions.setdefault(who, Handed(who)).notes.append(note)
    if not submissions:
        raise CourseError(
            f"{folder} holds no submissions: neither folders nor files named somebody_NN_slug.py"
        )
    for name, shown in told_apart(submissions).items():
        submissions[name].name = shown
    return [submissions[name] for name in sorted(submissions, key=str.casefold)]


def is_foreign(name: str) -> bool:
    """Return whether a folder has a name that no submission has."""
    return name.startswith(".") or name in FOREIGN


def is_one_submission(folder: Path) -> bool:
    """Return whether a folder is one student's and not a class's."""
    places = [folder, folder / "exercises"]
    if not any((place / f"{stem}.py").exists() for place in places for stem in known_stems()):
        return False
    if (folder / "lessons").is_dir() or (folder / ".minigrad").is_dir():
        return True
    others = (path for path in folder.iterdir() if path.is_dir() and path.name != "exercises")
    return not any(search(path, "").files for path in others if not is_foreign(path.name))


def printable(name: str, is_plain: Callable[[str], bool] = is_visible) -> str:
    r"""Return a file's name as one line; spell characters that are not plain as bytes (`\x1b`).

    A backslash is not plain either, so no two names give the same text.

    >>> printable("a\n\x1b[2J"), printable(r"a\x1b")
    ('a\\n\\x1b[2J', 'a\\x5cx1b')
    """
    return "".join(c if is_plain(c) and c != "\\" else _spelled(c) for c in name)


def _spelled(character: str) -> str:
    if character in "\n\r\t":
        return repr(character)[1:-1]
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))


def told_apart(names: Iterable[str]) -> dict[str, str]:
    r"""Return the text to show for each name: spelled in bytes if another looks the same.

    >>> told_apart(["ada", "ren\xe9", "rene\u0301"])
    {'ada': 'ada', 'ren\xe9': 'ren\\xc3\\xa9', 'rene\u0301': 'rene\\xcc\\x81'}
    """
    looks = {name: _look(name) for name in names}
    n_alike = Counter(looks.values())
    return {
        name: printable(name, is_visible if n_alike[look] == 1 else is_unmistakable)
        for name, look in looks.items()
    }


def _look(name: str) -> str:
    """Return a key that is equal for names that look the same, even in a spreadsheet's cell."""
    look = unicodedata.normalize("NFKC", printable(name)).translate(LATIN)
    return " ".join(look.replace("'", "").split())


def named_as(form: str, file: str) -> re.Match | None:
    """Match a file's name against a form with any lesson's stem in it; None if it does not fit."""
    return re.fullmatch(form.format("|".join(known_stems())), file)


def named_alike(file: str) -> str:
    """Return the stem of the exercise file that a name probably means, "" if none."""
    file = file.lower()
    if not re.search(r"\.(pyw?|txt)\b", file):
        return ""
    return next((stem for stem in known_stems() if stem in file), "")


def no_exercises(file: str) -> str:
    """Return in words what a notebook or an archive is."""
    return "packed: unpack it" if file.lower().endswith(PACKED) else "a notebook, not exercises"


def not_graded(path: Path, stem: str) -> str:
    """Return a note on a file whose name is not quite an exercise file's."""
    return f"{printable(path.name)} is not graded: only {stem}.py would be"


def search(folder: Path, name: str) -> Handed:
    """Return a submission with the exercise files in its folder; of duplicates, the outermost."""
    handed = Handed(name)
    unread: list[str] = []
    candidates: dict[str, list[Path]] = {}
    known = set(known_stems())

    def unsearched(error: OSError) -> None:
        place = printable(os.path.basename(error.filename or name))
        unread.append(f"{place} cannot be read: {error.strerror}")

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
                elif match := named_as(AGAIN, file):
                    candidates.setdefault(match["stem"], []).append(here / file)
                elif file.lower().endswith(PACKED if depth else (*PACKED, ".ipynb")):
                    handed.notes.append(f"{printable(file)} is {no_exercises(file)}")
                elif stem := named_alike(file):
                    handed.notes.append(not_graded(here / file, stem))
    except OSError as error:
        unsearched(error)
    for stem, paths in sorted(candidates.items()):
        choose(handed, stem, paths, folder)
    if handed.files:
        handed.notes += unread
    else:
        handed.fault = handed.fault or "; ".join(unread)
    return handed


def choose(handed: Handed, stem: str, paths: list[Path], folder: Path | None) -> None:
    """Add one of the files for a lesson: the outermost, or if all are numbered, the newest.

    `folder` is the submission's own, None if files of a whole class lie side by side.
    """
    plain = [path for path in paths if path.name.endswith(f"{stem}.py")]
    plain.sort(key=lambda path: (path.parent.name != "exercises", len(path.parts)))
    numbered = [path for path in paths if path not in plain]  # by a platform or a browser
    numbered.sort(key=lambda path: (path.lstat().st_mtime, path.name), reverse=True)
    first, *others = plain[:1] + numbered
    add(handed, stem, first, folder)
    if len(plain) > 1 and folder is None:
        left = ", ".join(printable(path.name) for path in plain[1:])
        said = f"{'all' if len(plain) > 2 else 'both'} are {stem}.py of {printable(handed.name)}"
        handed.notes.append(f"graded {printable(first.name)}, not {left}: {said}")
    elif len(plain) > 1:
        handed.notes.append(f"{stem}.py is there {len(plain)} times; graded the outermost")
    if numbered:
        left = ", ".join(printable(path.name) for path in others)
        handed.notes.append(f"graded {printable(first.name)}" + (f", not {left}" if left else ""))


def add(handed: Handed, stem: str, path: Path, folder: Path | None) -> None:
    """Add a file, unless it is a link out of the submission, no regular file, or too large."""
    try:
        target = path.resolve(strict=True)
        inside = target.is_relative_to(folder.resolve()) if folder else not path.is_symlink()
        status = path.stat()
        if inside and stat.S_ISREG(status.st_mode):
            os.close(open_file(path, os.O_RDONLY))
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        said = f"{printable(path.name)} cannot be read: {why}"
        if isinstance(error, PermissionError):
            handed.fault = said
        else:
            handed.notes.append(said)
        return
    if not inside:
        handed.notes.append(f"{path.name} is a link that leads out of the submission")
    elif not stat.S_ISREG(status.st_mode):
        handed.notes.append(f"{path.name} is not a file")
    elif status.st_size > LARGEST:
        handed.notes.append(f"{path.name} is larger than {LARGEST:,} bytes")
    else:
        handed.files[stem] = path
        handed.within[stem] = folder.resolve() if folder else target
