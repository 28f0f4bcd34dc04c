"""Whatever an exercise's function returns, its checks say something: they never break."""

import sys
import types
from pathlib import Path

import numpy as np
import pytest

from minigrad.course.stubs import cut
from minigrad.grader.folder import known_stems, load_lesson
from minigrad.grader.live import LiveRunner, try_function
from minigrad.grader.run import run_check
from tests.grader.silly import BODIES, KERNELS, earned, load, own_errors, with_bodies

ROOT = Path(__file__).parents[2]
EXERCISES = [(stem, name) for stem in known_stems() for name in load_lesson(stem).exercises]
ANSWERS = {
    "None": lambda *a: None,
    "0": lambda *a: 0,
    "-1.5": lambda *a: -1.5,
    "nan": lambda *a: float("nan"),
    "inf": lambda *a: float("inf"),
    "a huge int": lambda *a: 10**400,
    "a complex number": lambda *a: 1j,
    "True": lambda *a: True,
    "a text": lambda *a: "answer",
    "bytes": lambda *a: b"answer",
    "an empty list": lambda *a: [],
    "an empty tuple": lambda *a: (),
    "an empty dict": lambda *a: {},
    "a dict": lambda *a: {"a": 1},
    "a list of None": lambda *a: [None, None],
    "two of None": lambda *a: (None, None),
    "a nested list": lambda *a: [[1, 2], [3]],
    "a set": lambda *a: {1, 2},
    "a range": lambda *a: range(3),
    "a generator": lambda *a: (i for i in range(3)),
    "an object": lambda *a: object(),
    "a class": lambda *a: int,
    "a function": lambda *a: len,
    "an empty array": lambda *a: np.array([]),
    "a matrix": lambda *a: np.zeros((2, 2)),
    "a number as array": lambda *a: np.array(2.0),
    "an array of texts": lambda *a: np.array(["a", "b"]),
    "an array of objects": lambda *a: np.array([object(), None]),
    "an array of bools": lambda *a: np.array([True, False]),
    "an array of nan": lambda *a: np.full(4, np.nan),
    "its first argument": lambda *a: a[0] if a else None,
    "its last argument": lambda *a: a[-1] if a else None,
    "its arguments": lambda *a: a,
    "its arguments as a list": lambda *a: list(a),
}


def solution(stem):
    """The solutions as a module, imported by nobody else."""
    module = types.ModuleType(f"silly.{stem}")
    path = ROOT / "solutions" / f"{stem}.py"
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    return module


@pytest.fixture(scope="module")
def modules():
    loaded = {stem: solution(stem) for stem in known_stems()}
    yield loaded
    for module in loaded.values():
        del sys.modules[module.__name__]


@pytest.mark.parametrize(("stem", "name"), EXERCISES)
@pytest.mark.filterwarnings("ignore")
def test_no_answer_breaks_a_check(stem, name, modules):
    module, exercise = modules[stem], load_lesson(stem).exercises[name]
    right = getattr(module, name)
    if isinstance(right, type):
        methods = [m for m, f in vars(right).items() if isinstance(f, types.FunctionType)]
    else:
        methods = [""]
    for method in methods:
        for answer, silly in ANSWERS.items():
            if not method:
                wrong = types.FunctionType(silly.__code__, {**vars(module), "np": np}, name)
                wrong.__module__ = module.__name__
            elif method == "__init__":
                continue
            else:
                body = (lambda f: lambda self, *a, **k: f(*a))(silly)
                wrong = type(name, (right,), {method: body, "__module__": module.__name__})
            result = try_function(exercise, wrong, seed=3)
            for check in result.checks:
                assert check.status in ("passed", "failed"), (method, answer)
                if check.message is not None:
                    lines = check.message.lines()
                    assert len(lines) <= 12, (method, answer)


HUNTS = [stem for stem in known_stems() if hasattr(solution(stem), "BUG")]


@pytest.mark.parametrize("stem", HUNTS)
@pytest.mark.filterwarnings("ignore")
def test_no_diagnosis_breaks_a_check(stem, modules):
    module = modules[stem]
    hunts = [
        exercise
        for exercise in load_lesson(stem).exercises.values()
        if any(check.name.startswith("diagnosis") for check in exercise.checks)
    ]
    assert len(hunts) == 1
    right = module.BUG
    words = list(right) if isinstance(right, dict) else [right[0]]
    try:
        for silly in ANSWERS.values():
            value = silly()
            for bug in (
                value,
                (value, value),
                *((word, value) for word in words),
                {words[0]: value},
            ):
                module.BUG = bug
                runner = LiveRunner(hunts[0], getattr(module, hunts[0].name))
                for check in hunts[0].checks:
                    if check.name.startswith("diagnosis"):
                        outcome = run_check(hunts[0], check, runner, seed=3)
                        assert outcome.message or stem == "00_start", bug
    finally:
        module.BUG = right


# ---- and no body without a thought earns anything ----------------------------------------------


def bodies(stem, source):
    """The bodies for a lesson: those of kernels, or of functions that may also raise its errors."""
    if stem == "13_cuda_kernels":
        return KERNELS
    return BODIES | {name: f"raise {name}('no')" for name in own_errors(source)}


@pytest.mark.parametrize("stem", known_stems())
@pytest.mark.filterwarnings("ignore")
def test_no_body_without_a_thought_earns_anything(stem):
    source = cut((ROOT / "solutions" / f"{stem}.py").read_text("utf-8"), stem)
    exercises = load_lesson(stem).exercises
    found = {}
    for what, body in bodies(stem, source).items():
        text = with_bodies(source, set(exercises), body, kernels=stem == "13_cuda_kernels")
        names = load(text, f"exercises/{stem}.py")
        for name, exercise in exercises.items():
            if points := earned(exercise, names, seed=3):
                found[what, name] = points
    assert found == {}


def test_a_check_that_counts_only_with_others_names_them():
    for stem, name in EXERCISES:
        checks = load_lesson(stem).exercises[name].checks
        for check in checks:
            assert {*check.only_with} <= {one.name for one in checks} - {check.name}


def test_what_passes_alone_says_what_is_missing():
    exercise = load_lesson("01_chain_rule").exercises["count_mults"]

    def count_mults(n_in, n_out, mode):
        raise ValueError(mode)

    alone = {check.name: check for check in try_function(exercise, count_mults, seed=3).checks}
    assert alone["other_modes"].points == 0
    given = alone["other_modes"].message.given
    assert given.startswith("forward, as other_modes earns nothing without it: count_mults(")
    assert alone["other_modes"].message.attempt == alone["forward"].message.attempt
    assert alone["other_modes"].without == ("forward", "reverse")


@pytest.mark.parametrize("stem", [s for s in HUNTS if isinstance(solution(s).BUG, dict)])
def test_the_same_text_for_several_parts_of_a_diagnosis_earns_nothing(stem, modules):
    module = modules[stem]
    [hunt] = [
        one
        for one in load_lesson(stem).exercises.values()
        if any(check.name.startswith("diagnosis") for check in one.checks)
    ]
    right, checks = module.BUG, [one for one in hunt.checks if one.name.startswith("diagnosis")]
    tries = [dict.fromkeys(right, text) for text in right.values()]
    tries += [{**right, name: f" {right[other]} ".lower()} for name in right for other in right]
    try:
        for bug in tries:
            module.BUG = bug
            runner = LiveRunner(hunt, getattr(module, hunt.name))
            said = {one.name: run_check(hunt, one, runner, seed=3) for one in checks}
            same = {
                n
                for n in bug
                if [*(v.strip().casefold() for v in bug.values())].count(bug[n].strip().casefold())
                > 1
            }
            for name in bug:
                outcome = said[f"diagnosis_{name}"]
                assert (outcome.message is not None) == (name in same), bug
                assert name not in same or outcome.message.key in ("same_text", "form")
    finally:
        module.BUG = right
