"""What the checks of lesson 17's write_text make of trainings that begin alike."""

from typing import Any

import pytest

from minigrad.course.l17_capstone import text


class Failed(Exception):
    """The check failed; its text is the key."""


class Asked:
    """A Tester that knows no more than a check asks for here."""

    def fail(self, key, *_):
        raise Failed(key)


@pytest.mark.parametrize("is_drawn", [True, False], ids=["a head of zeros", "one seed for all"])
def test_seeds_may_begin_with_one_loss_but_not_go_on_alike(is_drawn, monkeypatch):
    def training(t, tokens, seed, steps):
        return {"steps": steps, "losses": [2.5, *[seed * is_drawn] * (steps - 1)]}

    monkeypatch.setattr(text, "training", training)
    monkeypatch.setattr(text, "topics", lambda t, n: None)
    monkeypatch.setattr(text, "recorded", lambda t, told, n: told["losses"])
    asked: Any = Asked()
    if is_drawn:
        text.few(asked)
        return
    with pytest.raises(Failed, match="same_for_all"):
        text.few(asked)
