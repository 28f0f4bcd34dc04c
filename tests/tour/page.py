"""docs/tour.md: `python -m tests.tour.page` writes it and its pictures.

The source is docs/tour.py, a script: prose in comments, code between them. The page has both, and
after each piece of code what it prints.
"""

import contextlib
import io
import re

from minigrad.course.percent import parse
from tests.tour import path, pictures

SOURCE = path.ROOT / "docs" / "tour.py"
PATH = path.ROOT / "docs" / "tour.md"
PICTURES = path.ROOT / "docs" / "pictures" / "tour"
PICTURE = re.compile(r"\]\((pictures/tour/[^)]*)\)")
BY_MINIGRAD = (".svg",)
ALL = (".svg", ".png")  # the latter by matplotlib: other versions of it write other bytes


def text(folder, forms=BY_MINIGRAD):
    """The page; its pictures, those of some forms, are written below a folder.

    To be called once a process, since the page shows memory as it is when a process begins.
    """
    source, tour, parts = SOURCE.read_text(encoding="utf-8"), {"__name__": "__main__"}, []
    for cell in parse(source, SOURCE.name):
        if cell.kind == "markdown":
            parts.append(cell.text)
            for name in PICTURE.findall(cell.text):
                if name.endswith(forms):
                    pictures.draw(folder / name, tour)
            continue
        before = source[: source.index(f"\n{cell.text}\n") + 1].count("\n")
        code = compile("\n" * before + cell.text, str(SOURCE), "exec")  # with the script's lines
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, tour)
        parts.append(f"```python\n{cell.text}\n```")
        if printed.getvalue():
            parts.append(f"```text\n{printed.getvalue().rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(PATH.parent, ALL), encoding="utf-8", newline="\n")
