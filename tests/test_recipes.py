"""The code of every recipe in CONTRIBUTING.md does what the recipe says."""

import doctest
import os
import re
import shlex
import subprocess
import sys
import textwrap
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import cli, errors
from minigrad.cli import main
from minigrad.compiler import passes
from minigrad.compiler.program.sketch import Sketch
from minigrad.course.mutants import message_key, text_of
from minigrad.course.stubs import cut
from minigrad.devices.backend import device_named
from minigrad.devices.gpu import compiler
from minigrad.devices.gpu.driver.cubins import cubins
from minigrad.devices.gpu.kernel import gpu_kernel
from minigrad.grader.folder import load_lesson
from minigrad.grader.launcher import Server
from minigrad.grader.run import Submission, grade_exercise
from tests.compiler.compositions import COMPOSITIONS
from tests.compiler.test_passes_random import all_fired, keep_the_meaning_of

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"


def blocks(heading):
    """The blocks of Python under a heading."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    return [textwrap.dedent(block) for block in found]


def defined(heading, number=0, **given):
    """What a block under a heading, the first or another, defines."""
    found = {"__name__": "recipe", **given}
    exec(compile(blocks(heading)[number], "recipe", "exec"), found)
    return found


WAYS = pytest.mark.parametrize("wrap", [lambda f: f, mg.compile], ids=["eager", "compiled"])


ADDED = {  # by recipes
    "minigrad/course/l00_start/relative_error.py", "minigrad/cli/left.py", "tests/cli/test_left.py",
}  # fmt: skip


@pytest.mark.parametrize(
    "what",
    [
        "an operation",
        "an optimizer",
        "a layer",
        "an identity to the compiler",
        "a pass to the compiler",
        "a kernel",
        "an exercise",
        "a command",
    ],
)
def test_recipe_ends_with_commands_over_files_that_exist(what):
    section = PAGE.read_text(encoding="utf-8").split(f"\n## Adding {what}\n")[1].split("\n## ")[0]
    _, commands = section.rstrip().removesuffix("\n```").rsplit("\n```sh\n", 1)
    words = shlex.split(commands)
    named = {word.partition("::")[0] for word in words if re.search(r"/.*\.py", word)}
    assert ".venv/bin/pyright" in words
    assert {file for file in named - ADDED if not (PAGE.parent / file).exists()} == set()


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


def test_optimizer_steps_as_its_formula_in_numpy_says():
    p, state = mg.nn.Parameter(np.array([1.0, -2.0])), {}
    optimizer = defined("Adding an optimizer")["SignSGD"]([p], learning_rate=0.5, beta=0.8)
    formula = defined("Adding an optimizer", 1, np=np)["sign_sgd"]
    expected = p.numpy().copy()
    for g in np.array([[1.0, -3.0], [-2.0, 1.0], [-0.1, 9.0]]):
        p.grad = mg.variable(g)
        optimizer.step()
        expected = formula(expected, g, state, 0.5, beta=0.8)
    assert p.tolist() == expected.tolist() == [1.5, -1.5]


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


def test_pass_is_reached_by_compositions_and_keeps_their_meaning(monkeypatch):
    more = defined("Adding a pass to the compiler")["without_quotients"]
    monkeypatch.setattr(passes, "ORDER", (*passes.ORDER, more))
    for kind in ("binary_with_a_number", "numbers_in_a_chain"):
        assert "without_quotients" in keep_the_meaning_of(COMPOSITIONS[kind])


def test_pass_that_is_wrong_is_named(monkeypatch):
    found = defined("Adding a pass to the compiler")
    found["_product"] = lambda i: replace(i, inputs=(i.inputs[0], 0.5 / i.inputs[1]))
    monkeypatch.setattr(passes, "ORDER", (*passes.ORDER, found["without_quotients"]))
    with pytest.raises(AssertionError, match="without_quotients changed what a recording means"):
        keep_the_meaning_of(COMPOSITIONS["binary_with_a_number"])


def test_pass_that_never_fires_is_named(monkeypatch):
    fired = [apply.__name__ for apply in passes.ORDER]
    more = defined("Adding a pass to the compiler")["without_quotients"]
    monkeypatch.setattr(passes, "ORDER", (*passes.ORDER, more))
    with pytest.raises(AssertionError, match="without_quotients changed none of the recordings"):
        all_fired(fired)


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


def test_race_in_a_kernel_is_an_error_with_its_line_where_it_is_watched():
    (block,) = blocks("Adding a kernel")
    racy = block.replace("atomic_add(counts, index[i], I8(1))", "counts[index[i]] += I8(1)")
    assert racy != block
    watched = {**os.environ, "MINIGRAD_SIMT_WATCH": "1"}
    done = subprocess.run(
        [sys.executable, "-c", racy], env=watched, capture_output=True, text=True, check=False
    )
    assert "DataRaceError" in done.stderr
    assert "counts[index[i]] += I8(1)" in done.stderr


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


@pytest.fixture
def learner(tmp_path, monkeypatch, capsys):
    """A folder with the course, in which commands run."""
    assert main.main(["start", str(tmp_path / "course")]) == 0
    monkeypatch.chdir(tmp_path / "course")
    capsys.readouterr()
    return tmp_path / "course"


@pytest.fixture
def command(monkeypatch):
    """`minigrad left`, where its recipe puts it; the recipe's tests, and the text of `main.py`."""
    module, lines, test = blocks("Adding a command")
    left = types.ModuleType("minigrad.cli.left")
    exec(module, vars(left))
    monkeypatch.setattr(cli, "left", left, raising=False)
    source = Path(main.__file__).read_text(encoding="utf-8")
    for before, more in (("    lab,\n", "left,\n"), ('    add("doctor"', lines)):
        assert source.count(before) == 1
        source = source.replace(before, textwrap.indent(more, "    ") + before)
    changed = types.ModuleType("changed")
    monkeypatch.setitem(sys.modules, left.__name__, left)
    exec(source, vars(changed))
    monkeypatch.setattr(main, "make_parser", changed.make_parser)
    found = {"__file__": str(PAGE.parent / "tests" / "cli" / "test_left.py")}
    exec(test, found)
    return found, source


def test_command_passes_the_tests_of_its_recipe(command, learner, capsys):
    tests = [value for name, value in command[0].items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test(learner, capsys)


def test_command_is_found_by_start(command, tmp_path, monkeypatch):
    path = tmp_path / "start.py"
    path.write_text((PAGE.parent / "start.py").read_text(encoding="utf-8"), encoding="utf-8")
    file = tmp_path / "minigrad" / "cli" / "main.py"
    file.parent.mkdir(parents=True)
    file.write_text(command[1], encoding="utf-8")
    start = {"__name__": "start", "__file__": str(path)}
    exec(path.read_text(encoding="utf-8"), start)
    assert start["commands"]().count("left") == 1


@pytest.mark.parametrize("folder", ["grader", "course"])
def test_every_file_that_fails_a_check_is_in_the_table_of_messages(folder):
    section = PAGE.read_text(encoding="utf-8").split("\n## Which file a message comes from\n")[1]
    table = section.split("\n## ")[0]
    files = [*(PAGE.parent / "minigrad" / folder).glob("*.py")]
    failing = r"\.fail\(|Message\($|Message\(\w|raise AnswerUsed|raise PermissionError"
    found = {
        file.relative_to(PAGE.parent).as_posix()
        for file in files
        if re.search(failing, file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert found
    assert {file for file in found if f"`{file}`" not in table} == set()
