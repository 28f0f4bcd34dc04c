"""`minigrad status --engine`: trains digits on the learner's whole engine, and says what ran."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from textwrap import wrap

from minigrad.course.own_run import (
    ELSEWHERE,
    GPU_PARTS,
    GRACE,
    LONGEST,
    REPORT,
    RUNNING,
    TRACEBACK,
    Report,
    Run,
    is_elsewhere,
    label_of,
)
from minigrad.course.parts import PARTS, passed_parts
from minigrad.course.shares import rows_of
from minigrad.course.tiles import remember
from minigrad.grader.folder import CourseError, CourseFolder, find_stem
from minigrad.grader.message import counted
from minigrad.grader.report import Style

WIDEST = 100  # letters of a line
FRAME = re.compile(
    r'File "(?P<file>[^"]*[\\/]exercises[\\/](?P<name>[^"\\/]+))", line (?P<line>\d+)'
)


def show(folder: CourseFolder, stems: list[str], style: Style) -> int:
    """Train, light the tiles of the parts that ran, and print the table.

    Args:
        stems: the lessons whose parts take part; none: all.
    """
    wanted = [one for one in PARTS if not stems or find_stem(one[:2]) in stems]
    if not wanted:
        print("These lessons have no part that runs in the engine.")
        return 0
    ids = [one for one in passed_parts() if one in wanted]
    if not ids:
        said = f"None of these {len(wanted)} parts is yours yet: {', '.join(wanted)}."
        print("\n".join(wrap(said, WIDEST, subsequent_indent="  ")))
        print(
            f"When one has passed (`minigrad check {wanted[0]}`), this command trains digits with "
            "it in the engine."
        )
        return 1
    names = f"{len(ids)} of {len(wanted)} parts are yours"
    print(f"{names}; training digits twice, without them and with them ...", flush=True)
    report = report_apart(folder, ids)
    for run in report.runs:
        remember(folder, run.calls, run.mine[-1])
    for line in lines_of(report, wanted, style):
        print("\n".join(wrap(line, WIDEST, subsequent_indent="  ")) if len(line) > WIDEST else line)
    return 1 if report.left_out else 0


def report_apart(folder: CourseFolder, ids: list[str]) -> Report:
    """Return the report of a process of its own; leave out parts that stop it.

    Raises:
        CourseError: it ended, and no part was running.
    """
    ids, left_out = [*ids], {}
    while True:
        with tempfile.TemporaryDirectory(prefix="minigrad-engine-") as name:
            place = Path(name)
            # -P: else a learner's random.py in the folder would hide Python's
            command = [sys.executable, "-P", "-m", "minigrad.course.own_run", name, *ids]
            with open(place / "said", "wb") as said:
                code = subprocess.call(
                    command, cwd=folder.root, stdin=subprocess.DEVNULL, stdout=said, stderr=said
                )
            if (place / REPORT).is_file():
                report = Report.from_json((place / REPORT).read_text(encoding="utf-8"))
                report.left_out = {**left_out, **report.left_out}
                return report
            running, where = stopped_in(place)
            culprits = [one for one in ids if label_of(one) == running]
            if not culprits:
                said = (place / "said").read_text("utf-8", "replace").strip()
                raise CourseError(
                    f"the training ended with code {code}, while none of your parts ran:\n"
                    f"{(said or where)[-800:]}"
                )
        is_late = f"did not return within {LONGEST + GRACE:.0f} s"
        why = is_late if "Timeout" in where else f"ended the process, code {code}"
        frame = FRAME.search(where)
        at = f", at {frame['name']}:{frame['line']}" if frame else ""
        left_out[culprits[0]] = f"it {why}{at}"
        ids.remove(culprits[0])


def stopped_in(place: Path) -> tuple[str, str]:
    """Return the label of the part that ran when a process ended, "" for none, and a traceback."""
    texts = []
    for name in (RUNNING, TRACEBACK):
        path = place / name
        texts.append(path.read_text("utf-8", "replace") if path.is_file() else "")
    return texts[0].strip("\0"), texts[1]


def lines_of(report: Report, wanted: list[str], style: Style) -> list[str]:
    """Return what is to be said about a report, a line each."""
    lines = []
    if report.eager and report.eager.ids:
        lines += ["", style.paint(losses_of(report.eager, "steps"), "bold")]
        lines += table_of(report.eager)
    for what, run in report.others.items():
        if run.ids:
            lines += ["", style.paint(losses_of(run, what), "bold")]
            lines += [f"  {one}: {counted(n, 'call')}" for one, n in run.calls.items()]
    calls: Counter[str] = Counter()
    for run in report.runs:
        calls.update(run.calls)
    ran = {one for one, n in calls.items() if n}
    apart = {one: ELSEWHERE[PARTS[one][0]][1] for one in sorted(filter(is_elsewhere, ran))}
    lines += [""] * bool(apart or ran & GPU_PARTS or calls.keys() - ran)
    for one, why in apart.items():
        lines.append(f"{one} needs {why}: so that was another training.")
    for one in sorted(ran & GPU_PARTS):
        lines.append(f"{one} needs a GPU: here it was a simulated one, which takes its time.")
    for one in sorted(calls.keys() - ran):
        lines.append(f"{one} was not called: this training has no work for {label_of(one)}.")
    for one, why in report.left_out.items():
        lines += ["", style.paint(f"Left out: {one} ({label_of(one)})", "failed"), f"  {why}"]
        lines.append(f"  minigrad check {one} grades it again; the others ran without it")
    missing = [one for one in wanted if one not in calls and one not in report.left_out]
    if missing:
        lines += ["", f"Not yours yet: {', '.join(missing)}"]
    elif ran == set(PARTS):
        lines += ["", "Every part of this engine that has a place for yours is yours."]
    return lines


def losses_of(run: Run, what: str) -> str:
    """Return a sentence about the losses of one training."""
    return (
        f"{run.steps} {what}: minigrad's loss {run.reference[0]:.4f} -> "
        f"{run.reference[run.steps - 1]:.4f}, yours {run.mine[0]:.4f} -> "
        f"{run.mine[run.steps - 1]:.4f}: the same"
    )


def table_of(run: Run) -> list[str]:
    """Return the lines of the table of one training."""
    rows = rows_of(run)
    width = max(len(row[0]) for row in rows)
    head = f"  {'part':<{width}}  {'whose':<20} {'calls':>7} {'of calls':>9} {'of time':>8}"
    return [head] + [
        f"  {part:<{width}}  {whose:<20} {calls:>7,} {calls_share:>9} {time_share:>8}".rstrip()
        for part, whose, calls, calls_share, time_share in rows
    ]
