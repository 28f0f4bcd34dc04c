"""The card that grades what is saved."""

import threading
import time
from pathlib import Path

import pytest

from minigrad.course.live import LiveCard
from minigrad.course.stubs import cut
from minigrad.grader import progress
from minigrad.grader.folder import find_folder

ROOT = Path(__file__).parents[2]


@pytest.fixture
def file(tmp_path, monkeypatch):
    (tmp_path / "exercises").mkdir()
    path = tmp_path / "exercises" / "00_start.py"
    path.write_text(cut((ROOT / "solutions" / path.name).read_text(), path.name))
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def card(file):
    """A card that follows the file."""
    card = LiveCard(find_folder(), "00_start")
    thread = threading.Thread(target=card.follow)
    thread.start()
    yield card
    card.ended.set()
    thread.join()


def wait_for(card, text):
    end = time.monotonic() + 20
    while text not in repr(card):
        assert time.monotonic() < end, repr(card)
        time.sleep(0.05)


def replace(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_card_grades_each_save_and_counts_the_points(card, file):
    wait_for(card, "0 of 12 points in lesson 00: · hello  · central_difference")
    replace(file, "gardients", "gradientz")
    wait_for(card, "Got       'hello, gradientz'")
    wait_for(card, "✗ hello")
    replace(file, "gradientz", "gradients")
    wait_for(card, "everything passes")
    wait_for(card, "1 of 12 points in lesson 00: ✓ hello  · central_difference")
    assert progress.load(file.parents[1] / ".minigrad")["exercises"]["00.hello"]["points"] == 1
    for label in ("Given", "Expected"):
        assert label not in repr(card)


def test_card_counts_the_points_that_others_graded(card, file, monkeypatch):
    file.write_text((ROOT / "solutions" / file.name).read_text())
    wait_for(card, "12 of 12 points")
    progress.update(card.folder.state, lambda data: data["exercises"].clear())
    wait_for(card, "0 of 12 points in lesson 00: · hello")


def test_card_leads_to_the_next_lesson(file, monkeypatch):
    for name in ("01_chain_rule.ipynb", "index.ipynb"):
        (file.parent / name).touch()
    monkeypatch.chdir(file.parent)
    shown = LiveCard(find_folder(), "00_start")._repr_html_()
    assert '<a href="01_chain_rule.ipynb">lesson 01: ' in shown
    assert '<a href="index.ipynb">all lessons</a>' in shown


def test_card_gives_the_hints_of_the_exercise_in_sight(file):
    card = LiveCard(find_folder(), "00_start")
    for number in (1, 2):
        card.give_hint()
        assert f"Hint {number} of 3 for 00.hello" in repr(card)
        assert f"Hint {number} of 3 for 00.hello" in card._repr_html_()
    assert progress.load(file.parents[1] / ".minigrad")["exercises"]["00.hello"]["hints"] == 2


def test_card_whose_watch_fails_says_so(file, monkeypatch):
    card = LiveCard(find_folder(), "00_start")

    def fail(self):
        raise OSError("no such disk")
        yield

    monkeypatch.setattr("minigrad.course.live.Watch.step", fail)
    card.follow()
    assert "this card has stopped: no such disk; run its cell again" in repr(card)
