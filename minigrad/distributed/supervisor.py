"""Runs one rank as a child process, and notes how it ends: `python supervisor.py COMMAND...`.

MPI's launcher ends all ranks at once when one of them is killed. It sees the supervisor, which
lives on for a while, so that the others have the time to read the note and to say in an error which
rank died. The child runs this file, too, with `INSIDE` before the script's name: it notes the
exception that ends the script. Nothing but the standard library is imported, once for each rank.
"""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
import traceback

FOLDER = "MINIGRAD_RANK_NOTES"  # the environment variable that names the folder of notes
RANKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")  # by MPICH and Intel MPI, Open MPI
PROCESS, DIED, ENDED = ".process", ".died", ".ended"  # notes of a rank: a number, a text, JSON
INSIDE = "--inside"
STAYS = 30.0  # seconds that the other ranks have to end
PR_SET_PDEATHSIG = 1  # of Linux's prctl
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIBRARIES = (
    "<frozen",
    *(path + os.sep for path in (PACKAGE, *map(sysconfig.get_path, ("stdlib", "purelib")))),
)


def main(command):
    """Run the command; return its exit code, or 128 plus the signal that killed it."""
    child = subprocess.Popen(command, close_fds=False, preexec_fn=_die_with_parent)
    stopped = []  # signals by which MPI's launcher or Ctrl-C ends the rank: no fault of its own

    def pass_on(number, frame):
        stopped.append(number)
        child.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    _note(PROCESS, f"{child.pid}")
    code = child.wait()
    if code > 0 and not stopped:
        _note_end(f"exit status {code}")
    if code >= 0:
        return code
    if not stopped and _note(DIED, f"was killed by {_name(-code)}"):
        time.sleep(STAYS)
    return 128 - code


def run_inside(arguments):
    """Run a script as `python -m mpi4py` does; note the exception that ends it.

    Then a rank that ends by an exception ends all, also before mg.distributed.init().
    """
    from mpi4py import run

    show = sys.excepthook

    def on_exception(kind, error, trace):
        _note_end(first_line(error) + _place(trace), getattr(error, "ranks", ()))
        trace = _of_script(trace) or trace
        show(kind, error.with_traceback(trace), trace)

    sys.excepthook = on_exception
    sys.argv[1:] = arguments
    try:
        run.main()
    except SystemExit as exit:
        if exit.code:  # noted here, because the others may soon end this process
            is_number = isinstance(exit.code, int)
            _note_end(f"exit status {exit.code}" if is_number else f"sys.exit({exit.code!r})")
        raise


def _of_script(trace):
    """Return a traceback from the script on: what started it is not the user's; None if all is."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(LIBRARIES):
        trace = trace.tb_next
    return trace


def first_line(error):
    """Return an error in one line, such as `ValueError: no such file`."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}".removesuffix(": ")


def _place(trace):
    """Return ` (file:line)` of the innermost frame outside of libraries, or an empty string."""
    names = [(f.filename, f.lineno) for f in traceback.extract_tb(trace)]
    mine = [(name, line) for name, line in names if not name.startswith(LIBRARIES)]
    return f" ({os.path.basename(mine[-1][0])}:{mine[-1][1]})" if mine else ""


def _name(number):
    """Return the name of a signal; some have only a number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _note_end(text, ranks=()):
    """Note why this rank has ended, and which ranks it holds at fault; the first note counts."""
    if not os.path.exists(_path(ENDED)):
        _note(ENDED, json.dumps({"text": text, "ranks": [*ranks]}))


def _note(kind, text):
    """Write a note of this rank at once as a whole; return whether it could be written."""
    with contextlib.suppress(OSError):
        with open(_path(kind) + "~", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(_path(kind) + "~", _path(kind))
        return True
    return False


def _path(kind):
    """Return the path of a note of this rank."""
    rank = next((os.environ[name] for name in RANKS if name in os.environ), "0")
    return os.path.join(os.environ.get(FOLDER, os.devnull), rank + kind)


def _die_with_parent():
    """Have Linux kill this process when the supervisor is killed."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    inside = sys.argv[1] == INSIDE
    sys.exit(run_inside(sys.argv[2:]) if inside else main(sys.argv[1:]))
