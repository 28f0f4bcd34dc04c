"""What a check drives in the learner's process: plain objects, classes, and the engine."""

import pytest

from minigrad.course.mutants import message_key
from minigrad.grader.launcher import GraderError
from minigrad.grader.live import try_function
from minigrad.grader.run import Submission, grade_exercise
from minigrad.grader.spec import Lesson
from minigrad.grader.wire import Other

PLAIN_DRIVER = """
from minigrad.course.objects import Node


def ops(mine, names):
    node = None
    for name in names:
        node = Node(name, (node,))
    found = mine.ops(node)
    return [getattr(one, "op", one) for one in found]


def counter(mine, n):
    counter = mine.Counter()
    for _ in range(n):
        counter.add()
    return counter.n
"""
ENGINE_DRIVER = """
import minigrad as mg


def second(mine, x):
    x = mg.variable(x, requires_grad=True)
    [first] = mg.gradients(mine.cube(x).sum(), [x], create_graph=True)
    return mg.gradients(first.sum(), [x])[0].numpy()
"""
OPS = """
def ops(root):
    found = []
    while root is not None:
        found.append(root)
        root = root.inputs[0]
    return found[::-1]
"""
CUBE = "def cube(x):\n    return x * x * x\n"


@pytest.fixture
def lesson(tmp_path, monkeypatch):
    folder = tmp_path / "l90_test"
    folder.mkdir()
    (folder / "driver.py").write_text(PLAIN_DRIVER)
    (folder / "engine_driver.py").write_text(ENGINE_DRIVER)
    monkeypatch.setattr("minigrad.grader.folder.CHECKS_FOLDER", tmp_path)
    return Lesson("90_test", "Drivers")


def exercise_of(lesson, name, check, **options):
    facts = {"difficulty": 1, "minutes": 1, "hints": ("a", "b", "c"), "returns": "a list"}
    exercise = lesson.exercise(name, **facts, **options)
    exercise.check(points=1)(check)
    return exercise


def asks_for_ops(t):
    """It lists the ops."""
    got = t.drive("ops", ["exp", "log"], given="log(exp(x))")
    if got != ["exp", "log"]:
        t.fail("order", "['exp', 'log']", str(got), "Which came first?")


def asks_for_count(t):
    """It counts."""
    t.close(t.drive("counter", 3, given="three times add()"), 3, attempt="Count.")


def asks_for_second(t):
    """Its second derivative is right."""
    x = t.random.standard_normal(3)
    t.close(t.drive("second", x, given="second derivative of cube"), 6 * x, attempt="Cube.")


def graded(server, exercise, source):
    from pathlib import Path

    return grade_exercise(server, exercise, Submission(Path("exercises/90_test.py"), source), 3)


def test_driver_builds_objects_and_hands_back_what_the_learner_gave(lesson, either_server):
    exercise = exercise_of(lesson, "ops", asks_for_ops)
    assert graded(either_server, exercise, OPS).passed
    wrong = graded(either_server, exercise, OPS.replace("[::-1]", ""))
    assert message_key(wrong) == "order"
    assert wrong.first_failure.message.given == "log(exp(x))"


@pytest.mark.parametrize(
    ("source", "key", "words"),
    [
        ("def ops(root):\n    raise NotImplementedError\n", "stub", "Replace the line"),
        ("def ops(root):\n    return root.nothing\n", "raised", "before the dot"),
        ("def ops(root):\n    return 3\n", "raised", "form that the docstring states"),
        ("def ops(root):\n    import minigrad.nn\n", "imports_minigrad", "engine is closed"),
    ],
)
def test_error_below_a_driver_is_told_with_the_learners_line(lesson, server, source, key, words):
    result = graded(server, exercise_of(lesson, "ops", asks_for_ops), source)
    message = result.first_failure.message
    assert message.key == key
    assert words in message.attempt
    assert "exercises/90_test.py:" in message.where
    assert "driver" not in str(message)


def test_class_can_be_an_exercise(lesson, server):
    source = (
        "class Counter:\n    def __init__(self):\n        self.n = 0\n"
        "    def add(self):\n        {}\n"
    )
    exercise = exercise_of(lesson, "Counter", asks_for_count)
    assert graded(server, exercise, source.format("self.n += 1")).passed
    stub = graded(server, exercise, source.format("raise NotImplementedError"))
    assert message_key(stub) == "stub"
    wrong = graded(server, exercise, source.format("self.n = 1"))
    assert wrong.first_failure.message.where == "in Counter, from exercises/90_test.py:1 on"


def test_engine_is_open_where_an_exercise_needs_it(lesson, either_server):
    exercise = exercise_of(lesson, "cube", asks_for_second, needs="engine")
    assert graded(either_server, exercise, CUBE).passed
    wrong = graded(either_server, exercise, "def cube(x):\n    return x * x\n")
    assert message_key(wrong) == "value"
    closed = "def cube(x):\n    import minigrad.course.seams\n    return x * x * x\n"
    assert message_key(graded(either_server, exercise, closed)) == "imports_minigrad"


@pytest.mark.parametrize(
    "source",
    [
        "import minigrad as mg\n\ndef cube(x):\n    return mg.pow(x, 3)\n",
        "from minigrad import pow\n\ndef cube(x):\n    return pow(x, 3)\n",
        (
            "import minigrad as mg\n\ndef cube(x):\n    try:\n        return mg.pow(x, 3)\n"
            "    except Exception:\n        return x * x * x\n"
        ),
        "def cube(x):\n    return x ** 3\n",
    ],
)
def test_name_that_would_be_the_answer_is_closed_and_counted(lesson, server, source):
    exercise = exercise_of(
        lesson, "cube", asks_for_second, needs="engine",
        answers=("minigrad.pow", "minigrad.Variable.__pow__"),
    )  # fmt: skip
    result = graded(server, exercise, source)
    assert message_key(result) == "answer_used"
    assert "closed here" in result.first_failure.message.attempt
    assert graded(server, exercise, CUBE).passed


def test_name_to_close_that_does_not_exist_is_the_graders_fault(lesson, server):
    exercise = exercise_of(
        lesson, "cube", asks_for_second, needs="engine", answers=("minigrad.no_such",)
    )
    with pytest.raises(GraderError, match="no_such"):
        graded(server, exercise, CUBE)


def test_function_of_this_process_is_driven_too(lesson):
    namespace = {}
    exec(OPS, namespace)
    exercise = exercise_of(lesson, "ops", asks_for_ops)
    assert try_function(exercise, namespace["ops"], 3).passed
    cube = exercise_of(lesson, "cube", asks_for_second, needs="engine")
    exec(CUBE, namespace)
    assert try_function(cube, namespace["cube"], 3).passed


def test_value_that_cannot_travel_arrives_as_its_type(lesson, server):
    def asks(t):
        """It looks."""
        got = t.drive("ops", ["exp"], given="")
        assert isinstance(got[0], Other)

    exercise = exercise_of(lesson, "ops", asks)
    assert graded(server, exercise, "def ops(root):\n    return [object()]\n").passed
