"""The tour runs as a script, and stops at each file of the reading path in order.

That the page and its pictures are fresh is a test in `tests/test_pages.py`.
"""

import re
import subprocess
import sys

from tests.tour import page, path


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


def test_all_pictures_are_shown():
    names = {name.rpartition("/")[2] for name in page.PICTURE.findall(shown())}
    assert names == {picture.name for picture in page.PICTURES.iterdir()}


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
