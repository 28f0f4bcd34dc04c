"""A message names a mistake only if the learner's answers to all inputs of the check are its."""

from itertools import count

import numpy as np

from minigrad.grader.live import try_function
from minigrad.grader.message import digits_to_tell, show
from minigrad.grader.spec import Lesson
from minigrad.grader.tester import Mistake


def square_exercise(values=(2.0, 3.0, 5.0)):
    """An exercise that asks for x * x and knows who doubles."""
    lesson = Lesson("98_confirmed", "for tests")
    square = lesson.exercise(
        "square", difficulty=1, minutes=1, hints=("", "", ""), returns="a number"
    )

    @square.check(points=1)
    def squares(t):
        """It squares."""
        for x in values:
            got = t.call("square", x)
            doubled = Mistake("doubled", 2 * x, "That is twice x.")
            t.close(got, x * x, attempt="Square 3 by hand.", mistakes=[doubled])

    return square


def key_of(function, **options):
    failure = try_function(square_exercise(**options), function, seed=1).first_failure
    return failure.message.key if failure else None


def test_a_mistake_that_all_answers_show_is_named():
    def square(x):
        return 2 * x

    assert key_of(square) == "doubled"


def test_a_named_mistake_shows_the_digits_that_differ():
    lesson = Lesson("98_confirmed", "for tests")
    square = lesson.exercise(
        "square", difficulty=1, minutes=1, hints=("", "", ""), returns="a number"
    )

    @square.mistake("eps", "What is added there?")
    def _(x):
        return x * x + 1e-7 * x

    @square.check(points=1)
    def squares(t):
        """It squares."""
        for x in (2.0, 3.0):
            t.compare(x * x, x, rtol=1e-10, attempt="Square 3 by hand.")

    failure = try_function(square, lambda x: x * x + 1e-7 * x, seed=1).first_failure
    assert failure is not None
    assert failure.message is not None
    assert failure.message.key == "eps"
    assert (failure.message.expected, failure.message.got) == ("4", "4.0000002")


def test_a_mistake_that_one_answer_happens_to_fit_is_not_named():
    def square(x):
        return x + 3  # 3 is doubled to 6

    assert key_of(square, values=(3.0, 5.0)) == "value"


def test_a_right_answer_elsewhere_speaks_against_a_mistake():
    def square(x):
        return 6.0 if x == 3 else x * x

    assert key_of(square) == "value"


def test_one_input_is_not_enough():
    def square(x):
        return 2 * x

    assert key_of(square, values=(3.0,)) == "value"
    assert key_of(square, values=(3.0, 3.0)) == "value"


def test_another_kind_of_answer_to_a_later_input_does_not_stop_the_grader():
    answers = count()

    def square(x):
        return 2 * x if next(answers) == 0 else None

    assert key_of(square, values=(3.0, 4.0)) == "value"


def test_what_is_printed_while_a_mistake_is_confirmed_is_not_shown(capsys):
    def square(x):
        print("squaring")  # noqa: T201, what a learner prints
        return 2 * x

    assert key_of(square, values=(3.0, 4.0)) == "doubled"
    assert capsys.readouterr().out == "squaring\n"


def test_numbers_that_differ_are_shown_as_different():
    for got, expected in ((100.0, 100.00001), (np.ones(2), np.ones(2) + 1e-8), (1.0, 2.0)):
        digits = digits_to_tell(got, expected)
        assert show(got, digits) != show(expected, digits)
        failure = try_function(
            square_exercise(values=(10.0,)), lambda x: x * x + 1e-3, 1
        ).first_failure
    assert failure.message.expected == "100"
    assert failure.message.got == "100.001"
