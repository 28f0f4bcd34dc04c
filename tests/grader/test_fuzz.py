"""Random and mutated files: the grader never ends, no row is lost, none earns a point."""

import pytest

from tests.grader.fuzz import AT_ONCE, grade


@pytest.mark.parametrize("seed", range(10))
def test_files_that_are_no_answers_earn_nothing_and_lose_no_row(seed, tmp_path, capsys):
    assert grade(seed, AT_ONCE, tmp_path) == []
    assert "Traceback" not in capsys.readouterr().err
