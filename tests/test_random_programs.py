"""Random programs against PyTorch's numbers (`python -m tests.against_pytorch` makes them)."""

import pytest

from minigrad.errors import InPlaceError, SavedValueModifiedError
from tests.against_pytorch import kept, on_minigrad, programs
from tests.against_pytorch.compare import difference

KEPT = list(kept.read())


@pytest.mark.parametrize(("seed", "program", "wanted"), KEPT, ids=[f"{seed}" for seed, *_ in KEPT])
def test_program_gives_pytorchs_numbers(seed, program, wanted):
    try:
        found = difference(program.dtype, wanted, on_minigrad.run(program))
    except (InPlaceError, SavedValueModifiedError):
        assert any(name in programs.WRITES for name, *_ in program.steps)
        return
    assert not found, f"{program.text()}\n{found}"


def test_programs_with_writes_are_not_all_refused():
    ran = 0
    for _, program, _ in KEPT:
        if any(name in programs.WRITES for name, *_ in program.steps):
            try:
                on_minigrad.run(program)
                ran += 1
            except (InPlaceError, SavedValueModifiedError):
                pass
    assert ran >= 12


def test_every_operation_is_drawn():
    names = {name for _, program, _ in KEPT for name, *_ in program.steps}
    assert len(set(programs.OPS) - names) < 3, set(programs.OPS) - names


def test_a_wrong_number_is_found():
    _, _, wanted = KEPT[0]
    wrong = [wanted[0] + 1e-6 * abs(wanted[0]).max() + 1e-6, *wanted[1:]]
    assert difference("float64", wrong, wanted)
