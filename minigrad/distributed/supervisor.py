"""Runs one rank as a child process, and notes how it dies: `python supervisor.py COMMAND...`.

MPI's launcher ends all ranks at once when one of them is killed. It sees the supervisor, which
lives on for a while, so that the others have the time to read the note and to say in an error which
rank died. Nothing but the standard library is imported: this runs once for each rank.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time

FOLDER = "MINIGRAD_RANK_NOTES"  # the environment variable that names the folder of notes
RANKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")  # by MPICH and Intel MPI, Open MPI
DIED = ".died"
STAYS = 30.0  # seconds that the other ranks have to end
PR_SET_PDEATHSIG = 1  # of Linux's prctl


def main(command):
    """Run the command; return its exit code, or 128 plus the signal that killed it."""
    child = subprocess.Popen(command, close_fds=False, preexec_fn=_die_with_parent)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda n, frame: child.send_signal(n))
    code = child.wait()
    if code >= 0:
        return code
    rank = next((os.environ[name] for name in RANKS if name in os.environ), "0")
    with contextlib.suppress(KeyError, OSError, ValueError):
        path = os.path.join(os.environ[FOLDER], rank + DIED)
        with open(path + "~", "w") as file:
            file.write(f"was killed by {signal.Signals(-code).name}")
        os.replace(path + "~", path)
        time.sleep(STAYS)
    return 128 - code


def _die_with_parent():
    """Have Linux kill this process when the supervisor is killed."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
