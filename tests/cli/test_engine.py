"""`status --engine`: what it says of a learner's whole engine, and of parts that are at fault."""

import contextlib
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from minigrad.cli import engine
from minigrad.cli.main import main
from minigrad.course import own_run, tally, whole
from minigrad.course.own_run import Fault, Report, Run, label_of, report_of, settle
from minigrad.course.parts import PARTS
from minigrad.course.seam_parts import Part
from minigrad.grader import progress
from minigrad.grader.folder import find_folder, find_stem, load_lesson
from minigrad.grader.report import Style
from minigrad.grader.run import Submission
from tests.cli.conftest import ROOT

GRAPH = ["01.mul_backward", "04.unbroadcast", "04.accumulate", "08.sgd_update"]


@pytest.fixture
def solved(tmp_path, monkeypatch):
    """A folder with the solutions, of which nothing is graded yet."""
    shutil.copytree(ROOT / "solutions", tmp_path / "exercises")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def have_passed(ids):
    """Remember that these exercises have passed as they are."""
    folder = find_folder()

    def change(data):
        for one in ids:
            lesson = load_lesson(find_stem(one[:2]))
            exercise = lesson.exercises[one[3:]]
            code = Submission.read(folder.exercise_file(lesson.stem)).fingerprint(exercise)
            data["exercises"][one] = {
                "points": exercise.points, "of": exercise.points, "best": exercise.points,
                "runs": 1, "hints": 0, "hash": code, "passed_hash": code,
            }  # fmt: skip

    progress.update(folder.state, change)


def append(solved, stem, text):
    path = solved / "exercises" / f"{stem}.py"
    path.write_text(path.read_text() + text)


def test_all_solutions_together_train_digits_and_light_every_tile(solved, capsys):
    have_passed(PARTS)
    assert main(["status", "--engine"]) == 0
    said = capsys.readouterr().out
    assert f"{len(PARTS)} of {len(PARTS)} parts are yours" in said
    apart = [one for one in PARTS if own_run.is_elsewhere(one)]
    assert said.count(": the same") == 1 + len(apart)
    assert all(f"{one} needs " in said for one in apart)
    assert "was not called" not in said
    rows = {row.split("  ")[1].strip(): row.split() for row in said.splitlines() if "%" in row}
    for one in PARTS:
        if not own_run.is_elsewhere(one):
            assert one in rows[label_of(one)], one
            assert int(rows[label_of(one)][-5].replace(",", "")) >= 20
    assert "13.k_softmax_row needs a GPU" in said
    assert "Left out" not in said
    lit = progress.load(solved / ".minigrad")["engine"]
    assert {*lit} == {*PARTS}


def test_workers_train_and_count_the_calls_of_one(solved):
    """The seam `all_reduce` has the same place as any that runs elsewhere."""
    entered = []

    @contextlib.contextmanager
    def each(rank):
        entered.append(rank)
        yield

    found = whole.train_in_ranks(3, each)
    assert sorted(entered) == [0, 1]
    assert len(found.losses) == 3
    assert found.losses[2] < found.losses[0]
    assert found.losses == pytest.approx(whole.train_in_ranks(3).losses)


def test_without_a_part_that_has_passed_it_says_what_to_do(solved, capsys):
    assert main(["status", "--engine", "01-02"]) == 1
    said = capsys.readouterr().out
    assert "None of these 3 parts is yours yet: 01.mul_backward" in said
    assert "minigrad check 01.mul_backward" in said
    assert main(["status", "--engine", "00"]) == 0
    assert "no part that runs in the engine" in capsys.readouterr().out


def test_some_parts_are_counted_beside_minigrads_own(solved):
    report = report_of(GRAPH)
    assert report.left_out == {}
    run = report.eager
    assert all(run.calls[one] > 0 for one in GRAPH)
    assert run.own["topological_order"] == run.own["find_cycle"] == run.steps
    assert run.own["update['Adam']"] == 2 * run.steps
    assert run.own["check_saved"] > run.steps
    assert run.own["storage"] > run.steps
    assert run.own["pool"] > run.steps
    assert "unbroadcast" not in run.own
    assert 0 < sum(run.times.values()) < run.seconds
    assert max(report.memory.bytes_in_use) > 0
    shares = [row for row in engine.rows_of(run) if row[0] == "together"]
    assert sum(row[2] for row in shares) == sum(run.calls.values()) + sum(run.own.values())
    assert Report.from_json(report.to_json()) == report


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("return dy * b, dy + a", "the losses are others"),
        ("raise KeyError('never seen')", "KeyError: 'never seen'"),
        ("return dy", "wanted 2 gradients for mul, one per input; got: 1; where: 01_chain_rule"),
        ("return dy * b * np.nan, dy * a", "without this part they are right"),
    ],
)
def test_part_at_fault_is_named_and_left_out(solved, body, why):
    append(solved, "01_chain_rule", f"\n\ndef mul_backward(dy, a, b):\n    {body}\n")
    report = report_of(GRAPH)
    assert [*report.left_out] == ["01.mul_backward"]
    assert why in report.left_out["01.mul_backward"]
    assert report.eager.ids == GRAPH[1:]
    said = "\n".join(engine.lines_of(report, GRAPH, Style(plain=True)))
    assert "Left out: 01.mul_backward (gradients['mul'])" in said
    assert "minigrad check 01.mul_backward" in said


def test_time_of_a_part_inside_another_counts_once(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(tally, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    entered = []
    one = tally.Tally(100.0, entered.append)

    def inner():
        now[0] += 2.0

    def outer():
        now[0] += 1.0
        one.call("inner", inner, ())
        one.call("inner", inner, ())

    one.call("outer", outer, ())
    assert one.seconds == {"inner": 4.0, "outer": 1.0}
    assert one.mine == {"inner": 2, "outer": 1}
    assert entered == ["outer", "inner", "outer", "inner", "outer", ""]
    assert (one.last, one.slowest()) == ("outer", "inner")


class Late(own_run.Guard):
    """Ends the time of a training once a learner's part has begun."""

    def enter(self, label):
        Part.tally.end = 0.0


def test_part_that_takes_too_long_is_at_fault(solved):
    trainings = own_run.Trainings(own_run.functions(GRAPH), Late())
    with pytest.raises(Fault, match="TooSlow: the training took longer than 120 s") as caught:
        trainings.eager(GRAPH)
    assert caught.value.exercise_id in GRAPH
    assert Part.tally is None


def run_of(ids, wrong):
    return Run(ids, 1, [2.0 if wrong else 1.0], [1.0], 1.0, 1.0, {}, {}, {})


def test_wrong_loss_is_traced_to_one_part_of_many():
    left_out = {}
    run = settle(["a", "b", "c"], lambda ids: run_of(ids, "b" in ids), left_out)
    assert run.ids == ["a", "c"]
    assert "2 at step 1, where minigrad's has 1 (without this part they are right)" in left_out["b"]


def test_wrong_losses_of_two_parts_are_traced_to_both():
    left_out = {}
    run = settle(["a", "b", "c"], lambda ids: run_of(ids, {"a", "c"} & {*ids}), left_out)
    assert run.ids == ["b"]
    assert "with this part alone" in left_out["a"]
    assert "without this part" in left_out["c"]


def test_parts_that_are_wrong_only_together_are_said_to_be_so():
    left_out = {}
    run = settle(["a", "b", "c"], lambda ids: run_of(ids, len(ids) > 1), left_out)
    assert len(run.ids) == 1
    assert "two of them do not fit together" in left_out["c"]


def test_training_that_fails_without_any_part_is_minigrads_fault():
    with pytest.raises(RuntimeError, match="minigrad's own training fails"):
        settle([], lambda ids: run_of(ids, True), {})


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_part_that_ends_the_process_is_left_out(solved):
    body = "print('x' * 100_000); import os; os.kill(os.getpid(), 11)"
    append(solved, "04_accumulation", f"\n\ndef accumulate(grads, key, g):\n    {body}\n")
    report = engine.report_apart(find_folder(), ["04.accumulate", "04.unbroadcast"])
    assert "ended the process, code -11, at 04_accum" in report.left_out["04.accumulate"]
    assert report.eager.ids == ["04.unbroadcast"]


def test_part_that_never_returns_is_found_with_its_line(solved, tmp_path):
    append(solved, "08_optimizer_state", """

def sgd_update(algorithm, values, gradient, state, hyperparameters):
    while True:
        pass
""")  # fmt: skip
    place = tmp_path / "place"
    place.mkdir()
    code = (
        "import sys; from minigrad.course import own_run as o; from pathlib import Path\n"
        "guard = o.ProcessGuard(Path(sys.argv[1]))\n"
        "trainings = o.Trainings(o.functions(['08.sgd_update']), guard)\n"
        "trainings.eager_reference; o.LONGEST, o.GRACE = 1.0, 1.0\n"
        "trainings.eager(['08.sgd_update'])\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(place)], cwd=solved).returncode == 1
    running, where = engine.stopped_in(place)
    assert running == "update['SGD']"
    assert "Timeout" in where
    assert engine.FRAME.search(where)["name"] == "08_optimizer_state.py"


def test_process_that_ends_before_any_part_has_run_says_its_last_words(solved):
    append(solved, "04_accumulation", "\nimport os\nprint('bye', flush=True)\nos._exit(3)\n")
    with pytest.raises(engine.CourseError, match=r"ended with code 3.*\nbye"):
        engine.report_apart(find_folder(), ["04.accumulate"])
