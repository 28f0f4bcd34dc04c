"""The card of lesson 12: the installed Numba says what it says, and means what it means."""

import linecache
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from numba import njit

from minigrad.course.l12_numba_errors.card import CARD, Table, markdown
from minigrad.course.l12_numba_errors.reading import read_error, types_of
from minigrad.course.mutants import grade_source
from minigrad.course.prove import solution_of
from minigrad.grader.translate_numba import KINDS, explain_numba

ROOT = Path(__file__).parents[2]
TITLES = [entry.title for entry in CARD]


def plain(text):
    """A text on one line."""
    return " ".join(text.split())


def provoked(entry):
    """What Numba raises for an entry's program."""
    name = f"<card: {entry.title}>"
    linecache.cache[name] = (len(entry.program), None, entry.program.splitlines(True), name)
    names = {"np": np, "njit": njit, "x": np.array([1.0, 2.0, 3.0]), "__name__": "__main__"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as caught:  # noqa: PT011 (the type is the entry's)
            exec(compile(entry.program, name, "exec"), names)
    return caught.value


def test_card_has_twenty_different_errors():
    assert len(CARD) == len(set(TITLES)) == 20
    assert len({entry.explained for entry in CARD}) == 20


@pytest.mark.parametrize("entry", CARD, ids=TITLES)
def test_numba_says_the_words_of_the_card_and_means_what_it_tells(entry):
    error = provoked(entry)
    assert plain(entry.says) in plain(str(error))
    kinds = [one.__name__ for one in type(error).__mro__]
    assert explain_numba(str(error), kinds) == entry.explained


@pytest.mark.parametrize("entry", CARD, ids=TITLES)
def test_entry_is_explained_by_a_row_of_its_own(entry):
    means, attempt = entry.explained
    assert "Numba could not compile it" not in means, "no row of the table knows it"
    assert attempt != explain_numba("something else", [*KINDS])[1]
    assert len(entry.program.splitlines()) <= 7


def test_card_can_be_searched_as_text():
    text = Table()._repr_markdown_()
    assert text == markdown()
    for entry in CARD:
        assert entry.title in text
        assert entry.says.strip() in text
        assert entry.explained[0] in text
    assert len(re.findall(r"^```python$", text, re.MULTILINE)) == 20


def test_error_is_shown_as_it_is_with_its_meaning_below():
    @njit
    def middle(x):
        return x[len(x) / 2]

    text = read_error(middle, np.ones(3))
    assert text.startswith("TypingError: ")
    assert "getitem(array(float64, 1d, C), float64)" in text
    assert "test_numba_card.py" in text, "the line is in it"
    assert text.endswith("That is: compiled code cannot do this: taking a float of a float64 "
                         "array of 1 dimension.")  # fmt: skip


def test_empty_list_without_a_name_is_explained():
    @njit
    def nothing():
        return np.array([])

    text = read_error(nothing)
    assert text.endswith("That is: nothing says what an empty list will hold.")


def test_what_a_module_lacks_is_explained_without_its_path():
    @njit
    def forget():
        linecache.clearcache()

    text = read_error(forget).rpartition("That is: ")[2]
    assert text == "the module linecache has nothing called clearcache in compiled code."


def test_integers_have_the_article_of_their_name():
    @njit
    def grow(x):
        total = 0
        for one in x:
            total = np.array([one])
        return total

    assert "an int64 array of 1 dimension" in read_error(grow, np.arange(3))


def test_error_of_a_driven_function_keeps_the_advice_for_it(server):
    wrong = """
@njit
def leaky(x, slope):
    return np.array([])
"""
    source = solution_of(ROOT, "12_numba_errors") + wrong
    failure = grade_source(server, "12_numba_errors", "leaky", source, 1).first_failure
    assert failure.message.key == "numba"
    assert "np.empty(0)" in failure.message.attempt


def test_what_compiles_is_told_with_its_result_and_other_errors_are_raised():
    @njit
    def half(x):
        y = 0.5
        return y * x

    assert read_error(half, 3.0) == "It compiles, and returns 1.5"
    with pytest.raises(ZeroDivisionError):
        read_error(lambda x: 1 / x, 0)
    assert types_of(half) == "x        a float\ny        a float"
