"""Makes a notebook from `py:percent` text, the same bytes each time.

A cell starts with a line `# %%` (code) or `# %% [markdown]`; the rest of this line, such as
`tags=["exercise"]`, becomes the cell's metadata. Markdown lines are commented out with `# `. A
cell's id is a hash of the file's name, the cell's number and its text, so it stays the same from
build to build.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

MARK = re.compile(r"# %%(?P<rest>.*)")
OPTION = re.compile(r"(\w+)=(\[[^\]]*\]|\"[^\"]*\"|\S+)")
GOES_ON = "raises-exception"  # Jupyter's tag: when all cells run, an error does not stop the others
KERNEL = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


@dataclass
class Cell:
    """One cell: its kind ('code' or 'markdown'), its text and its metadata."""

    kind: str
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)


def parse(text: str, name: str = "a lesson") -> list[Cell]:
    """Return the cells of a py:percent text; drop the text before the first mark."""
    cells: list[Cell] = []
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        match = MARK.fullmatch(line)
        if match:
            _finish(cells, lines, name)
            cells.append(_begin(match["rest"].strip(), f"{name}:{number}"))
        elif cells:
            lines.append(line)
    _finish(cells, lines, name)
    return cells


def _begin(rest: str, place: str) -> Cell:
    kind = "code"
    if rest.startswith("["):
        kind, _, rest = rest[1:].partition("]")
    if kind not in ("code", "markdown"):
        raise ValueError(f"{place}: a cell is code or [markdown], not [{kind}]")
    metadata = {}
    if unread := OPTION.sub("", rest).strip():
        raise ValueError(f"{place}: {unread!r} is no option of a cell")
    for key, value in OPTION.findall(rest):
        try:
            metadata[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            raise ValueError(f"{place}: {key}={value} is not a Python literal") from None
    return Cell(kind, "", metadata)


def _finish(cells: list[Cell], lines: list[str], name: str) -> None:
    if not cells:
        return
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    cell = cells[-1]
    if cell.kind == "markdown":
        for line in lines:
            if line.strip() and not line.startswith("#"):
                raise ValueError(f"{name}: a markdown line starts with '# ': {line[:60]}")
        lines[:] = [line.removeprefix("#").removeprefix(" ") for line in lines]
    cell.text = "\n".join(lines)
    lines.clear()


def notebook_text(text: str, name: str) -> str:
    """Return the notebook (nbformat 4.5, no outputs) for a py:percent text."""
    cells = []
    for number, cell in enumerate(parse(text, name)):
        identity = f"{name}\n{number}\n{cell.text}".encode()
        made: dict[str, Any] = {
            "cell_type": cell.kind,
            "id": hashlib.sha1(identity, usedforsecurity=False).hexdigest()[:8],
            "metadata": cell.metadata,
            "source": cell.text.splitlines(keepends=True),
        }
        if cell.kind == "code":
            tags = [*cell.metadata.get("tags", ()), GOES_ON]
            made |= {"metadata": cell.metadata | {"tags": tags}}
            made |= {"execution_count": None, "outputs": []}
        cells.append(made)
    notebook = {"cells": cells, "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
