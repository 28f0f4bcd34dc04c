"""Commands read a learner's files only where they are files, and none that is larger than any."""

import os

import pytest

from minigrad.cli import book, lab, start
from minigrad.course.copies import as_it_came
from minigrad.grader.folder import CourseError, CourseFolder
from minigrad.grader.opening import LARGEST_TEXT


def make_large(path):
    with open(path, "wb") as file:
        file.truncate(LARGEST_TEXT + 1)  # of gaps


KINDS = {
    "pipe": lambda path: os.mkfifo(path),
    "link into the system": lambda path: path.symlink_to("/proc/self/environ"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "folder": lambda path: path.mkdir(),
    "large": make_large,
    "latin-1": lambda path: path.write_bytes("# é\n".encode("latin-1")),
}


@pytest.fixture(params=KINDS)
def odd(request, tmp_path):
    """Return a function that puts something odd at a path of a learner's folder."""

    def put(name):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            KINDS[request.param](path)
        except (AttributeError, OSError):
            pytest.skip(f"no {request.param} here")
        return path

    put.kind = request.param  # type: ignore[attr-defined]
    return put


def test_what_is_remembered_is_a_text_or_nothing(odd, tmp_path):
    odd(".minigrad/course/exercises/00_start.py")
    path = tmp_path / "exercises" / "00_start.py"
    assert as_it_came(CourseFolder(tmp_path), path) is None


def test_what_is_remembered_has_the_ends_of_lines_of_python(tmp_path):
    place = tmp_path / ".minigrad" / "course" / "exercises" / "00_start.py"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"a = 1\r\nb = 2\r\n")
    folder = CourseFolder(tmp_path)
    assert as_it_came(folder, tmp_path / "exercises" / "00_start.py") == "a = 1\nb = 2\n"


def test_start_takes_it_for_somebody_elses(odd, tmp_path):
    odd("README.md")
    with pytest.raises(CourseError, match=r"is not empty \(it has README.md\)"):
        start.refuse_if_taken(tmp_path, start.files_of_the_course())


def test_book_takes_it_for_no_page(odd, tmp_path):
    odd("index.html")
    with pytest.raises(CourseError, match="is not empty and holds no book"):
        book.refuse_if_foreign(tmp_path)


def test_book_says_which_notebook_it_cannot_read(odd, tmp_path):
    odd("lessons/00_start.ipynb")
    with pytest.raises(CourseError, match=r"00_start.ipynb (cannot be read|is not UTF-8 text)"):
        book.own_notebooks(tmp_path)


def test_book_says_which_exercises_it_cannot_read(odd, tmp_path):
    path = odd("mine/exercises/00_start.py")
    source = book.installed()
    if odd.kind in ("latin-1", "link to itself"):  # Python reads the one, and finds no other
        book.write_course(tmp_path, source, tmp_path / "mine")
    else:
        with pytest.raises(CourseError, match=r"00_start.py cannot be read: .*put a file in its"):
            book.write_course(tmp_path, source, tmp_path / "mine")
    assert os.path.lexists(path)


def test_lab_finds_no_card_in_it(odd):
    assert lab.live_cell(odd("lessons/00_start.ipynb")) is None
