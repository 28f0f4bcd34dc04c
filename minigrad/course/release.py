"""Makes a class repository's files: some lessons, ready to run, without solutions or mutants."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from minigrad.course.source import ADVICE, PACKAGE, Source
from minigrad.grader.folder import CourseError, load_lesson

COPIED = ("start.py", "constraints.txt", "LICENSE", "LICENSE-lessons", "NOTICE", ".gitattributes")
# These build the course, and need the solutions.
LEFT_OUT = {"course/build.py", "course/prove.py", "course/mutants.py", "course/mechanical.py"}
# A use of one exercise, such as "01.chain", or of a whole lesson: load("01").
USED = re.compile(r'"(\d\d)\.[a-z]\w+"|\bload\("(\d\d)"\)', re.IGNORECASE)
IGNORED = """\
.venv/
.minigrad/
work/
__pycache__/
*.egg-info/
.ipynb_checkpoints/
"""
README = """\
# {title}

| lesson | exercises | points | minutes |
|---|---|---:|---:|
{table}

You need Python 3.11 to 3.14 and, the first time, a network. In this folder:

```sh
python3 start.py             # sets everything up, opens JupyterLab on the lessons
python3 start.py next        # the next exercise
python3 start.py lab {first}      # a lesson, its exercises beside it
python3 start.py check {first}    # grade what is saved
python3 start.py watch       # grade whenever a file is saved; Ctrl-C ends
python3 start.py hint {example}
python3 start.py status      # your points, and which parts of the engine are yours
```

Write only in `exercises/`: nothing else is graded. Hints cost nothing. `reset` brings back an
exercise file's stub and keeps your file in `.minigrad/backup`. The minutes are what most people
need; a lesson's first cell says how long all of it takes.

When you are done, commit and push. The workflow in `.github` grades each push as `check` does here;
your teacher grades again, with a separate copy of the checks. `AGENTS.md` asks an assistant to
explain and to ask, and to leave the exercises to you.
"""
WORKFLOW = """\
name: grade
on: [push, pull_request, workflow_dispatch]
permissions:
  contents: read
jobs:
  grade:
    runs-on: ubuntu-latest
    timeout-minutes: 30
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - name: set up
        run: python3 start.py setup
      - name: grade
        run: python3 start.py check all
"""


def release_files(project: Path, source: Source, stems: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each file of a class repository.

    Args:
        project: a checkout of minigrad, which has `start.py` and the like.
        source: the course.
        stems: the lessons.
    """
    for name in COPIED:
        yield name, (project / name).read_bytes()
    yield ".gitignore", IGNORED.encode()
    yield "pyproject.toml", project_file(project).encode()
    yield ".github/workflows/grade.yml", WORKFLOW.encode()
    yield "README.md", readme(stems).encode()
    for name, text in source.advice().items():
        yield name, text.encode()
        if name == ADVICE:
            yield f"minigrad/course/files/{name}", text.encode()
    stubs, notebooks = source.stubs(), source.notebooks()
    for stem in stems:
        for name, text in (
            (f"exercises/{stem}.py", stubs[stem]),
            (f"lessons/{stem}.ipynb", notebooks[stem]),
        ):
            yield name, text.encode()
            yield f"minigrad/course/files/{name}", text.encode()  # for `reset`
    yield from package_files(stems)


def package_files(stems: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the package's files without other lessons' checks."""
    for path in sorted(PACKAGE.rglob("*")):
        name = path.relative_to(PACKAGE).as_posix()
        lesson = re.match(r"course/l(\d\d_\w+)/", name)
        is_wanted = (
            path.is_file()
            and "__pycache__" not in path.parts
            and not name.startswith("course/files/")
            and name not in LEFT_OUT
            and (lesson is None or lesson[1] in stems)
        )
        if is_wanted:
            yield f"minigrad/{name}", path.read_bytes()


def readme(stems: list[str]) -> str:
    """Return the README for students, with a table of the lessons."""
    rows = []
    for stem in stems:
        lesson = load_lesson(stem)
        minutes = sum(exercise.minutes for exercise in lesson.exercises.values())
        n, points = len(lesson.exercises), lesson.points
        rows.append(f"| {lesson.number} {lesson.title} | {n} | {points} | {minutes} |")
    first = load_lesson(stems[0])
    return README.format(
        title="minigrad: how automatic differentiation really works",
        table="\n".join(rows),
        first=first.number,
        example=next(iter(first.exercises.values())).id,
    )


def project_file(project: Path) -> str:
    """Return the pyproject.toml of a class repository: ours without the development tools."""
    ours = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    about = ours["project"]
    kept = ("name", "version", "description", "requires-python", "license", "license-files")
    lines = ["[build-system]", *_assignments(ours["build-system"]), "", "[project]"]
    lines += _assignments({key: about[key] for key in kept} | {"readme": "README.md"})
    lines += _assignments({"dependencies": about["dependencies"]})
    extras = about["optional-dependencies"]
    wanted = {"lab": extras["lab"], "test": [one for one in extras["test"] if "pytest" in one]}
    lines += ["", "[project.optional-dependencies]", *_assignments(wanted)]
    lines += ["", "[project.scripts]", *_assignments(about["scripts"])]
    lines += ["", "[project.entry-points.pytest11]"]
    lines += _assignments(about["entry-points"]["pytest11"])
    lines += ["", "[tool.hatch.build.targets.wheel]"]
    lines += _assignments({"only-include": ["minigrad"], "dev-mode-dirs": ["."]})
    return "\n".join(lines) + "\n"


def _assignments(table: dict) -> list[str]:
    """Return a table of strings and lists of strings as TOML, which writes them like JSON."""
    return [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items()]


def missing_needs(source: Source, stems: list[str]) -> list[str]:
    """Return a line for each use of a lesson that the release lacks."""
    lines = []
    notebooks = source.notebooks()
    given = {stem[:2] for stem in stems}
    for stem in stems:
        cells = json.loads(notebooks[stem])["cells"]
        code = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
        used = {a or b for a, b in USED.findall(code)} - given
        lines += [
            f"lesson {stem[:2]} uses your lesson {n}, which is left out" for n in sorted(used)
        ]
    return lines


def project_folder() -> Path:
    """Return the checkout that this package runs from; raise CourseError if there is none."""
    project = PACKAGE.parent
    if all((project / name).is_file() for name in (*COPIED, "pyproject.toml")):
        return project
    raise CourseError(
        "a release is made from a clone of minigrad's repository, which has start.py and the pins "
        "that a class needs: clone it, and run `python3 start.py release FOLDER` there"
    )
