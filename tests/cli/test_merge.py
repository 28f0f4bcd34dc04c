"""Merging a new course into a learner's file: what is theirs stays, what is not is renewed."""

import ast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minigrad.course.merge import MergeError, merge
from minigrad.course.pieces import is_unwritten, join, signature, split

STUB = '''\
"""Lesson 02."""

import numpy as np


def first(x):
    """Do the first thing."""
    raise NotImplementedError("first is yours to write")


def second(x):
    """Do the second thing."""
    raise NotImplementedError("second is yours to write")


# --- Bug hunt ---
# Find the node.

BUG = ("node", None)


def hunted(x):
    return x - 1
'''
NEW = '''\
"""Lesson 02, second edition."""

import numpy as np

from minigrad.course.objects import Node


def first(x):
    """Do the first thing, in place."""
    raise NotImplementedError("first is yours to write")


def between(x):
    """Do what is new."""
    raise NotImplementedError("between is yours to write")


def second(x, axis):
    """Do the second thing."""
    raise NotImplementedError("second is yours to write")


# --- Bug hunt ---
# Find the node, and say why.

BUG = ("node", None)


def hunted(x):
    return x - 2


def last(x):
    raise NotImplementedError("last is yours to write")
'''
MINE = '''\
"""Lesson 02."""

import math

import numpy as np


def helper(x):  # mine
    return math.sqrt(x)


def first(x):
    """Do the first thing."""
    raise NotImplementedError("first is yours to write")


def second(x):
    """Do the second thing."""
    return helper(x)
    # another way: x ** 0.5


# --- Bug hunt ---
# Find the node.

BUG = ("node", 7)


def hunted(x):
    return x - 1


print("debugging")
'''


def names(text):
    return [piece.name for piece in split(text)[0] if piece.kind == "named"]


def test_merge_keeps_what_is_the_learners_and_renews_the_rest():
    merged = merge(STUB, MINE, NEW)
    text = merged.text
    assert '"""Lesson 02, second edition."""' in text
    assert "import math\n" in text
    assert "from minigrad.course.objects import Node\n" in text
    assert "def helper(x):  # mine\n    return math.sqrt(x)\n" in text
    assert '"""Do the first thing, in place."""' in text
    assert "def second(x):\n" in text
    assert "    return helper(x)\n    # another way: x ** 0.5\n" in text
    assert '# Find the node, and say why.\n\nBUG = ("node", 7)\n' in text
    assert "return x - 2\n" in text
    assert 'print("debugging")\n' in text
    assert names(text) == ["helper", "first", "between", "second", "BUG", "hunted", "last"]


def test_merge_reports_a_changed_signature_and_forces_nothing():
    notes = merge(STUB, MINE, NEW).notes
    assert "SIGNATURE of second was second(x), is now second(x, axis); yours kept" in notes
    assert "between is new" in notes
    assert not any("BUG" in note for note in notes)


def test_merge_says_nothing_of_a_signature_that_the_learner_has_changed_already():
    mine = STUB.replace("second(x):", "second(x, axis):")
    assert not any("SIGNATURE" in note for note in merge(STUB, mine, NEW).notes)


def test_merge_of_an_untouched_file_is_the_new_stub():
    assert merge(STUB, STUB, NEW).text == NEW


def test_merge_with_the_same_course_changes_nothing():
    assert merge(STUB, MINE, STUB).text == MINE
    assert merge(STUB, MINE, STUB).notes == []


def test_merge_again_after_an_interruption_changes_nothing():
    once = merge(STUB, MINE, NEW).text
    assert merge(STUB, once, NEW).text == once  # the new stub was not remembered yet
    assert merge(NEW, once, NEW).text == once
    assert merge(NEW, once, NEW).notes == []


def test_function_that_left_the_course_goes_only_if_it_was_not_begun_and_is_not_used():
    new = NEW.replace(NEW[NEW.index("def first") : NEW.index("def between")], "")
    untouched = merge(STUB, STUB, new)
    assert "first" not in names(untouched.text)
    assert "first left the course, and you had not begun it" in untouched.notes
    begun = STUB.replace('raise NotImplementedError("first is yours to write")', "return x")
    assert "first" in names(merge(STUB, begun, new).text)
    used = STUB.replace('raise NotImplementedError("second is yours to write")', "return first(x)")
    merged = merge(STUB, used, new)
    assert "first" in names(merged.text)
    assert "first left the course; it is kept, as your code uses it" in merged.notes


def test_imports_are_never_taken_away():
    new = NEW.replace("import numpy as np\n", "")
    assert "import numpy as np" in merge(STUB, MINE, new).text


def test_second_definition_of_a_name_stays_the_last():
    mine = STUB + "\n\ndef first(x):\n    return 3\n"
    text = merge(STUB, mine, NEW).text
    assert names(text).count("first") == 2
    assert text.rindex("return 3") > text.rindex("in place")


def test_deleted_function_is_given_back_and_a_deleted_statement_is_not():
    stub = STUB + "\nprint('loaded')\n"
    mine = STUB.replace(STUB[STUB.index("def second") : STUB.index("# --- Bug")], "")
    text = merge(stub, mine, NEW + "\nprint('loaded')\n").text
    assert "def second(x, axis)" in text
    assert "loaded" not in text


def test_merge_without_the_stub_keeps_all_that_is_written():
    merged = merge(None, MINE, NEW)
    assert "return helper(x)" in merged.text
    assert 'BUG = ("node", 7)' in merged.text
    assert "in place" in merged.text  # `first` does nothing but raise, so nobody began it
    assert "return x - 1" in merged.text
    assert "hunted differs from the new stub; yours is kept" in merged.notes


def test_file_that_is_no_python_is_refused_with_its_line():
    with pytest.raises(MergeError, match=r"line 2"):
        merge(STUB, "x = 1\ndef f(:\n", NEW)
    with pytest.raises(MergeError):
        merge(STUB, "x = 1\0", NEW)


def test_class_is_one_piece_and_its_methods_are_its_signature():
    stub = "class A(Base):\n    def f(self, x):\n        raise NotImplementedError\n"
    node = ast.parse(stub).body[0]
    assert signature(node) == "A(Base); f(self, x)"
    assert is_unwritten(node)
    mine = stub.replace("raise NotImplementedError", "return x")
    new = stub.replace("self, x", "self, x, y")
    merged = merge(stub, mine, new)
    assert merged.text == mine
    changed = "SIGNATURE of A was A(Base); f(self, x), is now A(Base); f(self, x, y); yours kept"
    assert merged.notes == [changed]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n",
        "a = 1; b = 2\n",
        "a = 1; b = (\n 2)\n\n\nc = 3\n# end\n",
        MINE,
        NEW,
    ],
)
def test_pieces_make_the_file_again(text):
    assert join(*split(text)).strip() == text.strip()


BODIES = ["raise NotImplementedError", "return x", "return 2 * x  # two", "y = x\n    return y"]
functions = st.dictionaries(
    st.sampled_from("abcdefgh"), st.sampled_from(BODIES), min_size=1, max_size=6
)


def write(bodies, order=None):
    parts = [f"def {name}(x):\n    {bodies[name]}\n" for name in order or sorted(bodies)]
    return "import math\n\n\n" + "\n\n".join(parts)


@settings(suppress_health_check=[HealthCheck.too_slow])  # the first draws, on a busy machine
@given(functions, functions, functions, st.randoms(use_true_random=False))
def test_merge_of_any_three_versions(stub, changes, new, random):
    mine = stub | changes
    order = sorted(mine)
    random.shuffle(order)
    text = merge(write(stub), write(mine, order), write(new)).text
    pieces = {piece.name: piece.plain for piece in split(text)[0] if piece.kind == "named"}
    for name, body in mine.items():
        if stub.get(name) != body:  # the learner's
            assert pieces[name] == f"def {name}(x):\n    {body}"
        elif name in new:
            assert pieces[name] == f"def {name}(x):\n    {new[name]}"
    assert {*new} <= {*pieces}
    assert len(names(text)) == len({*names(text)})
    assert merge(write(stub), text, write(new)).text == text
    assert merge(write(new), text, write(new)).text == text
