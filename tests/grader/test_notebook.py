"""What a notebook calls: check, load, predict, light."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad.course import check, engine, executing, hint, light, load, needs, parts, predict
from minigrad.course.percent import notebook_text
from minigrad.course.predictions import summary
from minigrad.course.stubs import cut
from minigrad.grader import progress
from minigrad.grader.folder import CourseError, UnsolvedError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def course(tmp_path, monkeypatch):
    (tmp_path / "exercises").mkdir()
    (tmp_path / "lessons").mkdir()
    for path in (ROOT / "solutions").glob("*.py"):
        (tmp_path / "exercises" / path.name).write_text(cut(path.read_text(), path.name))
    monkeypatch.chdir(tmp_path / "lessons")
    return tmp_path


def solve(course, stem):
    shutil.copy(ROOT / "solutions" / f"{stem}.py", course / "exercises")


def test_check_grades_the_saved_file(course):
    card = check("00.hello")
    assert not card.passed
    assert "gardients" in repr(card)
    solve(course, "00_start")
    assert check("00.hello").passed
    assert check("00").result.points == 12
    assert progress.load(course / ".minigrad")["exercises"]["00.hello"]["passed_hash"]


def test_card_is_html_in_a_notebook_with_everything_escaped(course):
    path = course / "exercises" / "00_start.py"
    path.write_text("def hello():\n    return '<script>alert(1)</script>'\n")
    html = check("00.hello")._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    for label in ("Given", "Expected", "Got", "Where", "Try"):
        assert f">{label}<" in html


def test_check_of_a_function_tries_it_here_for_no_points(course, capsys):
    def central_difference(f, x, eps):
        sys.stdout.write("called")
        return (f(x + eps) - f(x - eps)) / eps

    card = check(central_difference)
    assert card.result.exercises[0].first_failure.message.key == "double"
    assert "called" in capsys.readouterr().out
    assert "no points" in repr(card)
    assert not (course / ".minigrad").exists()


def test_check_of_a_function_that_raises_says_where(course):
    def hello():
        return 1 / 0

    message = check(hello).result.exercises[0].first_failure.message
    assert message.key == "raised"
    assert f":{hello.__code__.co_firstlineno + 1}, in hello" in message.where


def test_check_of_a_function_sees_inputs_that_it_changed(course):
    def mul_backward(dy, a, b):
        da = dy * b
        dy *= a
        return da, dy

    card = check(mul_backward)
    assert card.result.exercises[0].first_failure.message.key == "changed_input"


def test_check_of_an_unknown_function_says_so(course):
    with pytest.raises(CourseError, match="no lesson has an exercise"):
        check(len)


def test_live_and_graded_checks_agree_on_the_solutions(course):
    for stem in ("00_start", "01_chain_rule"):
        solve(course, stem)
        module = load(stem[:2])
        for name in ("central_difference", "slope", "chain", "count_mults", "pipeline_gradient"):
            if hasattr(module, name):
                assert check(getattr(module, name), seed=3).passed


def test_load_reads_the_file_afresh(course):
    assert load("00").hello() == "hello, gardients"
    solve(course, "00_start")
    assert load("0").hello() == "hello, gradients"


def test_load_of_a_broken_file_raises_its_own_error_and_leaves_no_module(course):
    (course / "exercises" / "00_start.py").write_text("raise KeyError('mine')\n")
    with pytest.raises(KeyError, match="mine"):
        load("00")


@pytest.mark.parametrize("ask", [lambda: load("00"), lambda: needs("00.slope")])
def test_a_file_that_python_cannot_read_is_named_in_a_line(course, ask):
    path = course / "exercises" / "00_start.py"
    path.write_bytes(b"x = 1\ny = '\xe9'\n" + path.read_bytes())
    with pytest.raises(CourseError, match=r"^exercises/00_start\.py: .* line 2 .*UTF-8"):
        ask()


def test_prediction_is_remembered_and_judged(course):
    predict("00.eps", "Which eps is best?", 1e-8).reveal(6e-6, factor=10)
    modes = ("forward", "reverse")
    predict("00.mode", "Which mode is cheaper?", "reverse", choices=modes).reveal("reverse")
    entries = progress.load(course / ".minigrad")["predictions"]
    assert [entries[name]["right"] for name in ("00.eps", "00.mode")] == [False, True]
    text = summary("00")
    assert text.startswith("1 of 2 predictions were right.")
    assert "You said 1e-08; it was 6e-06." in text


def test_prediction_left_open_is_not_counted(course):
    shown = predict("00.mode", "Which mode is cheaper?", choices=("forward", "reverse"))
    assert repr(shown) == "Which mode is cheaper?\nforward or reverse?"
    assert repr(shown.reveal("reverse")).endswith("Measured: reverse. (You made no prediction.)")
    assert "<details><summary>the answer</summary>Measured: reverse.<" in shown._repr_html_()
    assert not (course / ".minigrad").exists()


@pytest.mark.parametrize(("said", "right"), [(100, True), (299, True), (301, False), (30, False)])
def test_prediction_of_a_number_is_right_within_its_factor(course, said, right):
    assert predict("00.n", "How many?", said).reveal(100, factor=3).right is right


def slope_of_square_times_tanh(x):
    value = mg.variable(np.array([x]), requires_grad=True)
    (value * mg.tanh(value)).backward()
    return value.grad.item()


def test_engine_runs_on_the_parts_that_passed_on_this_very_file(course, monkeypatch):
    monkeypatch.setenv("MINIGRAD_USE", "mine")
    solve(course, "01_chain_rule")
    with engine() as mine:
        assert mine == []  # not checked yet
    check("01.mul_backward")
    with engine() as mine:
        assert mine == ["01.mul_backward"]
        assert slope_of_square_times_tanh(0.5) == pytest.approx(0.855341, abs=1e-5)
    path = course / "exercises" / "01_chain_rule.py"
    path.write_text(path.read_text() + "\nCHANGED = True\n")
    with engine() as mine:
        assert mine == ["01.mul_backward"]  # graded again in silence
    path.write_text(path.read_text() + "\n\ndef mul_backward(dy, a, b):\n    return dy, dy\n")
    with engine() as mine:
        assert mine == []


def test_engine_really_calls_the_learners_function(course):
    solve(course, "01_chain_rule")
    check("01.mul_backward")
    check("01.tanh_backward")
    calls = []

    def spied(lesson):
        module = load(lesson)
        mul, tanh = module.mul_backward, module.tanh_backward

        def spy_mul(dy, a, b):
            calls.append("mul")
            return mul(dy, a, b)

        def spy_tanh(dy, y):
            calls.append("tanh")
            return tanh(dy, y)

        module.mul_backward, module.tanh_backward = spy_mul, spy_tanh
        return module

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "load", spied)
        with engine("mine"):
            slope_of_square_times_tanh(0.5)
    assert sorted(calls) == ["mul", "tanh"]


def test_engine_is_the_reference_by_default_and_refuses_other_names(course, monkeypatch):
    monkeypatch.delenv("MINIGRAD_USE", raising=False)
    with engine() as mine:
        assert mine == []
    with pytest.raises(CourseError, match="'mine' or 'reference'"), engine("yours"):
        pass


def test_tile_lights_only_when_the_losses_agree_and_the_part_was_called(course):
    losses = np.array([2.0, 1.0, 0.5])
    assert "stays dark" in light("01.chain", mine=losses * 2, reference=losses, calls=3)
    assert "never called" in light("01.chain", mine=losses, reference=losses, calls=0)
    assert progress.load(course / ".minigrad")["engine"] == {}
    assert "runs the engine" in light("01.chain", mine=losses, reference=losses, calls=3)
    assert progress.load(course / ".minigrad")["engine"]["01.chain"]["calls"] == 3


@pytest.mark.parametrize("what", [42, None, 0.5, ["00"]])
def test_check_hint_and_load_of_what_is_no_name_say_what_a_name_is(course, what):
    for function in (check, load, hint):
        with pytest.raises(CourseError, match=r'a text such as "00"'):
            function(what)


def test_needs_names_the_exercise_that_is_still_as_it_came(course):
    with pytest.raises(
        UnsolvedError, match=r"^This cell needs 00.central_diff.* check 00"
    ) as caught:
        needs("00.hello", "00.central_difference")
    assert caught.value._render_traceback_() == [str(caught.value)]
    solve(course, "00_start")
    needs("00.hello", "00.central_difference")


def test_prediction_said_before_is_there_when_the_cell_runs_again(course):
    predict("00.n", "How many?").say(" 1234567.5 ")
    again = predict("00.n", "How many?")
    assert repr(again).startswith("How many?\nYou say 1.23e+06.")
    assert again.reveal(1234567.5, factor=1.0).right
    assert predict("00.n", "Another question?").said is ...
    assert predict("00.n", "How many?", choices=("few", "many")).said is ...


@pytest.mark.parametrize("said", ["many", "", None, float("nan"), "inf", [1e-6]])
def test_prediction_that_cannot_be_compared_is_refused(course, said):
    with pytest.raises(CourseError, match="Write a number, such as"):
        predict("00.eps", "Which eps is best?", said)
    with pytest.raises(CourseError, match="is none of few, 12"):
        predict("00.eps", "How many?", said, choices=("few", 12))
    assert not (course / ".minigrad").exists()


@pytest.mark.parametrize(("said", "right"), [("0", True), (0, True), (-1, False), (3, False)])
def test_prediction_of_a_measured_zero_is_right_if_it_is_zero(course, said, right):
    assert predict("00.n", "How many?", said).reveal(0.0).right is right


def test_question_in_a_notebook_is_answered_by_its_widgets(course, monkeypatch):
    ipywidgets = pytest.importorskip("ipywidgets")
    modes = predict("00.mode", "Which mode?", choices=("forward", "reverse"))
    number = predict("00.n", "How many?")
    widgets = ipywidgets.widgets.widget._instances
    for shown in (modes, number.reveal(12)):
        data = shown._bundle()
        assert "the answer" in data["text/html"] or shown is modes
        assert "application/vnd.jupyter.widget-view+json" in data
    next(one for one in widgets.values() if getattr(one, "description", "") == "reverse").click()
    field = next(one for one in widgets.values() if isinstance(one, ipywidgets.Text))
    field.value = "many"
    assert (modes.said, number.said) == ("reverse", ...)
    field.value = "11"
    assert number.right
    assert "application/vnd.jupyter.widget-view+json" not in number._bundle()
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert set(modes._bundle()) == {"text/plain", "text/html"}


def test_prediction_of_a_numpy_number_is_a_number(course):
    assert predict("00.n", "How many?", np.float32(120)).reveal(100).right


def test_cell_that_lacks_an_exercise_or_a_name_says_so_in_a_line_and_a_mistake_in_full(course):
    cells = [
        "from minigrad.course import load\nmine = load('00')",
        "slopes = mine.central_difference(abs, 1.0, 1e-3)",
        "print(slopes)",
        "slopes / 0",
        "slopes = 1",
        "slopes / 0",
        "print(slops)",
    ]
    text = notebook_text("".join(f"# %%\n{cell}\n" for cell in cells), "00_start.py")
    notebook, _ = executing.execute(text, course / "lessons")
    assert all("raises-exception" in cell["metadata"]["tags"] for cell in notebook.cells)
    shown = [one["traceback"] for cell in notebook.cells for one in cell["outputs"]]
    missing = "This cell needs slopes, which a cell above makes once it has run."
    assert shown[:3] == [[str(UnsolvedError("00.central_difference"))], [missing], [missing]]
    for name, traceback in zip(("ZeroDivisionError", "NameError"), shown[3:], strict=True):
        assert name in traceback[-1]
        assert len(traceback) > 1


def test_card_of_a_lesson_says_in_a_line_what_is_open(course):
    card = check("00")
    line = "0 of 12 points. Open: 00.hello, 00.central_difference, 00.slope; about "
    assert line in repr(card)
    assert line in card._repr_html_()
    assert "Open" not in repr(check("00.hello"))
    solve(course, "00_start")
    assert "12 of 12 points. Open: nothing" in repr(check("00"))
