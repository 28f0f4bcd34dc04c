"""The checks themselves: stubs get nothing, solutions everything, mutants their own message."""

from pathlib import Path

import pytest

from minigrad.course.mutants import grade_source, load_mutants, message_key, run_mutants
from minigrad.course.stubs import cut
from minigrad.grader.folder import known_stems, load_lesson

ROOT = Path(__file__).parents[2]
SEEDS = (11, 12)
EXERCISES = [(stem, name) for stem in known_stems() for name in load_lesson(stem).exercises]


def solution(stem):
    return (ROOT / "solutions" / f"{stem}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(("stem", "name"), EXERCISES)
def test_stub_gets_no_points_and_a_readable_message(stem, name, server):
    stub = cut(solution(stem), stem)
    result = grade_source(server, stem, name, stub, SEEDS[0])
    assert result.points == 0
    message = result.first_failure.message
    assert f"exercises/{stem}.py:" in message.where
    assert len(message.lines()) <= 12


@pytest.mark.parametrize(("stem", "name"), EXERCISES)
def test_answer_that_does_nothing_earns_the_diagnosis_at_most(stem, name, server):
    is_class = f"\nclass {name}" in solution(stem)
    nothing = f"class {name}:\n    pass" if is_class else f"def {name}(*a, **k):\n    return None"
    result = grade_source(server, stem, name, f"{solution(stem)}\n\n{nothing}\n", SEEDS[0])
    earned = [check.name for check in result.checks if check.points]
    assert [name for name in earned if not name.startswith("diagnosis")] == []


def test_two_thirds_of_the_exercises_need_no_engine():
    needs = [load_lesson(stem).exercises[name].needs for stem, name in EXERCISES]
    assert 3 * needs.count("plain") >= 2 * len(needs)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("stem", "name"), EXERCISES)
def test_solution_gets_full_marks(stem, name, seed, server):
    result = grade_source(server, stem, name, solution(stem), seed)
    assert result.passed, str(result.first_failure)
    assert result.points == result.of > 0


@pytest.mark.parametrize("stem", known_stems())
def test_mutants_fail_with_the_message_meant_for_each(stem, server):
    for mutant, result in run_mutants(server, ROOT, stem, SEEDS[0]):
        assert message_key(result) == mutant.key, mutant.code
        assert result.points < result.of
        assert len(result.first_failure.message.lines()) <= 12


@pytest.mark.parametrize(("stem", "name"), EXERCISES)
def test_exercise_has_mutants_of_three_kinds_or_more(stem, name):
    keys = [mutant.key for mutant in load_mutants(ROOT, stem) if mutant.exercise == name]
    assert len(set(keys)) >= 3


@pytest.mark.parametrize(("stem", "name"), EXERCISES)
def test_exercise_states_what_a_learner_needs(stem, name):
    exercise = load_lesson(stem).exercises[name]
    assert 1 <= exercise.difficulty <= 5
    assert exercise.minutes > 0
    assert len(exercise.hints) == 3
    assert len({check.name for check in exercise.checks}) == len(exercise.checks)
    assert all(check.summary.endswith(".") for check in exercise.checks)


@pytest.mark.parametrize(("stem", "name"), EXERCISES)
def test_same_seed_gives_the_same_message(stem, name, server):
    stub = cut(solution(stem), stem)
    first, again = (grade_source(server, stem, name, stub, 5).first_failure for _ in range(2))
    assert first.message == again.message


def test_seed_decides_the_inputs(server):
    stub = cut(solution("00_start"), "00_start")
    given = {
        grade_source(server, "00_start", "central_difference", stub, s).first_failure.message.given
        for s in range(4)
    }
    assert len(given) == 4


BACKWARD = """
def backward(root):
    grads = {root: 1.0}

    def go(node):
        if node.op == "leaf":
            return
        for one, dy in zip(node.inputs, RULES[node.op](grads[node], *node.saved)):
            if one is not None:
                grads[one] = grads.get(one, 0.0) + dy
                go(one)

    go(root)
    return grads
"""


@pytest.mark.parametrize(
    ("lesson", "name", "source"),
    [
        ("02_graph", "backward", BACKWARD),
        ("02_graph", "topo_order", "def topo_order(root):\n    return (x for x in [root])\n"),
        ("03_cycles", "find_cycle", "def find_cycle(root):\n    return [root, root]\n"),
        ("03_cycles", "assert_dag", "def assert_dag(root):\n    raise ValueError\n"),
    ],
)
def test_no_check_praises_what_another_refuses(lesson, name, source, server):
    text = solution(lesson) + "\n\n" + source
    outcomes = grade_source(server, lesson, name, text, 3).checks
    said = [one.message.attempt for one in outcomes if one.message]
    assert len(said) > 1
    assert not [one for one in said if "right" in one]


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("object()", "an object of type object"),
        ("3", "3, an int"),
        ("b'hello'", "an object of type bytes"),
    ],
)
def test_value_of_a_wrong_type_is_told_in_words(returned, said, server):
    source = f"def hello():\n    return {returned}\n"
    message = grade_source(server, "00_start", "hello", source, 3).first_failure.message
    assert message.got.endswith(said)


def test_partial_solution_gets_partial_credit(server):
    text = solution("01_chain_rule") + "\n\ndef mul_backward(dy, a, b):\n    return b, a\n"
    result = grade_source(server, "01_chain_rule", "mul_backward", text, 3)
    assert (result.points, result.of) == (1, 3)


@pytest.mark.parametrize(
    ("stem", "name", "change", "attempt"),
    [
        ("00_start", "slope", "BUG = 1e9", "First the form"),
        ("01_chain_rule", "pipeline_gradient", "BUG = 2", "First the form"),
        ("01_chain_rule", "pipeline_gradient", 'BUG = ("node", "softplus")', "not by its name"),
        ("00_start", "slope", 'BUG = ("x", None)', "many sizes"),
    ],
)
def test_diagnosis_in_a_wrong_form_is_told_about_the_form(stem, name, change, attempt, server):
    result = grade_source(server, stem, name, f"{solution(stem)}\n{change}\n", SEEDS[0])
    assert attempt in result.first_failure.message.attempt


@pytest.mark.parametrize(
    ("body", "key", "words"),
    [
        (
            "import minigrad\n    return minigrad.variable(x)",
            "imports_minigrad",
            "engine is closed",
        ),
        ("from minigrad import nn", "imports_minigrad", "engine is closed"),
        ("import minigrad.nn", "imports_minigrad", "engine is closed"),
        ("import torch", "import", "without torch"),
        ("return float(input('slope? '))", "input", "Nobody can type"),
        ("import getpass; return getpass.getpass()", "input", "Nobody can type"),
        ("breakpoint()", "input", "Take it out"),
        ("import pdb; pdb.set_trace(); return 1", "input", "Take it out"),
    ],
)
def test_what_is_missing_while_grading_is_said_in_words(body, key, words, server):
    source = f"def central_difference(f, x, eps):\n    {body}\n"
    message = grade_source(
        server, "00_start", "central_difference", source, 11
    ).first_failure.message
    assert message.key == key
    assert words in message.attempt


@pytest.mark.parametrize(
    ("stem", "name", "source"),
    [
        (
            "04_accumulation",
            "unbroadcast",
            "def unbroadcast(g, shape, seen={}):\n"
            "    return seen.setdefault(g.ndim, right(g, shape))",
        ),
        (
            "01_chain_rule",
            "mul_backward",
            "CACHE = []\n\n\ndef mul_backward(dy, a, b):\n"
            "    CACHE.append(a)\n    return dy * b, dy * CACHE[0]",
        ),
        (  # a driver calls it, and what came of that is compared piece by piece
            "14_compile",
            "eliminate_dead",
            "def eliminate_dead(program, needed=set()):\n    needed |= set(program.outputs)\n"
            "    more = Program(program.ops, program.inputs, tuple(needed), program.shapes)\n"
            "    found = right(more)\n"
            "    return Program(found.ops, found.inputs, program.outputs, found.shapes)",
        ),
        (  # it raises, and no earlier call does
            "04_accumulation",
            "unbroadcast",
            "def unbroadcast(g, shape, seen=[]):\n    seen.append(g)\n"
            "    if len(seen) > 1:\n        raise ValueError('again')\n    return right(g, shape)",
        ),
    ],
)
def test_state_kept_between_calls_is_told_as_such(stem, name, source, server):
    text = f"{solution(stem)}\n\nright = {name}\n\n\n{source}\n"
    message = grade_source(server, stem, name, text, SEEDS[0]).first_failure.message
    assert message.key == "kept"
    assert "outlives a call" in message.attempt


def test_what_is_odd_about_an_input_is_asked_first(server):
    """Where the error itself says little: an array without axes."""
    row = "np.array([d * factor for d, factor in zip(dy, {})])"
    source = f"def mul_backward(dy, a, b):\n    return {row.format('b')}, {row.format('a')}\n"
    text = f"{solution('01_chain_rule')}\n\n{source}"
    message = grade_source(server, "01_chain_rule", "mul_backward", text, 3).first_failure.message
    assert (message.key, "their shape is ()" in message.attempt) == ("raised", True)


def test_arrays_that_differ_in_dtype_alone_are_shown_with_it(server):
    right = "array.copy() for slot, array in slots.items()}\n    optimizer.state"
    source = solution("08_optimizer_state").replace(right, right.replace("copy()", "astype(float)"))
    message = grade_source(
        server, "08_optimizer_state", "load_state_dict", source, SEEDS[0]
    ).first_failure.message
    assert "] float32}" in message.expected
    assert "] float32}" not in message.got
    assert "] float64}" in message.got


@pytest.mark.parametrize(
    ("stem", "name", "old", "new", "said"),
    [
        (
            "08_optimizer_state",
            "SGD",
            "if p.id not in self.state",
            "if False",
            "this key is w.id; step 1 is the first to update w",
        ),
        (
            "08_optimizer_state",
            "replace_parameter",
            "pop(old.id, None)",
            "pop(old.id)",
            "this key is b.id; b has made no step yet",
        ),
        (
            "08_optimizer_state",
            "fine_tune",
            "velocity.setdefault(p.id, np.zeros_like(p.values))",
            "velocity[p.id]",
            "this key is body.w.id; velocity has nothing before the first step of body.w",
        ),
        (
            "09_adam",
            "step_all",
            "states.get(name, {})",
            "states[name]",
            "w is a parameter; before its first step it has no entry",
        ),
        (
            "09_adam",
            "adam_step",
            'state.get("step", 0)',
            'state["step"]',
            "before the first step of a parameter, its state is {}",
        ),
    ],
)
def test_a_key_that_is_missing_is_told_apart(stem, name, old, new, said, server):
    source = solution(stem).replace(old, new)
    message = grade_source(server, stem, name, source, SEEDS[0]).first_failure.message
    assert said in message.got.replace("\n", " ")
    assert "  " in message.where  # the line itself
