"""The one compare: nan, inf, nothing and a wrong shape agree with no number, in any check."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest

from minigrad.grader import tester as testers
from minigrad.grader.compare import HUGE, agree, disagreements
from minigrad.grader.folder import known_stems, load_lesson
from minigrad.grader.gradients import TOLERANCE, check_gradients, directional
from minigrad.grader.launcher import GraderError
from minigrad.grader.live import LiveRunner
from minigrad.grader.message import Failed
from minigrad.grader.run import run_check
from minigrad.grader.wire import Other
from tests.grader.silly import load

ROOT = Path(__file__).parents[2]
NAN, INF = math.nan, math.inf

AGREE = [
    (1.0, 1.0),
    (1, 1.0),
    (0.0, -0.0),
    (1.0 + 1e-8, 1.0),
    (NAN, NAN),
    (INF, INF),
    (-INF, -INF),
    (10**400, 10**400),
    (2**200, 2**200),
    (2.0**200, 2**200),
    (np.float32(1), 1.0),
    (1.0, 1 + 0j),
    (np.array([]), np.array([])),
    ([1.0, 2.0], (1.0, 2.0)),
    (np.array([1.0, NAN, INF]), np.array([1.0, NAN, INF])),
    (True, True),
]
DISAGREE = [
    (NAN, 1.0),
    (1.0, NAN),
    (INF, 1.0),
    (1.0, INF),
    (-INF, INF),
    (NAN, INF),
    (1e308, INF),
    (-1e308, 1e308),
    (1.7e308, -1.7e308),
    (1.1, 1.0),
    (0.0, 1e-3),
    (None, 0.0),
    ("1.0", 1.0),
    (b"1", 1.0),
    (Other("Yes", "1.0"), 1.0),
    (NotImplemented, 1.0),
    ([], 1.0),
    ([], [1.0]),
    (np.array([]), 1.0),
    (np.array([]), np.array([1.0])),
    (np.zeros((0, 3)), np.zeros((3, 0))),
    (np.array([1.0]), 1.0),
    (1.0, np.array([1.0])),
    (np.ones((2, 1)), np.ones((1, 2))),
    ([[1.0], [1.0, 2.0]], [[1.0], [1.0]]),
    (np.array([1.0, NAN]), np.array([1.0, 2.0])),
    (np.array([1.0, 2.0]), np.array([1.0, NAN])),
    (np.array(["1.0"]), np.array([1.0])),
    (np.array([None]), np.array([0.0])),
    (1 + 0j, 1.0),
    (True, 1.0),
    (1.0, True),
    (1, True),
    (10**400, 1.0),
    (10**400, 10**400 + 10**399),
    (1.0, 10**400),
    (HUGE, INF),
]


@pytest.mark.parametrize(("got", "expected"), AGREE, ids=repr)
def test_what_agrees(got, expected):
    assert agree(got, expected)


@pytest.mark.parametrize(("got", "expected"), DISAGREE, ids=repr)
def test_what_does_not_agree(got, expected):
    assert not agree(got, expected)
    assert not agree(got, expected, rtol=0, atol=0)


def test_integers_are_told_apart_beyond_what_floats_can():
    assert not agree(2**53 + 1, 2**53, rtol=0, atol=0)
    assert not agree(np.int64(2**53 + 1), np.int64(2**53), rtol=0, atol=0)


def test_entries_that_disagree_are_found():
    got, expected = np.array([1.0, NAN, 3.0, INF]), np.array([1.0, 2.0, 3.1, 4.0])
    assert disagreements(got, expected).tolist() == [False, True, True, True]
    assert disagreements(np.array([1.0]), expected).all()


def a_tester():
    """A tester of an exercise whose function is never called."""
    exercise = load_lesson("00_start").exercises["hello"]
    return testers.Tester(exercise, "text", LiveRunner(exercise, lambda: None), 3)


@pytest.mark.parametrize("wrong", [NAN, INF, -INF, 1e308, "mixed"])
def test_gradients_that_are_no_numbers_fail(wrong):
    x = np.array([0.5, -1.0, 2.0, 1.0])
    got = np.array([1e308, -1e308, 1e308, -1e308]) if wrong == "mixed" else np.full(4, wrong)
    t = a_tester()
    for _ in range(20):  # signs of the random direction decide whether sums are inf or nan
        with pytest.raises(Failed):
            check_gradients(t, (got,), np.sin, (x,), np.ones(4), names=("dx",), attempt="")


def test_a_derivative_is_exact_where_the_function_bends_within_a_step():
    random, dy = np.random.default_rng(0), np.ones(3)
    for _ in range(20):
        x = random.choice([-1.0, 1.0], 3) * random.uniform(0.003, 0.015, 3)
        right = (1 - x * x.sum() / (x @ x)) / np.sqrt(x @ x)
        v = random.standard_normal(3)
        found = directional(lambda x: x / np.sqrt(x @ x), (x,), dy, (v,))
        assert found == pytest.approx(right @ v, abs=TOLERANCE / 20)


# ---- every exercise's own solution, with what it answers spoilt ------------------------------


def full(value, number):
    return np.full(np.shape(value), number, getattr(value, "dtype", float))[()]


def one_nan(value):
    spoilt = np.array(value)
    spoilt.reshape(-1)[spoilt.size // 2 : spoilt.size // 2 + 1] = NAN
    return spoilt[()]


SPOILT = {
    "nan": lambda value: full(value, NAN),
    "one nan": one_nan,
    "inf": lambda value: full(value, INF),
    "empty": lambda value: np.zeros(0),
}
# Whose floats are no answers: detach is asked for the caller's own bytes, seen by their address;
# and the weights that valid_copy's check computes with are those before the call.
NO_ANSWERS = {"05.detach", "06.valid_copy"}


class SpoiltRunner(LiveRunner):
    """Spoils every float of an answer, once `spoil` is there; counts them."""

    spoil = None
    n_floats = 0

    def call(self, name, arguments, *, drive=False):
        reply = super().call(name, arguments, drive=drive)
        return {**reply, "ok": self.spoilt(reply["ok"])} if "ok" in reply else reply

    def spoilt(self, value):
        if isinstance(value, list | tuple):
            return type(value)(self.spoilt(item) for item in value)
        if isinstance(value, dict):
            return {key: self.spoilt(item) for key, item in value.items()}
        if np.asarray(value).dtype.kind != "f" if value is not None else True:
            return value
        self.n_floats += np.size(value)
        return value if self.spoil is None else self.spoil(value)


EXERCISES = [(stem, name) for stem in known_stems() for name in load_lesson(stem).exercises]


@pytest.mark.parametrize(("stem", "name"), EXERCISES)
@pytest.mark.filterwarnings("ignore")
def test_spoilt_answers_get_no_full_points(stem, name):
    exercise = load_lesson(stem).exercises[name]
    path = ROOT / "solutions" / f"{stem}.py"
    names = load(path.read_text(encoding="utf-8"), str(path))
    with_floats = []
    for check in exercise.checks:
        runner = SpoiltRunner(exercise, names[name])
        assert run_check(exercise, check, runner, 3).status == "passed"
        with_floats += [check] * (runner.n_floats > 0)
    if not with_floats or exercise.id in NO_ANSWERS:
        return
    for kind, spoil in SPOILT.items():
        statuses = set()
        for check in with_floats:
            runner = SpoiltRunner(exercise, names[name])
            runner.spoil = spoil
            try:
                statuses.add(run_check(exercise, check, runner, 3).status)
            except GraderError:  # the driver's own numbers were spoilt, which no answer can do
                statuses.add("not graded")
        assert statuses != {"passed"}, kind


def test_a_copy_that_spoils_the_weights_of_its_model_gets_no_full_points():
    exercise = load_lesson("06_memory_growth").exercises["valid_copy"]
    path = ROOT / "solutions" / "06_memory_growth.py"
    names = load(path.read_text(encoding="utf-8"), str(path))
    right = names["valid_copy"]

    def spoilt(factor):
        def valid_copy(model):
            for p in model.parameters():
                p.map(lambda value: value * factor)
            return right(model)

        valid_copy.__globals__.update(names)
        return valid_copy

    evaluates = next(check for check in exercise.checks if check.name == "evaluates")
    for factor in (NAN, 0.0, 2.0):
        runner = LiveRunner(exercise, spoilt(factor))
        assert run_check(exercise, evaluates, runner, 3).status == "failed"


# ---- nobody compares in another way ----------------------------------------------------------


def own_compares(path):
    """Return the lines of a file that hold a difference against a tolerance, or let NumPy do it."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in (
            "allclose",
            "isclose",
            "assert_allclose",
        ):
            found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Gt | ast.GtE):
            size = node.left
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt | ast.LtE):
            size = node.comparators[0]  # also a tolerance < abs(difference)
        else:
            continue
        if any(
            isinstance(part, ast.Call)
            and ast.unparse(part.func).split(".")[-1] in ("abs", "norm")
            and any(isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub)
                    for inner in ast.walk(part))
            for part in ast.walk(size)
        ):  # fmt: skip
            found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    return found


def test_checks_compare_in_one_place():
    folders = [ROOT / "minigrad" / "grader", *(ROOT / "minigrad" / "course").glob("l[0-9]*")]
    pictures = {"drawing.py", "pictures.py", "compare.py"}
    paths = [p for folder in folders for p in folder.glob("*.py") if p.name not in pictures]
    assert len(paths) > 100
    assert [line for path in paths for line in own_compares(path)] == []
    assert own_compares(ROOT / "minigrad" / "grader" / "compare.py") != []
