import numpy as np
import pytest

from minigrad.grader.formula import Formula
from minigrad.grader.message import LONGEST, Message, show, show_call, show_typed
from minigrad.grader.wire import Other

LONG = "word " * 200


def test_message_has_at_most_twelve_lines_however_long_its_parts():
    message = Message("k", LONG, LONG, LONG, f"file.py:3\n{LONG}", LONG)
    lines = message.lines(80)
    assert len(lines) == 12
    assert max(map(len, lines)) <= 80


def test_message_parts_come_in_the_agreed_order():
    lines = Message("k", "g", "e", "o", "w", "t").lines()
    assert [line.split() for line in lines] == [
        ["Given", "g"], ["Expected", "e"], ["Got", "o"], ["Where", "w"], ["Try", "t"]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1 / 3, "0.333333"),
        (np.float32(0.5), "0.5 (float32)"),
        (np.array([1.0, 2.5]), "[1, 2.5] shape (2,) float64"),
        (np.zeros((3, 4), np.float32), "[0, 0, 0, 0, …] shape (3, 4) float32"),
        (np.array(2), "2 shape () int64"),
        (None, "None"),
        (True, "True"),
        ("a b", "'a b'"),
        ((1, 2.0), "(1, 2)"),
        (Other("Tensor", "…"), "an object of type Tensor"),
    ],
    ids=str,
)
def test_show_is_short_and_says_shape_and_dtype(value, text):
    assert show(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0, a float"),
        (-2.0, "-2.0, a float"),
        (0.5, "0.5, a float"),
        (1e30, "1e+30, a float"),
        (np.float64(3), "3.0, a float64"),
        (1, "1, an int"),
        (True, "True, a bool"),
    ],
)
def test_a_float_that_is_whole_is_not_shown_as_an_int_beside_its_type(value, text):
    assert show_typed(value) == text


def test_show_call_spells_out_every_formula():
    fs = [Formula("sin(x)"), Formula("2*x")]
    text = show_call("chain", [fs, 0.5])
    assert text == "chain([f, g], 0.5) with f(x) = sin(x); g(x) = 2*x"


def test_show_call_has_names_for_many_formulas():
    text = show_call("chain", [[Formula("x")] * 30])
    assert text.count("(x) = x") == 30


def test_a_long_list_is_shown_as_far_as_a_message_has_room():
    class Counted(dict):
        shown = 0

        def items(self):
            for k in range(10**6):
                Counted.shown += 1
                yield k, k

    for value in (list(range(10**6)), (0.5,) * 10**6, [[[k] * 100] * 100 for k in range(100)]):
        assert len(show(value)) < 2 * LONGEST
        assert "…" in show(value)
    assert len(show(Counted(a=1))) < 2 * LONGEST
    assert Counted.shown < LONGEST
    assert show([*range(20)]) == str([*range(20)])
