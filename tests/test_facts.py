"""Facts are known while their texts are the same, and no longer; what is not known runs whole."""

import collections
import types

import pytest

from tests import facts, tiers

Item = collections.namedtuple("Item", ["nodeid"])
CHECKS = "grader/test_checks.py"


@pytest.fixture
def keys_after(monkeypatch):
    """A function that gives the keys of facts, with this text changed if one is named."""

    def keys(names, changed=None):
        facts.key_of.cache_clear()
        line = facts._line.__wrapped__
        monkeypatch.setattr(
            facts, "_line", lambda path: line(path) + "x" * (path == facts.ROOT / str(changed))
        )
        found = {name: facts.key_of(name) for name in names}
        monkeypatch.undo()
        facts.key_of.cache_clear()
        return found

    return keys


LESSON = "test_lessons.py 05"
ENGINE = {"compiler/test_plan.py", "ops/test_values.py", "simt/test_races.py"}
ATTACKS = "grader/test_attacks.py"
GRADER = {"grader/test_wire.py", "cli/test_lab.py", ATTACKS}
FACTS = {f"{CHECKS} 05", f"{CHECKS} 07", LESSON} | GRADER | ENGINE
GRADED = FACTS - ENGINE


@pytest.mark.parametrize(
    ("changed", "stale"),
    [
        ("solutions/05_clone_detach.py", {f"{CHECKS} 05", LESSON, "cli/test_lab.py"}),
        (
            "minigrad/course/l05_clone_detach/detaching.py",
            {f"{CHECKS} 05", LESSON, "cli/test_lab.py"},
        ),
        ("minigrad/course/l01_chain_rule/mul.py", {"cli/test_lab.py", ATTACKS}),  # it names it
        ("lessons/source/05_clone_detach.py", {LESSON, "cli/test_lab.py"}),
        ("tests/mutants/m05_clone_detach.py", {f"{CHECKS} 05"}),
        ("minigrad/grader/tester.py", GRADED),
        ("minigrad/simt/__init__.py", FACTS - {f"{CHECKS} 05", "grader/test_wire.py"}),
        ("tests/simt/brute.py", {"simt/test_races.py"}),
        ("tests/ops/oracles.py", {"ops/test_values.py"}),
        ("start.py", {"cli/test_lab.py"}),
        ("pyproject.toml", FACTS),
        ("README.md", set()),
    ],
)
def test_a_changed_text_makes_stale_what_depends_on_it_alone(changed, stale, keys_after):
    before, after = keys_after(FACTS), keys_after(FACTS, changed)
    assert (facts.ROOT / changed).exists()
    assert {name for name in FACTS if before[name] != after[name]} == stale


@pytest.mark.parametrize(
    ("nodeid", "fact"),
    [
        ("tests/grader/test_checks.py::test_solution[00_start-slope-11]", f"{CHECKS} 00"),
        ("tests/grader/test_checks.py::test_solution[11-13_cuda-k_warp]", f"{CHECKS} 13"),
        ("tests/grader/test_checks.py::test_seed_decides_the_inputs", None),
        (
            "tests/readers/test_readers.py::test_a[04.mean-wrong]",
            "readers/test_readers.py 04",
        ),
        ("tests/simt/test_races.py::test_a[3]", "simt/test_races.py"),
        ("tests/test_docs.py::test_a", None),
    ],
)
def test_a_test_belongs_to_the_fact_of_its_file_or_of_its_lesson(nodeid, fact):
    assert facts.fact_of(nodeid) == fact


SOURCE = '''"""Add."""
import math  # for pi
class Sum:
    """A sum.

    # Over two rows."""

    x: int = None  # type: ignore
    def f(self, a="""# no

    comment"""):
        "Return it."

        # twice
        return 2 * a
def g(): "one line"
'''


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("Add.", "Add two numbers.", False),
        ("for pi", "for e", False),
        ("  # for pi", "", False),
        ("two rows", "three\n    rows", False),
        ("Return it.", "Say it.", False),
        ("# twice", "# two times", False),
        ('"Return it."', "pass", True),
        ("type: ignore", "type: int", True),
        ("# no", "", True),
        ("no\n\n", "no\n", True),
        ("one line", "a line", True),
        ("2 * a", "3 * a", True),
        ("    def f", "def f", True),
    ],
)
def test_comments_and_docstrings_of_the_engine_count_for_nothing(old, new, counts):
    assert old in SOURCE
    changed = facts.meaning_of(SOURCE.replace(old, new)) != facts.meaning_of(SOURCE)
    assert changed is counts


def test_what_is_not_known_runs_whole_and_what_is_known_once_in_ten_turns():
    names = [f"tests/{CHECKS}::test_f[0{k % 3}_a-{k}]" for k in range(30)]
    items = [Item(name) for name in names]
    for k in range(tiers.N_TURNS):
        assert tiers.in_turn(items, k, lambda fact: False) == items
    half = [tiers.in_turn(items, k, lambda fact: fact.endswith(" 01")) for k in range(10)]
    count = collections.Counter(item.nodeid for turn in half for item in turn)
    assert count == {name: 1 if "[01" in name else 10 for name in names}


def test_all_that_is_asked_of_a_lesson_runs_in_one_turn():
    items = [Item(f"tests/test_lessons.py::test_{f}[{k:02}_a]") for f in "abc" for k in range(18)]
    turns = [tiers.in_turn(items, k, lambda fact: True) for k in range(10)]
    for k, turn in enumerate(turns):
        assert {facts.fact_of(item.nodeid)[-1] for item in turn} == {str(k)}
        assert len(turn) == (6 if k < 8 else 3)


def report(nodeid, outcome, read=()):
    return types.SimpleNamespace(
        nodeid=nodeid,
        outcome=outcome,
        failed=outcome == "failed",
        longreprtext="assert 1 == 2",
        user_properties=[(facts.READ, list(read))],
    )


@pytest.mark.parametrize(
    ("read", "missing"),
    [
        ("README.md", ["README.md"]),
        ("tests/mutants/m07_functions.py", []),  # its file has a fact for lesson 07, too
        ("tests/simt/brute.py", ["tests/simt/brute.py"]),
        ("minigrad/cli/__pycache__/lab.cpython-311.pyc", ["minigrad/cli/lab.py"]),
        ("solutions/05_clone_detach.py", []),
        ("pyproject.toml", []),
        ("tests/facts.json", []),
        (".git/HEAD", []),
        ("there_is_none.py", []),
    ],
)
def test_what_tests_read_that_their_key_does_not_depend_on_is_missing(read, missing):
    recorder = facts.Recorder()
    nodeid = f"tests/{CHECKS}::test_f[05_c]"
    recorder.pytest_runtest_logreport(report(nodeid, "passed", [str(facts.ROOT / read)]))
    assert recorder.missing(f"{CHECKS} 05") == missing


def test_what_is_opened_is_noted_once(tmp_path):
    reads = facts.Reads()
    (facts.ROOT / "README.md").read_text(encoding="utf-8")
    (tmp_path / "elsewhere.py").write_text("", encoding="utf-8")
    assert reads.taken() == [str(facts.ROOT / "README.md")]
    assert reads.taken() == []


def test_a_fact_is_known_with_the_key_of_its_texts_alone():
    fact = f"{CHECKS} 05"
    assert facts.is_known(fact, {fact: facts.key_of(fact)})
    assert not facts.is_known(fact, {fact: "that of other texts"})
    assert not facts.is_known(fact, {})


def test_every_key_is_of_a_fact_that_there_is():
    assert facts._known().keys() <= set(facts.all_facts())


@pytest.mark.parametrize(
    ("outcome", "is_changed", "is_known"),
    [("passed", False, True), ("failed", False, False), ("passed", True, False)],
)
def test_what_is_written_down_passed_whole_with_the_texts_as_they_are(
    outcome, is_changed, is_known, tmp_path, monkeypatch, capsys
):
    fact = f"{CHECKS} 05"
    known = tmp_path / "facts.json"
    monkeypatch.setattr(facts, "KNOWN", known)
    facts._known.cache_clear()

    def run(arguments, plugins):
        for end in ("passed", outcome, "passed"):
            plugins[0].pytest_runtest_logreport(report(f"tests/{CHECKS}::test_f[05_c]", end))
        if is_changed:
            monkeypatch.setattr(facts, "_hash_now", lambda fact: "another")
        return int(outcome == "failed")

    monkeypatch.setattr(facts.pytest, "main", run)
    assert facts.main([fact]) == (not is_known)
    assert facts.is_known(fact, facts.json.loads(known.read_text())) is is_known
    facts._known.cache_clear()
    out = capsys.readouterr().out
    assert f"{int(is_known)} facts are known now." in out
    assert out.count("assert 1 == 2") == (outcome == "failed")  # at once, before the rest has run
