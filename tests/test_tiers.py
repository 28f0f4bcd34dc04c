"""The quick tests are chosen by names that exist: a file or function that is renamed is noticed."""

import ast
import pathlib

import pytest

from tests import tiers

TESTS = pathlib.Path(__file__).parent


@pytest.mark.parametrize("path", tiers.EVERY)
def test_every_file_folder_or_function_with_quick_tests_exists(path):
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
