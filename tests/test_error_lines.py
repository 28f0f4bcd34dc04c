"""Errors in notebooks: the lines that messages name, and the frames that IPython shows."""

import re
import traceback

import pytest

import minigrad as mg

pytest.importorskip("IPython", reason="IPython is not installed: pip install minigrad[lab]")

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

CELL = """import minigrad as mg
try:
    mg.ones((2,)) + mg.ones((3,))
except mg.errors.MinigradError as error:
    kept = error
"""


@pytest.fixture
def shell():
    quiet = {"InteractiveShell": {"warn_venv": False}}  # whichever environment is activated
    config = Config({"HistoryManager": {"enabled": False}, **quiet})
    yield InteractiveShell.instance(config=config)
    InteractiveShell.clear_instance()


def test_a_line_of_a_cell_is_named_as_ipython_names_it(shell):
    for number in (1, 2):
        shell.run_cell(CELL, store_history=True)
        assert shell.user_ns["kept"].where == f"In[{number}]:3  mg.ones((2,)) + mg.ones((3,))"


def test_lines_outside_the_notebook_keep_the_file_name(shell, tmp_path):
    (tmp_path / "helper.py").write_text(CELL)
    shell.run_cell(f"%run {tmp_path / 'helper.py'}", store_history=True)
    assert shell.user_ns["kept"].where.startswith("helper.py:3  ")


def shown(shell, capsys, cell):
    """What IPython shows of a cell that raises, without its colours, and the error."""
    result = shell.run_cell(cell, store_history=True)
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out), result.error_in_exec


def frames(text):
    """Per frame where it is: a cell, or the name of a file."""
    return re.findall(r"^(?:Cell In\[\d+\]|File (\S+?):\d+)", text, flags=re.MULTILINE)


ADD = "import minigrad as mg\ndef add(x):\n    return x + mg.ones((3,))\nadd(mg.ones((2,)))"


def test_an_error_shows_the_frames_of_the_user_and_the_message(shell, capsys):
    text, error = shown(shell, capsys, ADD)
    assert frames(text) == ["", ""]
    assert "----> 4 add(mg.ones((2,)))" in text
    assert "----> 3     return x + mg.ones((3,))" in text
    assert text.rstrip().endswith(f"ShapeError: {error}")
    assert len(text.splitlines()) < 22


def test_show_all_shows_the_frames_of_minigrad_until_it_is_off(shell, capsys):
    mg.errors.show_all()
    try:
        text, _ = shown(shell, capsys, ADD)
    finally:
        mg.errors.show_all(False)
    assert any("minigrad" in name for name in frames(text))
    text, error = shown(shell, capsys, ADD)
    assert frames(text) == ["", ""]
    assert any("minigrad" in f.filename for f in summary(error))  # the traceback itself is whole


def summary(error):
    return traceback.extract_tb(error.__traceback__)


def test_code_of_the_user_that_minigrad_calls_is_shown(shell, capsys):
    cell = """import minigrad as mg
y = mg.variable([1.0, 2.0], requires_grad=True) * 2.0
y.register_hook(lambda g: g + mg.ones((7,)))
y.sum().backward()"""
    text, _ = shown(shell, capsys, cell)
    assert frames(text) == ["", ""]
    assert "----> 3 y.register_hook" in text


def test_a_script_that_a_cell_runs_is_shown(shell, capsys, tmp_path):
    (tmp_path / "helper.py").write_text(ADD)
    text, _ = shown(shell, capsys, f"%run {tmp_path / 'helper.py'}")
    assert [name.rpartition("/")[2] for name in frames(text)] == ["helper.py", "helper.py"]


CAUSED = """import minigrad as mg
def wrong():
    raise {cause}
try:
    {call}
except Exception as error:
    raise mg.errors.ArgumentError("wanted another") from error
"""


def test_a_cause_in_the_code_of_the_user_is_shown_without_minigrads_frames(shell, capsys):
    cell = CAUSED.format(cause="ValueError('mine')", call="wrong()")
    text, error = shown(shell, capsys, cell)
    assert "ValueError: mine" in text
    text, error = shown(shell, capsys, CAUSED.format(cause="", call="mg.ones(2) + mg.ones(3)"))
    assert "direct cause" in text
    assert set(frames(text)) == {""}
    assert any("minigrad" in f.filename for f in summary(error.__cause__))


def test_a_cause_within_minigrad_is_hidden_and_kept(shell, capsys, monkeypatch):
    def failing(*args):
        try:
            raise_within()
        except TypeError as error:
            raise mg.errors.GraphFreedError("gone") from error

    place = mg.errors.__file__
    scope = {"mg": mg}
    exec(compile("def raise_within():\n    raise TypeError('inner')", place, "exec"), scope)
    raise_within = scope["raise_within"]
    code = failing.__code__.replace(co_filename=place)
    shell.user_ns["failing"] = type(failing)(
        code, failing.__globals__, "f", None, failing.__closure__
    )
    text, error = shown(shell, capsys, "failing()")
    assert "inner" not in text
    assert frames(text) == [""]
    assert isinstance(error.__cause__, TypeError)
    assert error.__suppress_context__


def test_without_ipython_an_error_is_shown_whole():
    with pytest.raises(mg.errors.ShapeError) as caught:
        mg.ones((2,)) + mg.ones((3,))
    assert "layout.py" in "".join(caught.value._render_traceback_())
