"""The code of every recipe in CONTRIBUTING.md does what the recipe says."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import minigrad as mg
from minigrad import errors
from minigrad.compiler import passes
from minigrad.compiler.passes.sketch import Sketch
from minigrad.course.mutants import message_key, text_of
from minigrad.course.stubs import cut
from minigrad.devices.backend import device_named
from minigrad.devices.gpu import compiler
from minigrad.devices.gpu.driver.cubins import cubins
from minigrad.devices.gpu.kernel import gpu_kernel
from minigrad.grader.folder import load_lesson
from minigrad.grader.launcher import Server
from minigrad.grader.run import Submission, grade_exercise
from tests.compiler.outcomes import outcome, same
from tests.compiler.test_passes_random import recordings

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"


def blocks(heading):
    """The blocks of Python under a heading."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)


def defined(heading):
    """What the first block under a heading defines."""
    found = {"__name__": "recipe"}
    exec(compile(blocks(heading)[0], "recipe", "exec"), found)
    return found


WAYS = pytest.mark.parametrize("wrap", [lambda f: f, mg.compile], ids=["eager", "compiled"])


def test_operation_is_checked_to_second_order(capsys):
    defined("Adding an operation")
    assert "Variable" in capsys.readouterr().out


@WAYS
def test_optimizer_trains(wrap):
    p = mg.nn.Parameter([3.0, -2.0])
    optimizer = defined("Adding an optimizer")["SignSGD"]([p], learning_rate=0.5)

    @wrap
    def step():
        (p * p).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(4):
        step()
    assert p.tolist() == [1.0, 0.0]


@WAYS
@pytest.mark.parametrize("device", ["cpu", "simt"])
def test_layer_trains_its_slopes(wrap, device):
    with mg.device(device):
        layer = defined("Adding a layer")["PReLU"](3)
        x = mg.variable(np.array([[-2.0, 0.0, 1.0], [-1.0, -4.0, 2.0]], np.float32))

    @wrap
    def step(x):
        y = layer(x)
        y.sum().backward()
        return y

    for _ in range(3):
        layer.zero_grad()
        y = step(x)
    assert y.to("cpu").tolist() == [[-0.5, 0.0, 1.0], [-0.25, -1.0, 2.0]]
    assert layer.slope.grad.to("cpu").tolist() == [-3.0, -4.0, 0.0]


def test_layer_says_its_sizes_and_refuses_others():
    layer = defined("Adding a layer")["PReLU"](3)
    assert repr(layer) == "PReLU(3)"
    assert list(layer.state_dict()) == ["slope"]
    with pytest.raises(errors.ShapeError):
        layer(mg.zeros((3, 4)))


def test_pass_does_what_its_docstring_shows():
    found = defined("Adding a pass to the compiler")
    cases = doctest.DocTestFinder().find(found["without_quotients"], "pass", globs=found)
    runner = doctest.DocTestRunner()
    for case in cases:
        runner.run(case)
    assert runner.tries == 5
    assert not runner.failures


@pytest.mark.parametrize("by", [3.0, 0.0, float("nan"), float("inf"), 2.0**120, 2])
def test_pass_leaves_what_would_not_be_exact(by):
    s = Sketch()
    recording = s.recording(s.div(s.argument((4,)), by))
    assert defined("Adding a pass to the compiler")["without_quotients"](recording) is recording


def test_pass_keeps_the_meaning_of_random_recordings():
    more = defined("Adding a pass to the compiler")["without_quotients"]

    @settings(max_examples=60, deadline=None)
    @given(recordings())
    def check(made):
        recording, data, dead = made
        assert same(outcome(recording, data, dead), outcome(more(recording), data, dead))

    check()


def test_pass_in_its_place_runs_in_a_compiled_step(monkeypatch):
    more = defined("Adding a pass to the compiler")["without_quotients"]
    monkeypatch.setattr(passes, "ORDER", (*passes.ORDER, more))
    step = mg.compile(lambda x: (x / 4.0).exp())
    x = mg.variable([1.0, -3.0, 1e-44])
    for _ in range(3):
        np.testing.assert_array_equal(step(x).numpy(), (x / 4.0).exp().numpy())
    (trace,) = step.traces
    assert "without_quotients" in [name for name, _, _ in trace.plan.passes]


def test_kernel_counts_without_a_race(monkeypatch, capsys):
    monkeypatch.setattr(device_named("simt"), "watch", True)
    found = defined("Adding a kernel")
    assert capsys.readouterr().out == "[1, 0, 2]\n"
    index = np.random.default_rng(0).integers(0, 5, 3000)
    counts = found["counted"](mg.variable(index, device="simt"), 5)
    assert counts.to("cpu").tolist() == np.bincount(index).tolist()


def test_kernel_of_the_recipe_compiles_for_a_gpu():
    if compiler.missing() is not None:
        pytest.skip(f"{compiler.missing()} is not installed")
    (cubin,) = cubins(gpu_kernel(defined("Adding a kernel")["TEXT"], "i8* i8* i8"), [(8, 0)])
    assert not cubin.spills


def test_exercise_tells_the_solution_from_stub_and_wrong_answers(tmp_path):
    solution, checks = blocks("Adding an exercise")
    file = tmp_path / "relative_error.py"  # where the texts of its functions are looked up
    file.write_text(checks)
    lesson = load_lesson("00_start")
    before = dict(lesson.exercises)
    found = {}
    try:
        exec(compile(checks, file, "exec"), found)
    finally:
        lesson.exercises.clear()
        lesson.exercises.update(before)
    exercise = found["relative_error"]

    def graded(source, seed):
        submission = Submission(Path("exercises/00_start.py"), source)
        return grade_exercise(server, exercise, submission, seed)

    with Server() as server:
        for seed in range(5):
            assert graded(solution, seed).passed
            assert graded(cut(solution, "recipe"), seed).points == 0
            assert len(exercise.wrong_versions) == 3
            for one in exercise.wrong_versions:
                wrong = graded(f"{solution}\n\n{text_of(one.function, exercise.name)}", seed)
                assert message_key(wrong) == one.key
