"""What a grade is remembered for: an exercise with what it leans on."""

import pytest

from minigrad.grader.fingerprint import fingerprint, used

FILE = '''"""A file."""

import numpy as np

SCALE = 2


def helper(x):
    return SCALE * x


def first(x):
    return x + 1


def second(x):
    return helper(first(x))


def third(x):
    return 3 * x


class Fourth:
    def run(self):
        return third(1)


def table():
    return {"first": first}


def fifth(name):
    return table()[name]
'''
NAMES = ("first", "second", "third", "Fourth", "fifth")


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("x + 1", "x + 2", {"first", "second", "fifth"}),
        ("3 * x", "x * 3", {"third", "Fourth"}),
        ("third(1)", "third(2)", {"Fourth"}),
        ("SCALE = 2", "SCALE = 3", set(NAMES)),
        ("SCALE * x", "x", set(NAMES)),
        ("import numpy as np", "import numpy", set(NAMES)),
        ("    return x + 1", "    # a thought\n    return x + 1  # another", set()),
        ("\n\n\nclass", "\n\n\n\nclass", set()),
        ("table()[name]", "third(name)", {"fifth"}),
    ],
)
def test_change_counts_for_what_leans_on_it(old, new, changed):
    assert FILE.count(old) == 1
    after = FILE.replace(old, new)
    found = {
        name for name in NAMES if fingerprint(FILE, name, NAMES) != fingerprint(after, name, NAMES)
    }
    assert found == changed


def test_second_definition_of_an_exercise_counts():
    again = f"{FILE}\n\ndef first(x):\n    return 0\n"
    assert fingerprint(again, "first", NAMES) != fingerprint(FILE, "first", NAMES)
    assert fingerprint(again, "third", NAMES) == fingerprint(FILE, "third", NAMES)


def test_mention_by_name_as_text_counts():
    asked = FILE.replace("table()[name]", "globals()['third'](name)")
    after = asked.replace("3 * x", "x * 3")
    assert fingerprint(asked, "fifth", NAMES) != fingerprint(after, "fifth", NAMES)


@pytest.mark.parametrize("source", ["def f(:\n", "x = '\0'\n", "(" * 5000])
def test_file_that_is_no_python_stands_for_itself(source):
    assert fingerprint(source, "f", ("f",)) == fingerprint(source, "g", ("f", "g"))
    assert fingerprint(source, "f", ("f",)) != fingerprint(source + "#", "f", ("f",))


def test_exercises_that_one_mentions_are_found_through_helpers():
    found = {name: used(FILE, name, NAMES) for name in NAMES}
    assert found.pop("second") == ["first"]
    assert found.pop("Fourth") == ["third"]
    assert found.pop("fifth") == ["first"]
    assert found == {"first": [], "third": []}
    assert used("def f(:", "f", ("f", "g")) == []
    recursive = "def f(x):\n    return f(x)\n\n\ntable = {'g': g}\n"
    assert used(recursive, "f", ("f", "g")) == []
