"""Tests are chosen by names that exist: a file or function that is renamed is noticed."""

import ast
import collections
import pathlib

import pytest

from tests import planted, tiers

TESTS = pathlib.Path(__file__).parent


@pytest.mark.parametrize("path", [*tiers.EVERY, *sorted(tiers.TIMED | tiers.TURNS)])
def test_every_file_folder_or_function_that_is_named_exists(path):
    file, _, function = path.partition("::")
    assert (TESTS / file).exists()
    assert not function or f"def {function}" in (TESTS / file).read_text(encoding="utf-8")


def test_functions_that_are_left_out_exist_in_files_with_quick_tests():
    found = set()
    for path in TESTS.rglob("test_*.py"):
        if tiers.share_of(path.relative_to(TESTS.parent).as_posix()):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    assert found >= tiers.LONG


Item = collections.namedtuple("Item", ["nodeid"])


def test_ten_turns_run_every_test_and_what_takes_turns_once():
    names = [f"tests/test_docs.py::test_a[{k}]" for k in range(7)]
    in_turns = [f"tests/ops/test_devices.py::test_{f}[{k}]" for f in "abc" for k in range(25)]
    in_turns += ["tests/browser/test_learner.py::test_alone"]
    turns = [tiers.in_turn([Item(n) for n in names + in_turns], k) for k in range(10, 20)]
    count = collections.Counter(item.nodeid for turn in turns for item in turn)
    assert count == dict.fromkeys(names, 10) | dict.fromkeys(in_turns, 1)
    assert all(len(names) + 6 <= len(turn) <= len(names) + 10 for turn in turns)


def test_what_takes_turns_has_a_planted_fault_that_changes_one_place():
    assert set(planted.FAULTS) == tiers.TURNS
    for fault in planted.FAULTS.values():
        text = (TESTS.parent / fault.file).read_text(encoding="utf-8")
        assert text.count(fault.old) == 1, fault.file
        assert fault.new != fault.old
