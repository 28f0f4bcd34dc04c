"""What a learner's code prints, raises, returns and names reaches every format as text alone."""

import csv
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from minigrad.cli.gradebook import Gradebook, Row
from minigrad.grader import views
from minigrad.grader.card import Card
from minigrad.grader.folder import load_lesson
from minigrad.grader.message import inert, one_line, without_command
from minigrad.grader.report import Style, text
from minigrad.grader.result import Result
from minigrad.grader.run import Submission, grade_exercise

HOSTILE = (
    "\x1b[2Jcleared\x1b]0;title\x07 \x9b31m<script>alert(1)</script>&amp;\u202eesrever\u200b\x00\r"
    "\n::error file=x::forged\n  ##[error]forged\n\x0b\x0c\u2028\ud800\ufffe=HYPERLINK(1)"
)
HEAD = f"H = {HOSTILE!r}\nSAFE = H.replace(chr(0xd800), '')\n"  # which could not be printed
FILES = {
    "raises": "def hello():\n    print(SAFE)\n    raise ValueError(H)\n",
    "returns": "def hello():\n    print(SAFE)\n    return H\n",
    "prints": "def hello():\n    print(SAFE)\n",
    "names": "def hello():\n    return type(SAFE.replace(chr(0), ''), (), {})()\n",
    "at import": "print(SAFE)\nraise RuntimeError(H)\n",
    "of a class": "def hello():\n    raise type(SAFE.replace(chr(0), ''), (Exception,), {})(H)\n",
    "exits": "def hello():\n    raise SystemExit(H)\n",
}
ALLOWED = "\n\t"


@pytest.fixture(scope="module", params=FILES)
def result(request, server):
    exercise = load_lesson("00_start").exercises["hello"]
    source = HEAD + FILES[request.param]
    submission = Submission(Path("exercises/00_start.py"), source)
    return Result(1, [grade_exercise(server, exercise, submission, 1)])


def assert_inert(said):
    assert [c for c in said if not c.isprintable() and c not in ALLOWED] == []
    for line in said.splitlines():
        assert not re.match(r"\s*(::|##\[)", line), line


@pytest.mark.parametrize("full", [False, True])
def test_in_a_terminal(result, full):
    said = text(result, Style(plain=True), full=full)
    assert "✗" in said
    assert_inert(said)


def test_in_a_notebook(result):
    card = Card(result)
    assert_inert(repr(card))
    html = card._repr_html_()
    assert "<script" not in html
    assert [c for c in html if not c.isprintable() and c not in ALLOWED] == []


def test_in_json(result):
    said = views.as_json(result)
    assert said.isascii()
    for check in json.loads(said)["exercises"][0]["checks"]:
        assert_inert(without_command("\n".join((check.get("message") or {}).values())))


def test_in_junit(result):
    root = ElementTree.fromstring(views.junit(result))
    [failure] = [one for one in root.iter("failure") if one.text][:1]
    assert_inert(failure.text)


def test_in_gradescope(result):
    for one in views.gradescope(result)["tests"]:
        assert_inert(one["output"])


def test_in_a_class_table():
    book = Gradebook(["00_start"], seed=1)
    row = Row(one_line(HOSTILE), notes=[f"note {HOSTILE}"], fault=f"broke: {HOSTILE}")
    book.rows.append(row)
    line = book.line(row, 20, Style(plain=True))
    assert "\n" not in line
    assert_inert(line)
    for cell in next(iter([*csv.reader(book.as_csv().splitlines())][1:])):
        assert cell.isprintable()


@pytest.mark.parametrize(
    "name",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        " =1",
        "\t=1",
        "a;=x",
        "a, =x",
        "a|=cmd",
        "＝1",
        "a\n=1",
        "\r=1",
    ],
)
def test_no_name_is_a_formula(name):
    book = Gradebook(["00_start"], seed=1, rows=[Row(name, notes=[name])])
    cells = [*csv.reader(book.as_csv().splitlines(), strict=True)][-1]
    for cell in (cells[0], cells[-1]):
        for part in re.split(r"[;,|\t\n]", cell):
            assert not part.lstrip().startswith(tuple("=+-@＝＋－＠")), cell


def test_text_of_all_languages_stays_as_it_is():
    said = "größe  тест 王伟　李娜 السلام 😀\n\tx\xa0y"
    assert inert(said) == said
    assert inert("a\u202eb\x00") == r"a\u202eb\x00"
    assert one_line("a\n\tb") == r"a\n\tb"
