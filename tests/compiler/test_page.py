"""docs/compile.md says what the code prints."""

from tests.compiler.compile_page import PATH, PROSE, text


def test_committed_page_is_fresh():
    assert PATH.read_text(encoding="utf-8") == text(), (
        "docs/compile.md is stale: python -m tests.compiler.compile_page --write"
    )


def test_prose_lines_are_short():
    assert max(map(len, PROSE.read_text(encoding="utf-8").splitlines())) <= 101
