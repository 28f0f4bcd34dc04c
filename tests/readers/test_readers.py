"""Answers of readers are graded right: wrong ones caught, right ones with full marks."""

import pytest

from minigrad.grader.launcher import Server
from tests.readers.evidence import ANSWERS, is_graded_right


@pytest.fixture(scope="module")
def server():
    with Server() as server:
        yield server


@pytest.mark.parametrize("answer", ANSWERS, ids=[f"{a['exercise']}-{a['name']}" for a in ANSWERS])
def test_answer_of_a_reader_is_graded_right(answer, server):
    assert is_graded_right(server, answer)


def test_every_answer_has_a_name_of_its_own():
    assert len({(a["exercise"], a["name"]) for a in ANSWERS}) == len(ANSWERS)
