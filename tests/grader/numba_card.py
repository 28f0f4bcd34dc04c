"""The page `docs/generated/numba_errors.md`: the card of lesson 12."""

from minigrad.course.l12_numba_errors.card import markdown
from tests.pages import NOTE

ABOUT = """What people meet when a function does not compile: a program that provokes it, Numba's
own words, what they mean, and what to do. Search for the words of your message. `x` is a float64
array of three elements. The card also closes lesson 12, and `tests/grader/test_numba_card.py`
provokes each error with the Numba that is installed."""


def text():
    """The page."""
    return "\n\n".join(["# Twenty errors of Numba's", NOTE, ABOUT, markdown()])
