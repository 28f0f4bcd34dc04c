"""Numba's and NumPy's errors in a learner's code: one sentence about the learner's own line."""

from pathlib import Path

import pytest

from minigrad.course.mutants import grade_source, message_key
from minigrad.grader.folder import load_lesson
from minigrad.grader.live import try_function
from minigrad.grader.report import Style, text
from minigrad.grader.result import Result

HEAD = "import numpy as np\nfrom numba import njit\n\n\n"
# The body of a compiled function g(x) of a float, provoked for real: words of Got, of Where.
NUMBA = {
    "two types": ("if x > 0:\n        y = 1.0\n    else:\n        y = 'a'\n    return y",
                  "y would be a float on one path and a text on another", "return y"),
    "unknown attribute": ("return np.ones(3).cumsum2()",
                          "a float64 array of 1 dimension has nothing called cumsum2", "cumsum2"),
    "unsupported function": ("return np.einsum('i,i', np.ones(3), np.ones(3))",
                             "numpy.einsum, which Numba cannot compile", "einsum"),
    "undefined name": ("return x + nowhere", "the name nowhere is not defined", ""),
    "python function": ("return plain(x)", "plain is an ordinary Python function", "plain(x)"),
    "python object": ("return thing.value * x", "thing, of type Thing, cannot be used", "thing"),
    "text into array": ("a = np.ones(3)\n    a[0] = 'a'\n    return a[0]",
                        "writing a text at", "a[0] = 'a'"),
    "float as index": ("a = np.ones(3)\n    return a[x]", "taking a float of", "return a[x]"),
    "keepdims": ("a = np.ones((2, 2))\n    return a.sum(axis=1, keepdims=True)[0, 0]",
                 "does not take the argument keepdims", "keepdims"),
    "with open": ("with open('a') as f:\n        return 1.0",
                  "does not compile this construct: with", ""),
    "other with": ("with np.errstate(all='ignore'):\n        return x",
                   "does not compile this with block", "errstate"),
    "format": ("return len(f'{x:.2f}') * 1.0", "Numba does not compile this: format spec", ""),
    "stored exception": ("try:\n        return 1 / x\n    except ZeroDivisionError as e:\n"
                         "        return 0.0", "Numba does not compile this: Exception object", ""),
    "mixed list": ("y = [1, 'a']\n    y.append(x)\n    return y[0]",
                   "changes no list of values of different types: .append()", "y.append(x)"),
    "reshape of a view": ("return np.ones((4, 4))[::2, ::2].reshape(4)[0] * x",
                          "reshape() of an array that may have any strides", "reshape"),
    "named argument": ("a = np.ones(3)\n    return np.divide(a, a, out=a, where=a > 0)[0]",
                       "Numba's divide does not take an argument that is given by name", ""),
    "del": ("y = x\n    del y\n    return x", "does not compile del", "del y"),
    "mixed dict": ("return {'a': x, 'b': 'c'}", "returns what Python cannot take", ""),
}  # fmt: skip
# The body of the learner's own function, in plain NumPy.
NUMPY = {
    "broadcast": ("np.ones((2, 3)) + np.ones((2, 4))", "shapes (2,3) and (2,4) were combined"),
    "matmul": ("np.ones((2, 3)) @ np.ones((2, 3))", "inner sizes differ: 3 on the left, 2 on the"),
    "dot": ("np.dot(np.ones((2, 3)), np.ones((2, 3)))", "(2,3) and (2,3), whose inner sizes"),
    "truth": ("1 if np.ones(3) > 0 else 2", "was asked whether it is true"),
    "index": ("np.ones((2, 3))[0, 3]", "index 3 along axis 1, which has only 3 entries"),
    "index of none": ("np.ones((0, 3))[0]", "index 0 along axis 0, which has no entries"),
    "too many indices": ("np.ones(3)[0, 0]", "2 indices for an array of 1 dimension"),
    "no axes": ("np.ones(())[:]", "an index into an array of shape (), which has no axes"),
    "locked": ("np.frombuffer(bytes(8)).setflags(write=True)", "cannot be unlocked"),
    "number": ("(lambda x: [0 for x[...] in [1]])(np.ones(()) * 2)", "as if it were an array"),
    "largest of none": ("np.ones(0).max()", "the maximum of an array without entries"),
    "float index": ("np.ones(3)[1.0]", "an index that is no integer"),
    "reshape": ("np.ones(6).reshape(4, 2)", "6 entries were to be laid out in shape (4,2)"),
    "axis": ("np.ones((2, 3)).sum(axis=2)", "axis 2 of an array of 2 dimension"),
    "assign": ("np.ones(3).__setitem__(slice(None), np.ones(4))", "shape (4,) were written into"),
    "read-only": ("np.broadcast_to(1.0, 3).__setitem__(0, 2)", "may only be read"),
    "ragged": ("np.array([[1], [1, 2]])", "rows of different lengths"),
    "concatenate": ("np.concatenate([np.ones((2, 3)), np.ones((2, 4))])", "other sizes differ"),
    "join dimensions": ("np.concatenate([np.ones(3), np.ones((1, 3))])", "different numbers of"),
    "in-place cast": ("np.ones(3, int).__iadd__(0.5)", "result is float64, into an array of int64"),
    "one number": ("float(np.ones(3))", "where one number is needed"),
    "attribute": ("np.ones(3).softmax()", "arrays have nothing called softmax"),
    "no such function": ("np.softmax(x)", "NumPy has nothing called np.softmax"),
}  # fmt: skip


def graded(server, source):
    return grade_source(server, "00_start", "central_difference", HEAD + source, 3)


def compiled(body):
    return (
        "def plain(x):\n    return x\n\n\nclass Thing:\n    value = 1.0\n\n\nthing = Thing()\n\n\n"
        f"@njit\ndef g(x):\n    {body}\n\n\n"
        "def central_difference(f, x, eps):\n    return g(float(x))\n"
    )


@pytest.mark.parametrize("case", NUMBA)
def test_numba_error_is_one_sentence_about_the_learners_line(case, server):
    body, words, line = NUMBA[case]
    message = graded(server, compiled(body)).first_failure.message
    assert message.key == "numba"
    assert words in message.got
    assert message.where.startswith("exercises/00_start.py:")
    assert line in message.where
    shown = str(message)
    assert all(word not in shown for word in ("pipeline", "nopython", "site-packages", "During:"))
    assert len(message.lines()) <= 12


@pytest.mark.parametrize("case", NUMPY)
def test_numpy_error_is_one_sentence_about_the_learners_line(case, server):
    expression, words = NUMPY[case]
    source = f"def central_difference(f, x, eps):\n    return {expression}\n"
    message = graded(server, source).first_failure.message
    assert message.key == "raised"
    assert words in message.got
    assert f"return {expression}" in message.where
    assert len(message.lines()) <= 12


def test_list_of_lists_for_compiled_code_is_told(server):
    source = "@njit\ndef g(x):\n    return x[0][0]\n\n\n" + (
        "def central_difference(f, x, eps):\n    return g([[1.0], [2.0]])\n"
    )
    message = graded(server, source).first_failure.message
    assert message.key == "numba"
    assert "list of lists" in message.got
    assert "np.array(rows)" in message.attempt


def test_numba_error_that_no_row_knows_is_still_one_line_without_the_pipeline(server):
    body = "yield x"
    message = graded(server, compiled(body)).first_failure.message
    assert "pipeline" not in str(message)


def test_full_text_is_shown_on_demand_and_never_in_the_json(server):
    result = Result(3, [graded(server, compiled("return x + nowhere"))])
    assert "nopython" not in text(result, Style(plain=True))
    assert "nopython frontend" in text(result, Style(plain=True), full=True)
    assert "nopython" not in str(result.as_dict())
    assert message_key(result.exercises[0]) == "numba"


@pytest.mark.parametrize(
    ("expression", "said", "attempt"),
    [
        ("{'a': 1}['b']", "KeyError: 'b'", "Which key"),
        ("{}[id(f)]", "KeyError: ", "comes from id(…)"),
        ("x.nothing", "has no attribute 'nothing'", "before the dot"),
        ("[1][3]", "list index out of range", "How long"),
        ("1 / 0", "division by zero", "Which divisor"),
        ("nowhere + 1", "name 'nowhere' is not defined", "spelled"),
        ("f(1, 2, 3)", "positional argument", "number of arguments"),
        ("int('a')", "invalid literal", "one is not what you think"),
    ],
)
def test_python_error_has_a_thing_to_try(expression, said, attempt, server):
    source = f"def central_difference(f, x, eps):\n    return {expression}\n"
    message = graded(server, source).first_failure.message
    assert message.key == "raised"
    assert said in message.got
    assert attempt in message.attempt


@pytest.mark.parametrize(
    ("stem", "exercise", "old", "new", "wanted"),
    [
        ("09_adam", "adam_step",
         "def adam_step(\n    p, g, state, learning_rate=1e-3, betas=(0.9, 0.999), eps=1e-8\n)",
         "def adam_step(p, g, state, lr=1e-3)",
         "(p, g, state, learning_rate=0.001, "),
        ("08_optimizer_state", "SGD", "def step(self)", "def step(self, closure)", "(self)"),
        ("08_optimizer_state", "SGD", "def __init__(", "def begin(", "(self, parameters, "),
        ("02_graph", "topo_order", "(root)", "(root, seen)", "(root)"),
        ("00_start", "hello", "hello()", "hello(name)", "()"),
        ("00_start", "slope", "def slope(f, x)", "slope = lambda f: 1\ndef other(f, x)", "(f, x)"),
        ("00_start", "slope", "def slope(f, x)", "from numba import njit\n@njit\ndef slope(f)",
         "(f, x)"),
    ],
)  # fmt: skip
def test_parameters_other_than_the_stubs_are_told(stem, exercise, old, new, wanted, server):
    source = (Path(__file__).parents[2] / "solutions" / f"{stem}.py").read_text()
    assert old in source
    source = source.replace(old, new, 1)
    message = grade_source(server, stem, exercise, source, 3).first_failure.message
    assert message.key == "signature"
    assert message.expected.startswith(f"the parameters of the stub, {wanted}")
    assert message.got.startswith("(")
    assert "The parameters of `def` are not those of the stub" in message.attempt
    assert f"exercises/{stem}.py:" in message.where
    assert len(message.lines()) <= 12


def test_parameters_of_a_function_of_this_session_are_told():
    def central_difference(f, x):
        return f(x)

    result = try_function(
        load_lesson("00_start").exercises["central_difference"], central_difference, 3
    )
    assert result.first_failure.message.key == "signature"


@pytest.mark.parametrize("body", ["return f()", "return central_difference(f)", "return other(1)"])
def test_a_call_of_the_learners_own_that_does_not_fit_is_its_own_error(body, server):
    source = f"def other():\n    return 1\n\n\ndef central_difference(f, x, eps):\n    {body}\n"
    message = graded(server, source).first_failure.message
    assert message.key == "raised"


def test_step_that_is_a_float_is_shown_as_one(server):
    source = (Path(__file__).parents[2] / "solutions" / "09_adam.py").read_text()
    assert "t = state.get" in source
    source = source.replace("t = state.get", "t = 1.0 * state.get")
    message = grade_source(server, "09_adam", "adam_step", source, 3).first_failure.message
    assert (message.key, message.got.partition(" = ")[2]) == ("step_form", "1.0, a float")


def test_mixed_tabs_and_spaces_are_named(server):
    source = "def central_difference(f, x, eps):\n\ty = 1\n        return y\n"
    message = graded(server, source).first_failure.message
    assert message.key == "syntax"
    assert "tabs" in message.attempt
    assert "spaces" in message.attempt
    assert "exercises/00_start.py:" in message.where
