"""The measured messages: the answers that were repaired once, from the message alone."""

from tests.repairs.cases import ANSWERS, N_CASES, SEED, grade

WANTED = 18  # of 22: the course promises four of five


def test_enough_answers_were_repaired_at_the_first_try():
    rows = grade(ANSWERS, SEED)
    assert len(rows) == N_CASES
    assert len({name for name, _, _ in rows}) == N_CASES
    repaired = [name for name, passed, _ in rows if passed]
    assert len(repaired) >= WANTED, [name for name, passed, _ in rows if not passed]
