"""`portfolio`: one page that loads nothing, whatever a learner's code and folder look like."""

import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest

from minigrad.cli import portfolio
from minigrad.cli.main import main
from minigrad.course.charts import Curve, chart
from minigrad.course.own_code import own_code
from minigrad.course.own_run import Memory, Report, Run
from minigrad.course.portfolio import Portfolio, Shown, highlighted, is_untouched, page
from minigrad.course.scores import Standing, standings
from minigrad.grader import progress
from minigrad.grader.folder import find_folder, load_lesson

HOSTILE = '</pre></script><script>alert("é 名")</script><img src=//x.example onerror=f()>'
CODE = f"def mul_backward(dy, a, b):\n    return '''{HOSTILE}''' and (dy * b, dy * a)\n"


class Reader(HTMLParser):
    """Reads a page: its tags, its attributes, and whether they are nested as they must be."""

    VOID = {"meta", "link", "br", "img", "line", "polyline", "polygon"}

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.open, self.text = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def run(ids, **more):
    return Run(
        ids, 3, [2.0, 1.5, 1.0, 1.0], [2.0, 1.5, 1.0, 1.0], 2.0, 1.0,
        dict.fromkeys(ids, 30), dict.fromkeys(ids, 0.5), {"pool": 60, **more},
    )  # fmt: skip


def lesson_01(*lit):
    lesson = load_lesson("01_chain_rule")
    some = [
        Standing(one, {"points": one.points}, True, True, one.name in lit)
        for one in lesson.exercises.values()
    ]
    return lesson, some


@pytest.fixture
def full():
    """A portfolio with something hostile in every text that is a learner's."""
    report = Report(
        run(["01.mul_backward"]), {"steps": run(["10.plan_reuse"])}, {"04.accumulate": HOSTILE}
    )
    report.memory = Memory([64, 128, 1 << 20, 0], [["matmul", 1 << 19]])
    curve = [(1.0, 2.0), (2.0, float("nan")), (3.0, 1.0)]
    shown = Shown(
        "17.x", HOSTILE, "minigrad capstone x", {"mine": HOSTILE}, {"mine": [curve, []]}, "x", "y"
    )
    other = Shown(
        "17.pole", "a pole", "minigrad capstone pole", {"mine": "not run yet"}, {"mine": []}
    )
    return Portfolio(
        HOSTILE,
        [lesson_01("mul_backward")],
        report,
        "",
        {"01.mul_backward": CODE, "17.x": "def x(): ..."},
        [shown, other],
    )


def test_page_runs_no_script_and_loads_nothing(full):
    text = page(full)
    reader = Reader(text)
    assert not {"script", "img", "link", "iframe", "object"} & {*reader.tags}
    names = {name for name, _ in reader.attributes}
    assert not {name for name in names if name.startswith("on")} | (names & {"src", "srcset"})
    ids = {value for name, value in reader.attributes if name == "id"}
    assert {value[1:] for name, value in reader.attributes if name == "href"} <= ids
    assert "url(" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text
    said = "".join(reader.text)
    assert said.count(HOSTILE) >= 4  # the name, a part that was left out, a capstone, the code


def test_page_shows_the_parts_the_share_the_memory_and_the_capstones(full):
    said = "".join(Reader(page(full)).text)
    assert "The wall: 1 of 2 parts are mine" in said
    assert "of 90 calls that the training made to parts of the engine, 30 ran my code (33%)" in said
    assert "1.000000 and 1.000000 after 3 steps" in said
    assert "At most 1.0 MiB" in said
    assert "512.0 KiB by matmul" in said
    assert "minigrad capstone pole --mine" in said
    assert "Trains a capstone" in said
    assert "Runs as gradients['mul']; called 30 times above" in said


def test_page_without_anything_says_what_is_missing():
    text = page(Portfolio("", [], None, "Nothing has passed: <hr>"))
    assert "My engine" in text
    assert "Nothing has passed: &lt;hr&gt;" in text
    assert Reader(text).tags.count("svg") == 0


def test_page_knows_whether_it_was_changed(full):
    text = page(full)
    assert is_untouched(text)
    assert not is_untouched(text.replace("My code", "My own code"))
    assert not is_untouched(text + " ")
    assert not is_untouched("<html></html>")


def test_code_is_plain_and_escaped_where_pygments_is_missing(monkeypatch, full):
    for name in ("pygments", "pygments.formatters", "pygments.lexers"):
        monkeypatch.setitem(sys.modules, name, None)
    assert "&lt;script&gt;" in highlighted(CODE)
    assert HOSTILE in "".join(Reader(page(full)).text)


def test_own_code_has_helpers_and_the_first_paragraphs_of_docstrings():
    source = '''import numpy as np

LIMIT = 3

def unused():
    pass

class Größe:
    """Say what.

    More of the exercise.
    """

    def f(self):
        """Do it.

        Wanted: much.
        """
        ### BEGIN SOLUTION
        return LIMIT
        ### END SOLUTION

@np.vectorize
def f(x):
    return Größe().f() + x

def g(x):
    return f(x)
'''
    assert (
        own_code(source, "g")
        == '''LIMIT = 3


class Größe:
    """Say what."""

    def f(self):
        """Do it."""
        return LIMIT


@np.vectorize
def f(x):
    return Größe().f() + x


def g(x):
    return f(x)'''
    )
    assert own_code(source, "missing") == ""


def test_own_code_of_every_solution_is_python():
    from minigrad.course.parts import PARTS
    from minigrad.grader.folder import find_stem
    from tests.cli.conftest import ROOT

    for one in PARTS:
        source = (ROOT / "solutions" / f"{find_stem(one[:2])}.py").read_text(encoding="utf-8")
        code = own_code(source, one[3:])
        compile(code, one, "exec")
        assert f" {one[3:]}(" in code or f"class {one[3:]}" in code
        assert "SOLUTION" not in code


@pytest.mark.parametrize(
    "points", [[], [(1.0, 2.0)], [(0.0, 0.0), (1.0, 0.0)], [(1.0, float("inf"))], [(0, -1e9)]]
)
def test_chart_of_few_or_strange_points_is_well_formed(points):
    text = chart([Curve(points)], "x < y", "é", "a & b", area=True)
    assert "nan" not in text
    assert "inf" not in text
    Reader(text)


# -- the command ---------------------------------------------------------------------------------


@pytest.fixture
def trained(learner, monkeypatch):
    """A folder where one part has passed, and a training that takes no time."""
    from tests.cli.conftest import ROOT

    text = (ROOT / "solutions" / "01_chain_rule.py").read_text(encoding="utf-8")
    (learner / "exercises" / "01_chain_rule.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(portfolio, "passed_parts", lambda: ["01.mul_backward"])
    monkeypatch.setattr(portfolio, "report_apart", lambda folder, ids: Report(run(ids)))
    monkeypatch.setattr(portfolio, "up_to_date", standings)
    monkeypatch.setattr(portfolio, "capstones", lambda folder: [])
    return learner


def test_command_writes_the_page_lights_the_tile_and_writes_it_again(trained, capsys):
    assert main(["portfolio", "--name", "Ada \udcff"]) == 0
    path = trained / "portfolio.html"
    first = path.read_text(encoding="utf-8")
    assert "The engine of Ada ?" in first
    assert '<h3 id="part-01.mul_backward">' in first
    assert "01.mul_backward" in progress.load(trained / ".minigrad")["engine"]
    assert main(["portfolio", "--name", "Grace"]) == 0
    assert "The engine of Grace" in path.read_text(encoding="utf-8")
    assert "Wrote" in capsys.readouterr().out


def test_command_never_replaces_what_it_did_not_write(trained, capsys):
    path = trained / "portfolio.html"
    path.write_text("mine")
    assert main(["portfolio"]) == 2
    assert path.read_text() == "mine"
    path.unlink()
    main(["portfolio"])
    changed = path.read_text(encoding="utf-8") + "<!-- a note -->"
    path.write_text(changed, encoding="utf-8")
    assert main(["portfolio"]) == 2
    assert path.read_text(encoding="utf-8") == changed
    assert "so it stays; name another file" in capsys.readouterr().err


def test_command_refuses_a_place_where_no_file_can_be(trained, capsys, monkeypatch):
    (trained / "nowhere").symlink_to(trained / "gone" / "page.html")
    for name, why in (
        ("exercises", "is a folder; name a file"),
        ("none/page.html", "there is no folder"),
        ("nowhere", "is there already"),
    ):
        assert main(["portfolio", name]) == 2
        assert why in capsys.readouterr().err
    monkeypatch.setattr(portfolio.os, "access", lambda *args: False)
    assert main(["portfolio", "page.html"]) == 2
    assert "nothing can be written in" in capsys.readouterr().err


def test_command_without_a_part_writes_what_is_missing(learner, capsys):
    assert main(["portfolio", "page.html"]) == 0
    assert "`minigrad next` shows the next exercise" in capsys.readouterr().out
    assert "No part has passed yet" in (learner / "page.html").read_text(encoding="utf-8")


def test_command_tells_of_a_training_that_failed(trained, monkeypatch, capsys):
    def fails(folder, ids):
        raise portfolio.CourseError("it <ended>")

    monkeypatch.setattr(portfolio, "report_apart", fails)
    assert main(["portfolio"]) == 0
    assert "failed: it &lt;ended&gt;" in (trained / "portfolio.html").read_text(encoding="utf-8")
    assert "failed: it <ended>" in capsys.readouterr().out


def test_capstones_are_those_whose_runs_count(learner, monkeypatch):
    one = SimpleNamespace(
        exercise_id="17.read_digits", title="digits", xlabel="step", ylabel="loss"
    )
    fake = SimpleNamespace(
        CAPSTONES={"read_digits": one},
        ENGINES=("reference", "mine"),
        kept=lambda folder, name, which: [SimpleNamespace(curve=[[1, 2.0], [2, 1.0]])],
        standing=lambda folder, name, which: f"{name} on {which}",
    )
    monkeypatch.setattr(portfolio, "capstone", fake)
    [shown] = portfolio.capstones(find_folder())
    assert shown.title == "digits"
    assert shown.said == {"reference": "read_digits on reference", "mine": "read_digits on mine"}
    assert shown.curves["mine"] == [[(1, 2.0), (2, 1.0)]]
    assert shown.command == "minigrad capstone read_digits"
