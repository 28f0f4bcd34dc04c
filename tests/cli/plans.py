"""docs/teaching.md: the page with its tables, what each lesson takes, and two plans for a class.

Minutes and points are summed from the exercises, times and goals are those of the lessons' first
cells: nothing here can be out of date without a test that says so.
"""

from __future__ import annotations

import json
import pathlib

from minigrad.course import book
from minigrad.course.source import Source
from minigrad.grader.folder import known_stems, load_lesson
from minigrad.grader.spec import Lesson

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "teaching.md"
BEGIN, END = "<!-- {name}:start -->", "<!-- {name}:end -->"

# What to grade; the rest is practice. The bug hunts are last: they cannot be solved by recall.
GRADED = {
    "00": ("central_difference", "slope"),
    "01": ("chain", "count_mults", "pipeline_gradient"),
    "02": ("topo_order", "backward", "hasty_order"),
    "03": ("find_cycle", "assert_dag", "recurrent"),
    "04": ("unbroadcast", "microbatch_step", "train_both"),
    "05": ("is_alias", "CowBuffer", "make_target"),
    "06": ("check_saved", "no_grad", "fix_dqn_loop"),
    "07": ("LogSumExp", "hvp", "deep_gradient"),
    "08": ("SGD", "load_state_dict", "fine_tune"),
    "09": ("adam_step", "adamw_step", "lean_adam"),
    "10": ("Pool", "plan_reuse", "hand_step"),
    "11": ("k_sum_axis", "fuse", "smooth_all"),
    "12": ("center_rows", "leaky", "ink_of_digits"),
    "13": ("k_block_sum", "k_softmax_row", "k_histogram"),
    "14": ("fuse", "donate", "step_in_place"),
    "15": ("find_underflow", "GradScaler", "train_clipped"),
    "16": ("ring_all_reduce", "dp_step", "train_replicas"),
    "17": ("read_digits", "write_text", "balance_pole"),
}
# Per week: its lessons, and what else there is to do.
SIX_WEEKS = (
    (
        ("00", "01", "02", "03"),
        "the first lesson together, with every laptop set up; draw graphs by hand before anybody "
        "writes a search",
    ),
    (
        ("04", "05"),
        "04 ends with an engine of their own; leave 04.GradManager and 05.CowBuffer to the eager",
    ),
    (("06", "07"), "leave 06.no_grad to those who want it"),
    (
        ("08", "09", "10"),
        "`minigrad status --engine`: whose share a training was; the capstone (17) begins",
    ),
    (
        ("11", "12", "13"),
        "begin with the predictions, and compare rooflines; read the six messages of 12 together; "
        "leave the matrix product and the transpose of 13 to those who want them",
    ),
    (
        ("14", "15", "16", "17"),
        "17 is one of its three, the digits take an hour; a page of each portfolio is shown",
    ),
)
THIRTEEN_WEEKS = (
    (("00", "01"), "set-up, and how to read a failing check"),
    (("02", "03"), "draw graphs by hand before anybody writes a search"),
    (("04",), ""),
    ((), "their own engine: extend it by one operation, and check its gradient (no exercise)"),
    (("05",), ""),
    (("06",), "find a leak in code that somebody brings along"),
    (("07",), ""),
    (("08",), ""),
    (("09",), "the capstone (17) begins: a model trained on the engine with all their parts in it"),
    (("10",), "play the fragmentation game on paper: a row of boxes, and somebody is always late"),
    (
        ("11", "12"),
        "compare the rooflines of all laptops; collect the errors that the class has met, and look "
        "for them on the card",
    ),
    (
        ("13", "14"),
        "play a block sum with people: a warp a row of chairs, and somebody is slow",
    ),
    (
        ("15", "16", "17"),
        "one capstone each, begun in week 9, is shown; each explains one line of the engine that "
        "the others choose",
    ),
)


def first_cell(source: Source, stem: str) -> str:
    """Return the text of a lesson's first cell, in one line."""
    cell = json.loads(source.notebooks()[stem])["cells"][0]
    return " ".join("".join(cell["source"]).split())


def said(text: str, label: str) -> str:
    """Return what follows a bold label in a first cell, for a table."""
    return book.said(text, label).replace("|", "\\|")


def minutes(lesson: Lesson) -> int:
    """Return what the exercises of a lesson take most people."""
    return sum(exercise.minutes for exercise in lesson.exercises.values())


def lesson_table(source: Source) -> str:
    """Return the table of lessons."""
    lines = [
        "| lesson | takes | exercises | their minutes | points | at the end |",
        "|---|---|---:|---:|---:|---|",
    ]
    lessons = [load_lesson(stem) for stem in known_stems()]
    for lesson in lessons:
        text = first_cell(source, lesson.stem)
        lines.append(
            f"| {lesson.number} {lesson.title} | {said(text, 'It takes')} | "
            f"{len(lesson.exercises)} | {minutes(lesson)} | {lesson.points} | "
            f"{said(text, 'At the end')} |"
        )
    total = sum(map(minutes, lessons))
    n, points = sum(len(one.exercises) for one in lessons), sum(one.points for one in lessons)
    lines.append(f"| all | | {n} | {total} | {points} | |")
    return "\n".join(lines)


def plan_table(weeks: tuple) -> str:
    """Return the table of a plan, for the lessons that exist."""
    lessons = {stem[:2]: load_lesson(stem) for stem in known_stems()}
    lines = ["| week | lessons | exercises' minutes | grade | besides |", "|---:|---|---:|---|---|"]
    for number, (numbers, remark) in enumerate(weeks, 1):
        here = [lessons[one] for one in numbers if one in lessons]
        graded = [
            lesson.exercises[name].id for lesson in here for name in GRADED.get(lesson.number, ())
        ]
        names = ", ".join(lesson.stem.replace("_", " ") for lesson in here) or "–"
        total = sum(map(minutes, here)) or "–"
        lines.append(f"| {number} | {names} | {total} | {', '.join(graded) or '–'} | {remark} |")
    return "\n".join(lines)


def tables(source: Source) -> dict[str, str]:
    """Return all tables by the name of their place in the page."""
    return {
        "lessons": lesson_table(source),
        "six-weeks": plan_table(SIX_WEEKS),
        "thirteen-weeks": plan_table(THIRTEEN_WEEKS),
    }


def filled(page: str, source: Source) -> str:
    """Return the page with its tables as they are now."""
    for name, table in tables(source).items():
        begin, end = BEGIN.format(name=name), END.format(name=name)
        before, _, rest = page.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise ValueError(f"the page has no place {begin} ... {end}")
        page = f"{before}{begin}\n{table}\n{end}{after}"
    return page


def text() -> str:
    """Return the whole page: the committed prose, with its tables as they are now."""
    return filled(PAGE.read_text(encoding="utf-8"), Source(ROOT))
