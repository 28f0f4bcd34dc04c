"""`minigrad`: open a lesson, check an exercise, get a hint, see how far you are.

Exit codes: 0 full marks (or done), 1 not full marks, 2 wrong usage, 3 the grader's own fault.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
import traceback
from difflib import get_close_matches
from typing import NoReturn

from minigrad import __version__
from minigrad.cli.findings import numpy_fault

if fault := numpy_fault():  # before any command is imported, doctor included
    print(fault, file=sys.stderr)
    sys.exit(3)

from minigrad.cli import (
    book,
    capstone,
    checking,
    doctor,
    grading,
    lab,
    next_exercise,
    portfolio,
    release,
    reset,
    run,
    start,
    status,
    update,
    watch,
)
from minigrad.cli.ranges import SEVERAL
from minigrad.grader.folder import CourseError
from minigrad.grader.launcher import GraderError

FULL, NOT_FULL, USAGE, GRADER_FAULT = 0, 1, 2, 3
EPILOG = """\
begin with
  minigrad start FOLDER     a folder of your own (a git clone is one already)
  minigrad next             the next exercise, and where it is
  minigrad COMMAND --help   more about one command

exit codes: 0 full marks, or done; 1 not full marks; 2 wrong usage; 3 a fault of minigrad itself
"""


class Help(argparse.RawDescriptionHelpFormatter):
    """Help whose columns have room for the longest command."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._action_max_length = 14


class Parser(argparse.ArgumentParser):
    """A parser that suggests the command that may have been meant."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and what was wrong; end with 2."""
        if match := re.search(r"invalid choice: '([^']*)'", message):
            meant = get_close_matches(match[1], re.findall(r"[a-z]+", message.partition("(")[2]), 1)
            message = f"there is no command {match[1]!r}"
            message += f"; did you mean {meant[0]!r}?" if meant else "; `minigrad --help` lists all"
        super().error(message)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="minigrad",
        description=(__doc__ or "").partition("\n")[0],
        epilog=EPILOG,
        formatter_class=Help,
    )
    parser.add_argument("--version", action="version", version=f"minigrad {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")

    # start.py reads the commands' names from these calls, so each must be a literal string
    def add(name: str, help_text: str, run, more: str = "") -> argparse.ArgumentParser:
        description = f"{help_text[0].upper()}{help_text[1:]}. {more}".strip()
        command = commands.add_parser(name, help=help_text, description=description)
        command.set_defaults(run=run)
        return command

    command = add("lab", "open the lessons, or one and its exercises, in JupyterLab", lab.run)
    command.add_argument("lesson", nargs="?", help="such as 01 (default: the page of all)")
    command.add_argument("--no-browser", action="store_true", help="print the address only")
    command.add_argument("--port", type=int, default=8888, help="the first port to try")

    more = "An exercise is solved when it has all its points on its file as it is now."
    command = add("next", "show the next exercise that is not solved", next_exercise.run, more)
    command.add_argument("lesson", nargs="?", help="look in this lesson only, such as 01")

    more = "Only what is saved counts. The points are remembered."
    command = add("check", "grade the saved exercise files", checking.check, more)
    command.add_argument("what", nargs="*", help="such as 00, 00-02, 00.hello, or all (default)")
    command.add_argument("--seed", type=int, help="the seed that an earlier run printed")
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.add_argument("--full", action="store_true", help="show tracebacks in full")
    command.add_argument("--junit", metavar="FILE", help="write the result as JUnit XML")
    command.add_argument("--gradescope", metavar="FILE", help="write Gradescope's results.json")

    more = "It looks a few times a second, and grades the exercises that a save changed."
    command = add("watch", "grade what you change when you save; Ctrl-C ends", watch.run, more)
    command.add_argument("lesson", nargs="?", help="watch this lesson only, such as 01")

    more = "After three hints it says where the solution is. Hints cost no points."
    command = add("hint", "show the next hint for an exercise", checking.hint, more)
    command.add_argument("exercise", help="such as 00.central_difference, or 00.hello.2 for hint 2")

    more = "A tile is lit when your part, as it is now, has passed and has run in the engine."
    help_text = "show the wall of your parts, the exercises and their points"
    command = add("status", help_text, status.run, more)
    command.add_argument("lessons", nargs="*", help="such as 08, or 02-05 (default: all)")
    help_text = "train digits on all your parts at once, and show what ran through them"
    command.add_argument("--engine", action="store_true", help=help_text)

    more = (
        "Seeds 0 to 4, one after the other. What a finished seed came to is kept, and not run "
        "again until your code changes. Without NAME, say how each capstone stands."
    )
    command = add("capstone", "train a capstone of lesson 17", capstone.run, more)
    command.add_argument("name", nargs="?", help="such as read_digits")
    command.add_argument("--mine", action="store_true", help="on your parts that have passed")

    more = "What you wrote is copied into .minigrad/backup first."
    command = add("reset", "bring back an exercise file's stub; yours is kept", reset.run, more)
    command.add_argument("lesson", help="such as 00")

    more = "Nothing is overwritten: a folder with other files in it is refused."
    command = add("start", "write the course into a new folder", start.run, more)
    command.add_argument("folder", help="a new or an empty one")

    more = (
        "Your files are copied into .minigrad/backup first. Exercises are merged function by "
        "function: what you wrote stays, stubs are replaced."
    )
    command = add("update", "update to the installed course; yours is kept", update.run, more)
    command.add_argument(
        "--from", dest="source", metavar="FOLDER", help="take the course from this folder instead"
    )
    command.add_argument("--dry-run", action="store_true", help="only say what would change")

    more = (
        "The pages need no Python, network or scripts. Lessons run with the solutions if the "
        "course has them. An earlier book in the folder is replaced. With --site they can be "
        "searched and switched to dark, which takes a script beside them; any static host, or the "
        "file itself, will do."
    )
    command = add("book", "run the lessons and write them as pages", book.run, more)
    command.add_argument("folder", nargs="?", default="book", help="(default: book)")
    command.add_argument("--site", action="store_true", help="add search and a switch to dark")
    command.add_argument("--lessons", metavar="WHICH", help="such as 02-05 (default: all)")
    command.add_argument("--mine", action="store_true", help="use your notebooks and exercises")

    more = (
        "It trains digits on all your parts that have passed, and shows the curves, the wall of "
        "parts, the memory, the capstones and your code. The page needs no network. A file that "
        "this command did not write, or that was changed since, is refused."
    )
    command = add("portfolio", "write one page with your engine and your code", portfolio.run, more)
    command.add_argument("file", nargs="?", default="portfolio.html", help="(default: %(default)s)")
    command.add_argument("--name", default="", help="whose engine it is")

    more = (
        "It has the lessons, their exercises and checks, a README, start.py and a workflow that "
        "grades each push; no solutions, no mutants, no other lessons."
    )
    command = add("release", "write a repository for a class", release.run, more)
    command.add_argument("folder", help="a new or an empty one")
    command.add_argument("--lessons", metavar="WHICH", help="such as 02-05 (default: all)")

    more = (
        "A submission is a folder in FOLDER, or files named somebody_NN_slug.py; a FOLDER with "
        "exercises of its own is one submission. All get the same random inputs. A submission that "
        "cannot be graded has a row that says why. Exit code 3: the grader failed on a row, which "
        "then has no points, not zero."
    )
    command = add("grade", "grade what a class handed in, a row each", grading.run, more)
    command.add_argument("folder", help="the folder with the submissions")
    command.add_argument("--lessons", metavar="WHICH", help="such as 02-05 (default: those found)")
    command.add_argument("--seed", type=int, help="the seed of an earlier run")
    command.add_argument(
        "--minutes",
        type=float,
        default=20.0,
        metavar="N",
        help="the longest time for one submission (default: 20)",
    )
    command.add_argument(
        "--jail",
        choices=("bwrap",),
        help="run each file in bubblewrap (Linux), besides the walls that it has in any case",
    )
    command.add_argument(
        "--unsafe",
        action="store_true",
        help="grade as root where no other user can read this Python",
    )
    command.add_argument("--csv", metavar="FILE", help="write a table for spreadsheets")
    command.add_argument("--json", metavar="FILE", help="write everything as JSON (-: print it)")
    command.add_argument(
        "--gradescope",
        metavar="PATH",
        help="write results.json for Gradescope: a file for one submission, else a folder",
    )

    more = (
        "Each is a rank of mg.distributed: mpiexec -n N python -m mpi4py SCRIPT, with the cores "
        "shared among them. After a failure it says how each rank ended, the first cause first."
    )
    command = add("run", "run a script in several processes that train together", run.run, more)
    command.add_argument("-n", dest="ranks", type=int, default=2, metavar="N", help="(default: 2)")
    command.add_argument("script", help="a Python file that calls mg.distributed.init()")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="those of the script")

    add("doctor", "check this installation and say what to do", doctor.run)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    parser = make_parser()
    options, others = parser.parse_known_args(arguments)
    if others:
        is_lesson = hasattr(options, "lessons") and SEVERAL.fullmatch(others[0])
        how = f"; lessons are chosen by --lessons {others[0]}" if is_lesson else ""
        parser.error(f"unrecognized arguments: {' '.join(others)}{how}")
    if options.command is None:
        parser.print_help(sys.stderr)
        return USAGE
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
    except BrokenPipeError:  # `minigrad status | head`: the reader stopped reading
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return FULL
    except OSError as error:
        print(f"minigrad: the system refused: {error}", file=sys.stderr)
        return GRADER_FAULT
    except Exception as error:
        traceback.print_exc()
        print(
            f"minigrad: this is a fault of minigrad, not of your code: {error}. Please report it "
            "with the lines above; `minigrad doctor` may say more.",
            file=sys.stderr,
        )
        return GRADER_FAULT


if __name__ == "__main__":
    sys.exit(main())
