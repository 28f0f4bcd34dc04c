"""`minigrad lab NN`: JupyterLab with the lesson and its exercise file side by side."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
import webbrowser
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from minigrad.grader.atomic import write_atomically
from minigrad.grader.folder import CourseError, find_folder, find_stem, known_stems

SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
    }
}
START_SECONDS = 60


def workspace(stem: str) -> dict:
    """Return a JupyterLab workspace: the lesson on the left, the exercise file on the right."""
    lesson, exercise = f"notebook:lessons/{stem}.ipynb", f"editor:exercises/{stem}.py"
    layout = {
        "type": "split-area",
        "orientation": "horizontal",
        "sizes": [0.62, 0.38],
        "children": [
            {"type": "tab-area", "currentIndex": 0, "widgets": [widget]}
            for widget in (lesson, exercise)
        ],
    }
    return {
        "data": {
            "layout-restorer:data": {
                "main": {"dock": layout, "current": lesson},
                "left": {"collapsed": True, "visible": True, "widgets": []},
                "right": {"collapsed": True, "visible": True, "widgets": []},
            },
            lesson: {"data": {"path": f"lessons/{stem}.ipynb", "factory": "Notebook"}},
            exercise: {"data": {"path": f"exercises/{stem}.py", "factory": "Editor"}},
        },
        "metadata": {"id": f"lesson-{stem[:2]}"},
    }


def write_settings(state: Path) -> None:
    """Write the settings that keep JupyterLab from asking questions, below `.minigrad/lab`."""
    settings = state / "lab" / "settings"
    settings.mkdir(parents=True, exist_ok=True)
    write_atomically(settings / "overrides.json", json.dumps(SETTINGS).encode())


def put_workspace(address: str, token: str, stem: str) -> None:
    """Send the workspace to the running server, which stores it."""
    content = workspace(stem)
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
        "-m",
        "jupyterlab",
        "--no-browser",
        f"--ServerApp.root_dir={root}",
        f"--port={port}",
        f"--IdentityProvider.token={token}",
        "--ip=127.0.0.1",
        f"--LabApp.workspaces_dir={state / 'lab' / 'workspaces'}",
        f"--LabApp.app_settings_dir={state / 'lab' / 'settings'}",
        "--log-level=WARN",
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        line.append("--allow-root")
    return line


def find_address(pid: int, token: str) -> str | None:
    """Return the address of the server with this process id, None if it does not answer yet."""
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
    """Whether a browser would open a window instead of taking over the terminal."""
    if sys.platform != "linux":
        return True
    return any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def run(options: argparse.Namespace) -> int:
    """Start JupyterLab, print its address, open the browser, wait for Ctrl-C."""
    stem = find_stem(options.lesson) if options.lesson else known_stems()[0]
    folder = find_folder()
    lesson = folder.root / "lessons" / f"{stem}.ipynb"
    if not lesson.is_file():
        raise CourseError(f"{lesson} is missing; `python -m minigrad.course.build` makes it")
    folder.exercise_file(stem)
    if importlib.util.find_spec("jupyterlab") is None:
        raise CourseError('JupyterLab is not installed here: pip install "minigrad[lab]"')
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that JupyterLab is stopped too
    token = secrets.token_hex(16)
    write_settings(folder.state)
    server = subprocess.Popen(command(folder.root, folder.state, options.port, token))
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
        put_workspace(address, token, stem)
        url = f"{address}lab/workspaces/lesson-{stem[:2]}?token={token}"
        print(f"Lesson {stem[:2]} is open at\n  {url}\nStop with Ctrl-C.", flush=True)
        if not options.no_browser and has_display():
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        return server.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        if server.poll() is None:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
