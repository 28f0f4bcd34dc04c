from tests.simt.page import PATH, text


def test_the_page_is_fresh():
    assert PATH.read_text(encoding="utf-8") == text(), (
        "docs/simt.md is stale: python -m tests.simt.page --write"
    )
