"""A cell that parses while the lesson's card does: `minigrad.parsing`."""

import ast
import re
from pathlib import Path

import pytest

from minigrad.parsing import tree_of

ROOT = Path(__file__).resolve().parents[1]
# Run by developers, in one thread.
TOOLS = {"course/mechanical.py", "course/mutants.py"}


def test_another_parser_may_come_in_between(monkeypatch):
    parse, calls = ast.parse, []

    def once_disturbed(*args):
        calls.append(args)
        if len(calls) == 1:
            raise SystemError("AST constructor recursion depth mismatch (before=174, after=42)")
        return parse(*args)

    monkeypatch.setattr(ast, "parse", once_disturbed)
    assert ast.unparse(tree_of("x = 1")) == "x = 1"
    assert len(calls) == 2


def test_what_cannot_be_parsed_stays_a_syntax_error():
    with pytest.raises(SyntaxError, match="invalid syntax"):
        tree_of("x = = 1")


def test_a_learners_process_parses_by_tree_of_alone():
    package = ROOT / "minigrad"
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"\bast\.parse\(", path.read_text(encoding="utf-8"))
    }
    assert found == {"parsing.py"} | TOOLS
