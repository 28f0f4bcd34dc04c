"""Runs a notebook from top to bottom in a kernel of this Python, and keeps its outputs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import IO, Any

from minigrad.grader.folder import CourseError

CELL_SECONDS = 300
SAID, FRAMES = 5, 15  # lines of a dead kernel: before a crash, and of the crash


def needed_packages() -> None:
    """Raise CourseError unless the packages that run and show notebooks are installed."""
    import importlib.util

    names = ("nbclient", "nbconvert", "nbformat", "ipykernel", "matplotlib")
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise CourseError(f'{", ".join(missing)} not installed here: pip install "minigrad[lab]"')


def execute(text: str, folder: Path) -> tuple[Any, list[str]]:
    """Run a notebook in a folder.

    Args:
        text: the notebook, as JSON.
        folder: the kernel's current folder.

    Returns:
        The notebook with its outputs, and one line for each cell that raised an error. If the
        kernel dies or a cell does not end, the later cells have no outputs, and below that line
        stands what the kernel said last.

    Raises:
        CourseError: the text is not a notebook.
    """
    import nbclient
    import nbformat
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    from minigrad.course.notebook_kernel import Manager

    try:
        notebook: Any = nbformat.reads(text, as_version=4)
    except Exception as error:  # nbformat has a dozen ways to say so
        raise CourseError(f"this is no notebook: {error}".splitlines()[0]) from error
    sockets = tempfile.TemporaryDirectory(prefix="minigrad-kernel-", ignore_cleanup_errors=True)
    client = nbclient.NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        allow_errors=True,
        kernel_manager_class=type("Manager", (Manager,), {"folder": sockets.name}),
        resources={"metadata": {"path": str(folder)}},
    )
    errors = []
    with sockets, tempfile.TemporaryFile() as said:
        try:
            client.execute(stderr=said)
        except (DeadKernelError, CellTimeoutError) as error:
            first = f"{type(error).__name__}: {error}".splitlines()[0]
            errors.append("\n".join([first, *last_lines(said)]))
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                errors.append(f"{output['ename']}: {output['evalue']}".splitlines()[0])
    return notebook, errors


def last_lines(said: IO[bytes]) -> list[str]:
    """Return what a process said last in a file, and of a crash, where the thread was."""
    said.seek(0)
    lines = said.read().decode(errors="replace").splitlines()
    crashed = (k for k, line in enumerate(lines) if "Fatal Python error" in line)
    end = next(crashed, len(lines)) + FRAMES
    return lines[max(0, end - FRAMES - SAID) : end]
