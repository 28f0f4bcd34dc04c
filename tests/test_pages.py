"""The generated pages of docs/ are what is generated."""

import difflib
import inspect

import pytest

from tests import api, pages


@pytest.mark.parametrize("page", pages.MAKERS)
def test_page_is_fresh(page):
    assert pages.is_fresh(page, pages.text(page)), f"docs/{page} is stale: python -m tests.pages"


def test_every_page_in_the_folder_is_generated_and_says_so():
    found = {path.relative_to(pages.DOCS).as_posix(): path for path in pages.DOCS.rglob("*.md")}
    made = {page for page in found if page.startswith("generated/")}
    assert made - {"generated/mutants.md"} <= set(pages.MAKERS)  # that one takes minutes
    for page in pages.MAKERS:
        assert "python -m tests.pages" in found[page].read_text(encoding="utf-8"), page


@pytest.mark.parametrize("page", api.API)
def test_everything_public_has_a_docstring(page):
    found = [entry for entry in api.entries(page) if not entry.value.__doc__]
    for entry in api.entries(page):
        members = api.members(entry.value) if inspect.isclass(entry.value) else {}
        found += [(entry.shown, name) for name, member in members.items() if not member.__doc__]
    assert found == []


def test_docstrings_of_operations_say_shapes():
    functions = [e for e in api.entries("minigrad") if inspect.isfunction(e.value)]
    silent = {e.name for e in functions if ".ops." in e.home and "->" not in e.value.__doc__}
    assert silent == {  # no operations, and their arguments are no arrays
        "get_default_device", "set_default_device", "kernel",
        "manual_seed", "get_rng_state", "set_rng_state",
    }  # fmt: skip
    assert len(functions) > 100


@pytest.mark.parametrize("prose", ["compiler/compile_page.md", "simt/page.md"])
def test_prose_with_holes_has_short_lines(prose):
    text = (pages.DOCS.parent / "tests" / prose).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("|")]  # a row cannot break
    assert max(map(len, lines)) <= 101


def test_command_writes_what_is_stale_and_nothing_else(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pages, "DOCS", tmp_path)
    assert pages.main(["--check", "attacks"]) == 1
    assert list(tmp_path.iterdir()) == []
    assert pages.main(["attacks"]) == 0
    assert [path.name for path in tmp_path.rglob("*.md")] == ["attacks.md"]
    assert pages.main(["--check", "attacks"]) == 0
    said = ["docs/generated/attacks.md is not fresh", "docs/generated/attacks.md is written"]
    assert capsys.readouterr().out.splitlines() == said


def test_command_writes_pictures_that_are_stale_or_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pages, "DOCS", tmp_path)
    assert pages.main(["tour"]) == 0
    assert pages.main(["--check", "tour"]) == 0
    picture = tmp_path / "pictures" / "tour" / "pool.svg"
    fresh = picture.read_bytes()
    picture.write_bytes(b"another")
    assert pages.main(["--check", "tour"]) == 1
    picture.unlink()
    assert pages.main(["tour"]) == 0
    assert picture.read_bytes() == fresh
    said = ["docs/tour.md is written", "docs/tour.md is not fresh", "docs/tour.md is written"]
    assert capsys.readouterr().out.splitlines() == said


def test_a_picture_shows_the_same_with_other_last_digits():
    assert pages.shows_the_same(b"<text>= 0.710656", b"<text>= 0.710657")
    assert not pages.shows_the_same(b"<text>= 0.710656", b"<text>= 0.711656")
    assert not pages.shows_the_same(b'x="18.1"', b'x="18.2"')


def test_a_new_name_is_one_line_of_the_index(monkeypatch):
    before, entries = api.text("README"), api.entries
    new = api.Entry("mg.nn.Middle", api.Entry, "minigrad.nn.middle")
    more = {"nn": [*entries("nn"), new]}
    monkeypatch.setattr(api, "entries", lambda page: more.get(page, entries(page)))
    changed = difflib.ndiff(before.splitlines(), api.text("README").splitlines())
    assert [line for line in changed if line[0] in "+-"] == ["+ [Middle](nn.md#middle),"]


def test_a_hole_that_nothing_fills_is_an_error():
    assert pages.filled("a\n{one}\nb {two}", one=1, two=2) == "a\n1\nb 2"
    with pytest.raises(AssertionError, match="other"):
        pages.filled("{one}\n{other}\n", one=1)
