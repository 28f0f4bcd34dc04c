"""`minigrad release FOLDER --lessons 02-05`: writes a repository for a class."""

from __future__ import annotations

import argparse
from pathlib import Path

from minigrad.cli.ranges import stems_in
from minigrad.course.release import missing_needs, project_folder, release_files
from minigrad.course.source import installed
from minigrad.grader.atomic import place
from minigrad.grader.folder import CourseError


def run(options: argparse.Namespace) -> int:
    """Write the repository into a new or empty folder."""
    root = Path(options.folder).expanduser().resolve()
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise CourseError(f"nothing was written: {root} is not empty; name a new folder")
    project, source = project_folder(), installed()
    stems = stems_in(options.lessons, list(source.stubs()))
    n_files = 0
    try:
        for name, content in release_files(project, source, stems):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            place(path, content)
            n_files += 1
    except OSError as error:
        raise CourseError(f"the release is not complete, delete {root}: {error}") from error
    print(f"Wrote {n_files} files into {root}, for lessons {', '.join(s[:2] for s in stems)}")
    for line in missing_needs(source, stems):
        print(f"note: {line}")
    print("Try it: cd there, `python3 start.py check`. Then commit it and give it to your class.")
    return 0
