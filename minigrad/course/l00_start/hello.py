"""The first exercise: read a failing check."""

from __future__ import annotations

from minigrad.course.l00_start import lesson
from minigrad.grader.message import show, show_typed
from minigrad.grader.tester import KEPT, Tester

hello = lesson.exercise(
    "hello",
    difficulty=1,
    minutes=2,
    returns="a text",
    hints=(
        "Read Expected and Got letter by letter.",
        "Two letters stand in the wrong order.",
        "g-r-a, not g-a-r.",
    ),
)
GREETING = "hello, gradients"


@hello.check(points=1)
def text(t: Tester) -> None:
    """It returns the greeting, exactly, each time."""
    got = t.call("hello")
    if got is None:
        t.none(show(GREETING))
    if not isinstance(got, str):
        t.fail(
            "type",
            f"{show(GREETING)}, a str",
            show_typed(got),
            "Return a text in quotes.",
        )
    if got == GREETING:
        again = [t.call("hello") for _ in range(2)]
        for got in again:
            if got != GREETING:
                t.fail("kept", show(GREETING), f"{show(got)}, when called again", KEPT)
        return
    if got.strip() == GREETING:
        t.fail("spaces", show(GREETING), show(got), "Is there a blank or a line end too many?")
    if got.lower() == GREETING:
        t.fail("capitals", show(GREETING), show(got), "Capital letters are other letters.")
    if sorted(got) == sorted(GREETING):
        t.fail(
            "order",
            show(GREETING),
            show(got),
            "The letters are all there. Compare their order, one word at a time.",
        )
    if letters(got) == letters(GREETING):
        t.fail("punctuation", show(GREETING), show(got), "The words are right. And between them?")
    t.fail("value", show(GREETING), show(got), "Compare the two texts letter by letter.")


def letters(value: str) -> str:
    """Return only the letters."""
    return "".join(letter for letter in value if letter.isalpha())
