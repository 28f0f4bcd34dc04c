"""The measured messages: the answers that were repaired once, from the message alone."""

import pytest

from tests.repairs.cases import ANSWERS, N_CASES, SEED, grade


# The course promises that of five wrong answers four are repaired.
@pytest.mark.parametrize(
    ("folder", "n_cases", "wanted"), [(".", N_CASES, 18), ("lesson_13", 20, 16)]
)
def test_enough_answers_were_repaired_at_the_first_try(folder, n_cases, wanted):
    rows = grade(ANSWERS / folder, SEED)
    assert len(rows) == n_cases
    assert len({name for name, _, _ in rows}) == n_cases
    repaired = [name for name, passed, _ in rows if passed]
    assert len(repaired) >= wanted, [name for name, passed, _ in rows if not passed]
