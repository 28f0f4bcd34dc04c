"""Lines of notebooks in error messages."""

import pytest
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
