"""The tour is fresh, runs as a script, and stops at each file of the reading path in order."""

import re
import subprocess
import sys

import pytest

from tests.tour import page, path

MAKE = """
import pathlib, sys
from tests.tour import page
folder = pathlib.Path(sys.argv[1])
(folder / "tour.md").write_text(page.text(folder), encoding="utf-8")
"""


def shown():
    """The page as it is."""
    return page.PATH.read_text(encoding="utf-8")


def run(*command, folder):
    """Runs Python in a process of its own, with every warning an error; returns what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", *command], cwd=folder, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the page and its pictures as they would be written now."""
    folder = tmp_path_factory.mktemp("tour")
    run("-c", MAKE, str(folder), folder=path.ROOT)
    return folder


def test_page_is_fresh(made):
    assert (made / "tour.md").read_text(encoding="utf-8") == shown()


def test_pictures_are_fresh_and_all_are_shown(made):
    names = {name: page.PATH.parent / name for name in page.PICTURE.findall(shown())}
    assert {p.name for p in names.values()} == {p.name for p in page.PICTURES.iterdir()}
    for name, file in names.items():
        if name.endswith(page.BY_MINIGRAD):
            assert (made / name).read_bytes() == file.read_bytes(), name


def test_script_prints_what_the_page_shows(tmp_path):
    printed = run(str(page.SOURCE), folder=tmp_path)
    outputs = re.findall(r"^```text\n(.*?)^```", shown(), flags=re.DOTALL | re.MULTILINE)
    squeezed = re.sub(r"\n+", "\n", printed)
    assert squeezed == re.sub(r"\n+", "\n", "".join(outputs))


def test_stops_are_the_files_of_the_path_in_their_order():
    stops = re.split(r"^## ", shown(), flags=re.MULTILINE)[1 : 1 + len(path.FILES)]
    found = []
    for number, stop in enumerate(stops, 1):
        assert re.match(rf"{number}\. .*\?\n", stop), stop.splitlines()[0]
        (opened,) = re.findall(r"^Open \[[^]]*\]\(\.\./minigrad/([^)]*)\)", stop, re.MULTILINE)
        found.append(opened)
    assert tuple(found) == path.FILES
