"""Start-up script of a grading process: an empty `minigrad`, then the fork server or one worker.

Run by path with `python -I`, never imported: the real `minigrad` must not be in this process, so
that a learner's `import minigrad` finds nothing to copy. Only this folder's modules are reachable,
as `minigrad.grader.*`, and `worker.py` takes even those away before the learner's file runs.

    python -I bare.py serve FD NUMPY_FOLDER     the fork server, its orders on socket FD
    python -I bare.py work NUMPY_FOLDER         one worker, its channel on stdin and stdout
"""

import os
import sys
import types


def install_empty_minigrad(grader_folder: str) -> None:
    """Put an empty package `minigrad` in place, whose only part is the folder of this file."""
    package = types.ModuleType("minigrad")
    package.__path__ = []
    grader = types.ModuleType("minigrad.grader")
    grader.__path__ = [grader_folder]
    sys.modules["minigrad"] = package
    sys.modules["minigrad.grader"] = grader


def main(arguments: list[str]) -> None:
    """Become what the arguments say; returns when the other side is gone."""
    kind, *rest = arguments
    numpy_folder = rest[-1]
    if numpy_folder not in sys.path:
        sys.path.append(numpy_folder)
    install_empty_minigrad(os.path.dirname(os.path.abspath(__file__)))
    if kind == "serve":
        from minigrad.grader import server

        server.serve(int(rest[0]))
    else:
        from minigrad.grader import worker

        read_fd, write_fd = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        worker.work(read_fd, write_fd)


if __name__ == "__main__":
    main(sys.argv[1:])
