"""Starts a grading process: installs an empty `minigrad`, runs the fork server or one worker.

Run by path with `python -I`, never imported: the real `minigrad` must not be in this process, so
that a learner's `import minigrad` finds nothing to copy. Only this folder's modules are reachable,
as `minigrad.grader.*`, and `worker.py` removes even those before the learner's file runs.

    python -I bare.py serve FD USER NUMPY_FOLDER     the fork server; takes orders on socket FD
    python -I bare.py work USER NUMPY_FOLDER         one worker; its channel is stdin and stdout
    python -I bare.py try USER NUMPY_FOLDER          neither; says why a worker would not start

USER is the id of the user that a root process becomes first, or "" to stay the same user.
"""

import os
import sys
import types


def install_empty_minigrad(grader_folder: str) -> None:
    """Install a package `minigrad` that holds `minigrad.grader` alone."""
    package = types.ModuleType("minigrad")
    package.__path__ = []
    grader = types.ModuleType("minigrad.grader")
    grader.__path__ = [grader_folder]
    sys.modules["minigrad"] = package
    sys.modules["minigrad.grader"] = grader


def become(user: int) -> None:
    """Become another user, who keeps root's right to read only where walls will bound it."""
    from minigrad.grader import rights, walls

    try:
        rights.become(user, reading=walls.can_close_files())
    except OSError as error:
        sys.exit(f"root may not become another user: {error}")


def try_out() -> None:
    """Load what a worker needs and build its walls; on failure exit with the reason."""
    try:
        from minigrad.grader import rights, walls, worker  # noqa: F401 - what a worker loads

        rights.must_not_read_as_root(walls.build([], [], []))
    except ImportError as error:
        sys.exit(f"another user cannot read this Python and minigrad: {error}")
    except OSError as error:
        sys.exit(str(error))


def main(arguments: list[str]) -> None:
    """Run the server or the worker until the other side is gone."""
    kind, *rest, user, numpy_folder = arguments
    if numpy_folder not in sys.path:
        sys.path.append(numpy_folder)
    install_empty_minigrad(os.path.dirname(os.path.abspath(__file__)))
    if user:
        become(int(user))
    if kind == "serve":
        from minigrad.grader import server

        server.serve(int(rest[0]))
    elif kind == "try":
        try_out()
    else:
        from minigrad.grader import worker

        read_fd, write_fd = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        worker.work(read_fd, write_fd)


if __name__ == "__main__":
    main(sys.argv[1:])
