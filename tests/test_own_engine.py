"""The learner's own engine of lesson 04: what it is put together from, and that it is right."""

import ast
import shutil
from pathlib import Path

import numpy as np
import pytest

from minigrad.course.l04_accumulation import frame
from minigrad.course.l04_accumulation.assemble import (
    FRAME,
    NotAlone,
    alone,
    assemble,
    lines_of_code,
)

ROOT = Path(__file__).parents[1]


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A learner's folder whose exercises are solved."""
    shutil.copytree(ROOT / "solutions", tmp_path / "exercises")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def problem():
    """A few random rows and labels, and random parameters."""
    random = np.random.default_rng(0)
    flat = random.standard_normal(sum(int(np.prod(shape)) for shape in frame.SHAPES)) / 8
    return flat, random.standard_normal((30, 64)), random.integers(0, 10, 30)


def imported(text):
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {one.name.partition(".")[0] for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def load(path):
    names = {"__name__": "my_engine"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    return names


def test_frame_imports_nothing_but_numpy_and_sys():
    assert imported(FRAME.read_text(encoding="utf-8")) == {"sys", "numpy"}


def test_gradient_of_the_frame_agrees_with_differences(problem):
    flat, x, y = problem
    direction = np.random.default_rng(1).standard_normal(flat.shape)

    def loss(step):
        leaves = map(frame.Variable, frame.cut(flat + step * direction))
        return float(frame.cross_entropy(frame.network(frame.Variable(x), *leaves), y).data)

    numeric = (loss(1e-6) - loss(-1e-6)) / 2e-6
    assert frame.mean_gradient(flat, x, y) @ direction == pytest.approx(numeric, rel=1e-6)


def test_cycle_is_refused():
    a, b = frame.parameter([1.0]), frame.parameter([2.0])
    c = a * b
    c.node.inputs = (c.node, b.node)
    with pytest.raises(ValueError, match="a cycle: mul -> mul"):
        frame.backward(c)


def test_assembled_engine_has_the_learners_functions_and_the_same_losses(course, problem):
    path, parts = assemble()
    assert path == course / "my_engine.py"
    assert all(part.is_mine for part in parts), parts
    text = path.read_text(encoding="utf-8")
    assert imported(text) <= {"sys", "numpy", "collections", "itertools", "math"}
    assert 100 < lines_of_code(text) < 200
    flat, x, y = problem
    order = np.array([np.arange(30)])
    trained, losses = load(path)["train"](flat, x, y, order, batch=10, piece=7)
    expected, reference = frame.train(flat, x, y, order, batch=10, piece=7)
    assert np.allclose(losses, reference, rtol=1e-12)
    assert np.allclose(trained, expected, rtol=1e-9)


def test_given_part_stands_in_for_one_that_fails_or_is_missing(course):
    wrong = course / "exercises" / "04_accumulation.py"
    wrong.write_text(wrong.read_text() + "\n\ndef unbroadcast(g, shape):\n    return g\n")
    (course / "exercises" / "02_graph.py").unlink()
    path, parts = assemble()
    given = {part.exercise for part in parts if not part.is_mine}
    assert given == {"04.unbroadcast", "02.topo_order"}
    assert "# --- 02.topo_order: given" in path.read_text()
    load(path)


def test_edited_engine_is_kept(course):
    path, _ = assemble()
    path.write_text("mine = 1\n")
    assemble()
    kept = list((course / ".minigrad" / "backup").glob("*/my_engine.py"))
    assert [copy.read_text() for copy in kept] == ["mine = 1\n"]
    assert path.read_text() != "mine = 1\n"


def test_helpers_come_along_and_stay_inside():
    source = (
        "import math\nLIMIT = 3\n\ndef helper(x):\n    return math.sqrt(x) + LIMIT\n\n"
        "def unused():\n    pass\n\ndef f(x):\n"
        '    """Say what.\n\n    And more.\n    """\n    return helper(x)\n'
    )
    text = alone(source, "f", set())
    names = {}
    exec(text, names)
    assert names["f"](4.0) == 5.0
    assert names["f"].__doc__ == "Say what."
    assert "helper" not in names
    assert "unused" not in text


def test_function_alone_stays_as_it_was_written():
    source = "def f(x):\n    # twice\n    return x + x\n"
    assert alone(source, "f", set()) == source.rstrip()


def test_function_that_needs_minigrad_does_not_stand_alone():
    source = "import minigrad as mg\n\ndef f(x):\n    return mg.exp(x)\n"
    with pytest.raises(NotAlone, match="needs minigrad"):
        alone(source, "f", set())
    with pytest.raises(NotAlone, match="no g here"):
        alone(source, "g", set())
