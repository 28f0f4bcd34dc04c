"""`minigrad`: open a lesson, check an exercise, get a hint, see how far you are.

Exit codes: 0 full marks (or done), 1 not full marks, 2 wrong usage, 3 the grader's own fault.
"""

from __future__ import annotations

import argparse
import io
import sys

from minigrad import __version__
from minigrad.cli import checking, doctor, lab, reset, start, update
from minigrad.grader.folder import CourseError
from minigrad.grader.launcher import GraderError

FULL, NOT_FULL, USAGE, GRADER_FAULT = 0, 1, 2, 3


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="minigrad", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--version", action="version", version=f"minigrad {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, help_text: str, run) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=help_text, description=help_text)
        command.set_defaults(run=run)
        return command

    command = add("lab", "open a lesson and its exercises in JupyterLab", lab.run)
    command.add_argument("lesson", nargs="?", default="00", help="such as 01 (default: 00)")
    command.add_argument("--no-browser", action="store_true", help="print the address only")
    command.add_argument("--port", type=int, default=8888, help="the first port to try")

    command = add("check", "grade the saved exercise files", checking.check)
    command.add_argument("what", nargs="*", help="such as 00, 00.hello, a file, or all (default)")
    command.add_argument("--seed", type=int, help="the seed that an earlier run printed")
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.add_argument("--full", action="store_true", help="show tracebacks in full")

    command = add("hint", "show the next hint for an exercise; costs nothing", checking.hint)
    command.add_argument("exercise", help="such as 00.central_difference, or 00.hello.2 for hint 2")

    add("status", "show the exercises, their points, and which run the engine", checking.status)

    command = add("reset", "bring an exercise file back as it came; yours is kept", reset.run)
    command.add_argument("lesson", help="such as 00")

    command = add("start", "write the course into a folder of yours", start.run)
    command.add_argument("folder", help="a new or an empty one")

    command = add("update", "bring in the installed course; what you wrote is kept", update.run)
    command.add_argument(
        "--from", dest="source", metavar="FOLDER", help="take the course from this folder instead"
    )
    command.add_argument("--dry-run", action="store_true", help="say what would change, only")

    add("doctor", "check this installation and say what to do", doctor.run)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    options = make_parser().parse_args(arguments)
    try:
        return options.run(options)
    except CourseError as error:
        print(f"minigrad: {error}", file=sys.stderr)
        return USAGE
    except GraderError as error:
        print(f"minigrad: the grader itself failed: {error}", file=sys.stderr)
        return GRADER_FAULT
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
