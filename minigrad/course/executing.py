"""Runs a notebook from top to bottom with a kernel of this very Python, and keeps its outputs."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from minigrad.grader.folder import CourseError

KERNEL = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
CELL_SECONDS = 300
SOCKET_PATH = 90  # characters; systems take 103 to 107, and a kernel adds "-ipc-" and a number


def needed_packages() -> None:
    """Raise CourseError unless what runs and shows notebooks is installed."""
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
        The notebook with its outputs, and one line for each cell that raised an error. When the
        kernel dies or a cell does not end, the cells after it have no outputs.

    Raises:
        CourseError: the text is no notebook.
    """
    import nbclient
    import nbformat
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    class Manager(AsyncKernelManager):
        """Starts this Python, and not what some kernel's installed description names."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **connection(sockets.name), **kwargs)

        @property
        def kernel_spec(self) -> KernelSpec:
            return KernelSpec(argv=KERNEL, display_name="this Python", language="python")

    try:
        notebook: Any = nbformat.reads(text, as_version=4)
    except Exception as error:  # nbformat has a dozen ways to say so
        raise CourseError(f"this is no notebook: {error}".splitlines()[0]) from error
    sockets = tempfile.TemporaryDirectory(prefix="minigrad-kernel-", ignore_cleanup_errors=True)
    client = nbclient.NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        allow_errors=True,
        kernel_manager_class=Manager,
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


def connection(folder: str) -> dict[str, str]:
    """Return how to talk to a kernel: by files in a folder of its own where the system can.

    Ports are drawn before the kernel takes them, and another process may take one in between: then
    the kernel's answers are waited for in vain.
    """
    path = f"{folder}/kernel.json"
    if sys.platform == "win32" or len(path.encode()) > SOCKET_PATH:
        return {}
    return {"transport": "ipc", "connection_file": path}
