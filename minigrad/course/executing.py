"""Runs a notebook from top to bottom in a kernel of this Python, and keeps its outputs."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from minigrad.grader.folder import CourseError

CELL_SECONDS = 300


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
        kernel dies or a cell does not end, the later cells have no outputs.

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
    with sockets:
        try:
            client.execute(stderr=subprocess.DEVNULL)
        except (DeadKernelError, CellTimeoutError) as error:
            errors.append(f"{type(error).__name__}: {error}".splitlines()[0])
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                errors.append(f"{output['ename']}: {output['evalue']}".splitlines()[0])
    return notebook, errors
