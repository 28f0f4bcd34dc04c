"""docs/tour.md and its pictures; `python -m tests.pages tour` writes them.

The source is docs/tour.py, a script: prose in comments, code between them. The page has both, and
after each piece of code what it prints.
"""

import contextlib
import functools
import importlib.util
import io
import pathlib
import re
import subprocess
import sys
import tempfile

from minigrad.course.percent import parse
from tests.tour import path, pictures

SOURCE = path.ROOT / "docs" / "tour.py"
PATH = path.ROOT / "docs" / "tour.md"
PICTURES = path.ROOT / "docs" / "pictures" / "tour"
PICTURE = re.compile(r"\]\((pictures/tour/[^)]*)\)")
DRAWN = (".svg", ".png") if importlib.util.find_spec("matplotlib") else (".svg",)


def text():
    """The text of the page."""
    return _made()[PATH.name].decode()


def drawn():
    """{path below docs/: bytes} of the pictures; those in PNG only where matplotlib is there."""
    return {name: content for name, content in _made().items() if name != PATH.name}


@functools.cache
def _made():
    """The page and its pictures, {path below docs/: bytes}.

    They are made in a process of their own: the page shows memory as it is when one begins.
    """
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, "-m", "tests.tour.page", name]
        subprocess.run(command, cwd=path.ROOT, check=True)
        folder = pathlib.Path(name)
        files = [file for file in folder.rglob("*") if file.is_file()]
        return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def write(folder):
    """Writes the page and its pictures into a folder; to be called once a process."""
    source, tour, parts = SOURCE.read_text(encoding="utf-8"), {"__name__": "__main__"}, []
    for cell in parse(source, SOURCE.name):
        if cell.kind == "markdown":
            parts.append(cell.text)
            for name in PICTURE.findall(cell.text):
                if name.endswith(DRAWN):
                    pictures.draw(folder / name, tour)
            continue
        before = source[: source.index(f"\n{cell.text}\n") + 1].count("\n")
        code = compile("\n" * before + cell.text, str(SOURCE), "exec")  # with the script's lines
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, tour)
        parts.append(f"```python\n{cell.text}\n```")
        if printed.getvalue():
            parts.append(f"```text\n{printed.getvalue().rstrip()}\n```")
    page = "\n\n".join(parts) + "\n"
    (folder / PATH.name).write_text(page, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
