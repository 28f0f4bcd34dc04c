"""`minigrad lab`: starts JupyterLab with all lessons, or with one beside its exercise file."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import secrets
import shlex
import signal
import subprocess
import sys
import threading
import time
import webbrowser
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from minigrad.cli.update import apply, cells, plan_notebook, read, report
from minigrad.course import contents
from minigrad.course.copies import as_it_came, remember
from minigrad.course.source import Source, is_checkout
from minigrad.grader.atomic import write_atomically
from minigrad.grader.folder import CourseError, CourseFolder, find_folder, find_stem
from minigrad.grader.opening import read_text

SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
    }
}
WIDTHS = [0.53, 0.47]  # of a lesson and of the column beside it
HEIGHTS = {1: [1.0], 2: [0.42, 0.58]}  # of a single tab, or of an exercise and its card
EXTENSIONS = Path(__file__).parents[1] / "course" / "labextension"
START_SECONDS = 60


Widget = tuple[str, dict]  # JupyterLab's name for a tab, and what it needs to restore it


def notebook(path: str) -> Widget:
    """Return the tab of a notebook, given by its path in the course's folder."""
    return f"notebook:{path}", {"path": path, "factory": "Notebook"}


def editor(path: str) -> Widget:
    """Return the tab of a text file."""
    return f"editor:{path}", {"path": path, "factory": "Editor"}


def output(path: str, index: int) -> Widget:
    """Return the tab that shows the output of one cell in an open notebook."""
    return f"cloned-outputs:{path}:{index}", {"path": path, "index": index}


def workspace(name: str, columns: list[list[Widget]], sizes: list[float]) -> dict:
    """Return a JupyterLab workspace: columns in which tabs stand one below the other.

    Args:
        name: the workspace's name, which appears in its address.
        columns: the tabs; the first one has the focus.
        sizes: the columns' widths, which add up to 1.
    """
    dock = {
        "type": "split-area",
        "orientation": "horizontal",
        "sizes": sizes,
        "children": [
            {
                "type": "split-area",
                "orientation": "vertical",
                "sizes": HEIGHTS[len(column)],
                "children": [
                    {"type": "tab-area", "currentIndex": 0, "widgets": [tab]} for tab, _ in column
                ],
            }
            for column in columns
        ],
    }
    side = {"collapsed": True, "visible": True, "widgets": []}
    return {
        "data": {
            "layout-restorer:data": {
                "main": {"dock": dock, "current": columns[0][0][0]},
                "left": side,
                "right": side,
            },
            **{tab: {"data": data} for column in columns for tab, data in column},
        },
        "metadata": {"id": name},
    }


def layout(folder: CourseFolder, place: str, stem: str | None) -> dict:
    """Return a lesson's workspace, or that of the page of all lessons if `stem` is None.

    Beside the lesson stands its exercise file, and below that the card that grades each save.
    """
    if stem is None:
        return workspace("lessons", [[notebook(f"{place}/{contents.INDEX}")]], [1.0])
    path = f"{place}/{stem}.ipynb"
    beside = [editor(f"exercises/{stem}.py")]
    index = live_cell(folder.root / path)
    if index is not None:
        beside.append(output(path, index))
    return workspace(f"lesson-{stem[:2]}", [[notebook(path)], beside], WIDTHS)


def live_cell(path: Path) -> int | None:
    """Return the index of the notebook's cell that shows the live card, None if there is none."""
    try:
        cells = json.loads(read_text(path))["cells"]
        tags = [cell["metadata"].get("tags", ()) for cell in cells]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return next((index for index, some in enumerate(tags) if "live" in some), None)


def lay_out(folder: CourseFolder) -> str:
    """Write the page of all lessons and, in a clone, copies of the notebooks to work in.

    git ignores the copies, so that running a lesson does not change the clone. A notebook whose
    cells the learner changed stays as it is; `update` has the same rule.

    Returns:
        The name of the folder that the notebooks are in.
    """
    place = "work" if is_checkout(folder.root) else "lessons"
    if place == "work":
        for stem, new in Source(folder.root).notebooks().items():
            change = plan_notebook(folder, folder.root / place / f"{stem}.ipynb", new)
            if change.old is not None:
                report(change, folder)
            apply(change, folder)
    path, new = folder.root / place / contents.INDEX, contents.page(folder)
    old, came = read(path), as_it_came(folder, path)
    if old is None or cells(old) in [cells(text.encode()) for text in (new, came) if text]:
        write_atomically(path, new.encode())
        remember(folder, path, new)
        trust(new)
    return place


def trust(notebook: str) -> None:
    """Sign a notebook of ours, so that Lab trusts its outputs and shows them in colour."""
    import nbformat
    from nbformat.sign import NotebookNotary

    NotebookNotary().sign(nbformat.reads(notebook, as_version=4))


def write_settings(state: Path) -> None:
    """Write the settings that keep JupyterLab from asking questions, below `.minigrad/lab`."""
    settings = state / "lab" / "settings"
    settings.mkdir(parents=True, exist_ok=True)
    write_atomically(settings / "overrides.json", json.dumps(SETTINGS).encode())


def put_workspace(address: str, token: str, content: dict) -> None:
    """Store a workspace on the running server."""
    request = Request(
        f"{address}lab/api/workspaces/{content['metadata']['id']}",
        data=json.dumps(content).encode(),
        headers={"Authorization": f"token {token}", "Content-Type": "application/json"},
        method="PUT",
    )
    with urlopen(request, timeout=10):
        pass


def command(root: Path, state: Path, port: int, token: str) -> list[str]:
    """Return JupyterLab's command line."""
    line = [
        sys.executable,
        "-P",  # else a learner's random.py in the current folder would hide Python's
        "-m",
        "jupyterlab",
        "--no-browser",
        f"--ServerApp.root_dir={root}",
        f"--port={port}",
        f"--IdentityProvider.token={token}",
        "--ip=127.0.0.1",
        f"--LabApp.workspaces_dir={state / 'lab' / 'workspaces'}",
        f"--LabApp.app_settings_dir={state / 'lab' / 'settings'}",
        f"--LabApp.extra_labextensions_path={EXTENSIONS}",
        "--ServerApp.answer_yes=True",  # Ctrl-C reaches Lab as well, and it would ask
        "--log-level=WARN",
        "--LabApp.log_level=WARN",  # the level above is for the server only
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        line.append("--allow-root")
    if os.name != "nt":
        terminal = json.dumps({"shell_command": shell(state)})
        line.append(f"--ServerApp.terminado_settings={terminal}")
    return line


def environment() -> dict[str, str]:
    """Return this process's variables, with a PATH that finds its `minigrad` and `python` first.

    So Lab's terminal finds them even if nobody activated the environment.
    """
    path = os.environ.get("PATH", os.defpath)
    return os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{path}"}


def shell(state: Path) -> list[str]:
    """Return the command of Lab's terminal: no login shell, which would reset PATH.

    Its PATH also comes before what a `.bashrc` puts there, such as pyenv or conda.
    """
    name = os.environ.get("SHELL") or "sh"
    if Path(name).name != "bash":
        return [name]
    here = shlex.quote(str(Path(sys.executable).parent))
    start = state / "lab" / "bashrc"
    start.parent.mkdir(parents=True, exist_ok=True)
    text = f"[ -f ~/.bashrc ] && . ~/.bashrc\nexport PATH={here}:$PATH\n"
    write_atomically(start, text.encode())
    return [name, "--rcfile", str(start)]


def find_address(pid: int, token: str) -> str | None:
    """Return the address of the server with this process id, None until it answers."""
    from jupyter_server.serverapp import list_running_servers

    for server in list_running_servers():
        if server.get("pid") == pid:
            try:
                with urlopen(f"{server['url']}api/status?token={token}", timeout=2):
                    return server["url"]
            except (URLError, OSError):
                return None
    return None


def has_display() -> bool:
    """Return whether a browser would open a window instead of taking over the terminal."""
    if sys.platform != "linux":
        return True
    return any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def run(options: argparse.Namespace) -> int:
    """Start JupyterLab, print its address, open the browser, wait for Ctrl-C."""
    from minigrad.cli import ahead  # here, as it loads the compiler, which no other command needs

    folder = find_folder()
    stem = find_stem(options.lesson) if options.lesson else None
    if stem is not None:
        lesson = folder.root / "lessons" / f"{stem}.ipynb"
        if not lesson.is_file():
            raise CourseError(f"{lesson} is missing; `python -m minigrad.course.build` makes it")
        folder.exercise_file(stem)
    if importlib.util.find_spec("jupyterlab") is None:
        raise CourseError('JupyterLab is not installed here: pip install "minigrad[lab]"')
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that JupyterLab stops too
    token = secrets.token_hex(16)
    write_settings(folder.state)
    content = layout(folder, lay_out(folder), stem)
    server = subprocess.Popen(
        command(folder.root, folder.state, options.port, token), env=environment()
    )
    kernels = ahead.start()
    try:
        address = None
        deadline = time.monotonic() + START_SECONDS
        while address is None and time.monotonic() < deadline:
            if server.poll() is not None:
                raise CourseError("JupyterLab stopped at once; `minigrad doctor` says more")
            time.sleep(0.2)
            address = find_address(server.pid, token)
        if address is None:
            raise CourseError(f"JupyterLab did not answer within {START_SECONDS} s")
        put_workspace(address, token, content)
        url = f"{address}lab/workspaces/{content['metadata']['id']}?token={token}"
        opened = f"Lesson {stem[:2]} is" if stem else "The lessons are"
        print(f"{opened} open at\n  {url}\nStop with Ctrl-C.", flush=True)
        if not options.no_browser and has_display():
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        return server.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        if kernels is not None:
            kernels.terminate()
            kernels.wait()
        if server.poll() is None:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
