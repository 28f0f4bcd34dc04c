"""`pytest -p tests.as_on_windows`: hides what Windows has not: fork, fcntl, resource, killpg.

The grader must then spawn its workers, set no limits but the clock's, and lock by other means. That
is as much of Windows as another system can show; it is no run on Windows.
"""

import os
import sys
from pathlib import Path

NAMES = ("fork", "forkpty", "killpg", "setsid", "getpgid", "pread")
MODULES = ("fcntl", "resource", "pwd", "grp", "termios")


def hide():
    """Hide it in this process."""
    for name in NAMES:
        if hasattr(os, name):
            delattr(os, name)
    for name in MODULES:
        sys.modules[name] = None


def pytest_configure():
    """Hide it here and in every worker, whose start-up script becomes this file."""
    from minigrad.grader import launcher

    hide()
    launcher.BARE = Path(__file__)


def pytest_report_header():
    """Say so at the head of the run."""
    return f"hidden, as on Windows: os.{', os.'.join(NAMES)}, {', '.join(MODULES)}"


if __name__ == "__main__":  # a worker: `python -I this_file work FOLDER`
    import runpy

    hide()
    bare = Path(__file__).parents[1] / "minigrad" / "grader" / "bare.py"
    sys.argv[0] = str(bare)
    runpy.run_path(str(bare), run_name="__main__")
