"""docs/teaching.md says what the exercises say."""

import re
from pathlib import Path

import pytest

from minigrad.cli.main import make_parser
from minigrad.course.source import Source
from minigrad.grader.folder import known_stems, load_lesson
from tests.cli import plans

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "teaching.md").read_text(encoding="utf-8")


def test_every_lesson_is_in_the_table_with_the_sum_of_its_minutes():
    table = PAGE.split("<!-- lessons:start -->")[1].split("<!-- lessons:end -->")[0]
    for stem in known_stems():
        lesson = load_lesson(stem)
        (row,) = [line for line in table.splitlines() if line.startswith(f"| {stem[:2]} ")]
        cells = [cell.strip() for cell in row.split("|")[1:-1]]
        total = sum(exercise.minutes for exercise in lesson.exercises.values())
        assert cells[2:5] == [str(len(lesson.exercises)), str(total), str(lesson.points)]
        assert cells[1], "the first cell says **It takes** how long"
        assert cells[5], "the first cell says what there is **At the end**"


def test_readme_has_the_minutes_that_each_lesson_says():
    table = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"\| (\d\d) [^|]+\| (\d+) ", table))
    source = Source(ROOT)
    for stem in known_stems():
        takes = plans.said(plans.first_cell(source, stem), "It takes")
        assert takes.startswith(f"about {shown[stem[:2]]} minutes"), stem


def test_the_fast_track_is_a_weekend_and_the_one_that_the_readme_names():
    stems = [stem for stem in known_stems() if load_lesson(stem).on_fast_track]
    [named] = re.findall(r"fast track, a weekend: ([\d, ]+)\.", (ROOT / "README.md").read_text())
    assert named.split(", ") == [stem[:2] for stem in stems]
    takes = [plans.said(plans.first_cell(Source(ROOT), stem), "It takes") for stem in stems]
    minutes = sum(int(re.findall(r"about (\d+) minutes", text)[0]) for text in takes)
    assert minutes <= 2 * 7 * 60


@pytest.mark.parametrize("weeks", [plans.SIX_WEEKS, plans.THIRTEEN_WEEKS], ids=["six", "thirteen"])
def test_plan_has_every_lesson_once_and_in_order(weeks):
    numbers = [number for some, _ in weeks for number in some]
    assert numbers == [stem[:2] for stem in known_stems()]
    assert len(weeks) in (6, 13)


def test_what_is_to_be_graded_exists_and_has_the_bug_hunt():
    for stem in known_stems():
        lesson = load_lesson(stem)
        graded = plans.GRADED[stem[:2]]
        assert {*graded} <= {*lesson.exercises}
        hunted = [name for name in lesson.exercises if (f"{name}" in graded)]
        assert hunted[-1] == list(lesson.exercises)[-1]  # the bug hunt comes last


def test_page_without_a_place_for_its_tables_is_refused():
    with pytest.raises(ValueError, match="no place"):
        plans.filled("nothing", Source(ROOT))


def code_of(page):
    """Return the code of a page, a line each: blocks, indented lines and what stands in `...`."""
    fenced = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    page = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    indented = re.findall(r"^ {4}\S.*", page, re.MULTILINE)
    return "\n".join([*fenced, *indented, *re.findall(r"`([^`\n]+)`", page)])


@pytest.mark.parametrize("page", ["README.md", "docs/course.md", "docs/teaching.md"])
def test_commands_named_in_the_documents_exist(page):
    text = code_of((ROOT / page).read_text(encoding="utf-8"))
    commands = next(action for action in make_parser()._actions if action.choices).choices
    named = set(re.findall(r"^\s*(?:python3 start\.py|minigrad) ([a-z]+)", text, re.MULTILINE))
    named -= {"test", "setup"}
    assert named <= {*commands}
    for name, options in re.findall(
        r"(?:start\.py|minigrad) ([a-z]+)((?:[^\n]*?--[a-z-]+)+)", text
    ):
        if name in ("test", "setup"):  # start.py's own
            continue
        known = {option for action in commands[name]._actions for option in action.option_strings}
        assert {*re.findall(r"--[a-z-]+", options)} <= known


def test_every_command_is_in_the_table_of_the_course():
    text = (ROOT / "docs" / "course.md").read_text(encoding="utf-8")
    commands = next(action for action in make_parser()._actions if action.choices).choices
    assert [name for name in commands if f"| `minigrad {name}" not in text] == []
