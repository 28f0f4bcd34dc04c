"""Every planted fault is found, named with its line; its clean twin runs, and is right."""

import pytest

from minigrad import simt
from minigrad.errors import DataRaceError
from tests.simt.faults import FAULTS
from tests.simt.planted import found, line_of, marked, runs_clean


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case.what)
def test_the_fault_is_found(case):
    error = found(case)
    assert type(error) is case.error
    assert line_of(error) in marked(case)
    assert error.kernel == "kernel"
    assert len(error.block) == len(error.thread) == 3
    assert error.fix
    if case.error is DataRaceError:
        assert error.other_line in marked(case)
        assert (error.block, error.thread) != (error.other_block, error.other_thread)


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case.what)
def test_no_false_alarm(case):
    assert runs_clean(case)


def test_watching_can_be_left():
    """Without it races pass."""
    races = [c for c in FAULTS if c.error is DataRaceError]
    for case in races:
        simt.launch(case.kernel, case.blocks, case.threads, case.arguments(), watch=False)
    assert len(races) >= 10
