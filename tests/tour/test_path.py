"""The files that tell the whole story are few enough to read, and README names them in order."""

import re

from tests.tour import path


def test_the_path_is_no_longer_than_what_one_reads():
    lines = {file: path.lines_of(file) for file in path.FILES}
    assert sum(lines.values()) <= path.MOST_LINES, lines


def test_readme_names_the_files_of_the_path_in_their_order():
    readme = (path.ROOT / "README.md").read_text(encoding="utf-8")
    (walk,) = re.findall(r"in this order: ([^;]*);", readme)
    named = []
    for folder, several, one in re.findall(r"`(?:(\w+)/)?(?:\{([^}]*)\}|(\w+))`", walk):
        names = several.split(", ") if several else [one]
        named += [f"{folder}/{name}.py" if folder else f"{name}.py" for name in names]
    assert tuple(named) == path.FILES
