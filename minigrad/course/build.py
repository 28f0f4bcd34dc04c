"""Builds notebooks and exercise files from their sources.

    python -m minigrad.course.build            writes what has changed
    python -m minigrad.course.build --check    writes nothing; exit code 1 if a file is stale

`lessons/NN_slug.ipynb` comes from `lessons/source/NN_slug.py`, and `exercises/NN_slug.py` from
`solutions/NN_slug.py`. An exercise file that somebody began to solve is left alone unless
`--force` is given.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from minigrad.course.percent import notebook_text
from minigrad.course.stubs import cut


def built_files(root: Path) -> dict[Path, str]:
    """Return the path and text of every file that is built from another."""
    files = {}
    for source in sorted((root / "lessons" / "source").glob("[0-9][0-9]_*.py")):
        text = source.read_text(encoding="utf-8")
        files[root / "lessons" / f"{source.stem}.ipynb"] = notebook_text(text, source.name)
    for solution in sorted((root / "solutions").glob("[0-9][0-9]_*.py")):
        text = solution.read_text(encoding="utf-8")
        files[root / "exercises" / solution.name] = cut(text, f"solutions/{solution.name}")
    return files


def stale_files(files: dict[Path, str]) -> list[Path]:
    """Return the built files that are missing or out of date."""
    return [
        path
        for path, text in files.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]


def is_untouched(path: Path, root: Path) -> bool:
    """Return whether a file is as last committed, so that overwriting it loses nothing."""
    if not path.exists():
        return True
    command = ["git", "status", "--porcelain", "--", str(path.relative_to(root))]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return not done.stdout.strip()


def main(arguments: list[str] | None = None) -> int:
    """Build or check; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m minigrad.course.build",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="write nothing, say what is stale")
    parser.add_argument("--force", action="store_true", help="overwrite changed exercise files too")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the repository's folder")
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    files = built_files(root)
    if not files:
        parser.error(f"{root} has no lessons/source and no solutions")
    stale = stale_files(files)
    for path in stale:
        shown = path.relative_to(root)
        if options.check:
            sys.stdout.write(f"stale: {shown}\n")
        elif path.parent.name == "exercises" and not (options.force or is_untouched(path, root)):
            sys.stdout.write(f"left alone: {shown} has changes of its own (--force overwrites)\n")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path], encoding="utf-8", newline="\n")
            sys.stdout.write(f"wrote {shown}\n")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
